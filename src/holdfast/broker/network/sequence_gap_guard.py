"""Makes later batches on a connection wait for an earlier batch that was refused.

A log that has no state of an idempotent producer accepts any sequence number from it, because its
earlier records may have been deleted. A client has several batches in flight. If the first is
refused for a moment and the next one, a millisecond later, is not, the log would begin with the
second, and the first could never be written. So the batches after a refused one get an out-of-order
error. Clients then send them all again, in order.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from holdfast.core import ProducerStates, is_earlier
from holdfast.model import NO_PRODUCER, ErrorCode, ProducerId
from holdfast.protocol.records import MalformedBatchError, parse_header
from holdfast.protocol.records.batch_header import Bytes

MOST: Final = 10_000
"""Limit for one connection; beyond it the oldest is forgotten."""


class _Place(NamedTuple):
    """The scope of sequence numbers: one producer, one partition."""

    topic: str | bytes
    partition: int
    producer_id: ProducerId


class _Number(NamedTuple):
    epoch: int
    sequence: int


class SequenceGapGuard:
    """Batches of one connection that were refused and not sent again."""

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first: dict[_Place, _Number] = {}
        """The earliest refused batch of each producer."""

    def __bool__(self) -> bool:
        return bool(self._first)

    def note(self, topic: str | bytes, partition: int, records: Bytes, error: ErrorCode) -> None:
        """Note a refused batch, unless it can never be accepted: then the client starts again."""
        read = _read(topic, partition, records)
        if read is None or not error.retriable:
            return
        place, number = read
        first = self._first.get(place)
        if first is None and len(self._first) >= MOST:
            del self._first[next(iter(self._first))]
        if first is None or first.epoch != number.epoch or _is_before(number, first):
            self._first[place] = number

    def is_out_of_order(
        self, topic: str | bytes, partition: int, records: Bytes, known: ProducerStates
    ) -> bool:
        """Whether a refused batch must come before this one."""
        read = _read(topic, partition, records)
        first = self._first.get(read[0]) if read is not None else None
        if read is None or first is None:
            return False
        place, number = read
        if _is_before(first, number) and known.last_sequence(place.producer_id) is None:
            return True
        del self._first[place]  # It is the awaited one, or the log has the producer's state.
        return False


def _is_before(number: _Number, other: _Number) -> bool:
    return number.epoch == other.epoch and is_earlier(number.sequence, other.sequence)


def _read(topic: str | bytes, partition: int, records: Bytes) -> tuple[_Place, _Number] | None:
    """None for a batch without a sequence number or one that cannot be read."""
    try:
        header = parse_header(records)
    except MalformedBatchError:
        return None
    if header.producer_id == NO_PRODUCER:
        return None
    place = _Place(topic, partition, ProducerId(header.producer_id))
    return place, _Number(header.producer_epoch, header.base_sequence)
