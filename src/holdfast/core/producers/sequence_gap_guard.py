"""Makes later batches on a connection wait for an earlier batch that was refused.

A log that has no state of an idempotent producer accepts any sequence number from it, because its
earlier records may have been deleted. A client has several batches in flight. If the first is
refused for a moment and the next one, a millisecond later, is not, the log would begin with the
second, and the first could never be written. So the batches after a refused one get an out-of-order
error. Clients then send them all again, in order.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from holdfast.core.producers.producer_state import ProducerStates, is_earlier
from holdfast.model import NO_PRODUCER, BatchHeader, ErrorCode, ProducerId

MOST: Final = 10_000
"""Limit for one connection; beyond it the oldest is forgotten."""


class SequenceGapGuard:
    """Batches of one connection that were refused and not sent again."""

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first: dict[tuple[Hashable, ProducerId], BatchHeader] = {}
        """The earliest refused batch of each producer in each partition."""

    def __bool__(self) -> bool:
        return bool(self._first)

    def note(self, partition: Hashable, batch: BatchHeader, error: ErrorCode) -> None:
        """Note a refused batch, unless it can never be accepted: then the client starts again."""
        if batch.producer_id == NO_PRODUCER or not error.retriable:
            return
        place = partition, batch.producer_id
        first = self._first.get(place)
        if first is None and len(self._first) >= MOST:
            del self._first[next(iter(self._first))]
        is_later = first is not None and _is_before(first, batch)
        if not is_later:
            self._first[place] = batch

    def is_out_of_order(
        self, partition: Hashable, batch: BatchHeader, known: ProducerStates
    ) -> bool:
        """Whether a refused batch must come before this one."""
        place = partition, batch.producer_id
        first = self._first.get(place)
        if first is None:
            return False
        if _is_before(first, batch) and known.last_sequence(batch.producer_id) is None:
            return True
        del self._first[place]  # It is the awaited one, or the log has the producer's state.
        return False


def _is_before(batch: BatchHeader, other: BatchHeader) -> bool:
    is_same_epoch = batch.producer_epoch == other.producer_epoch
    return is_same_epoch and is_earlier(batch.base_sequence, other.base_sequence)
