"""Producer ids: which sequence numbers a log has seen, so that a retry makes no second copy.

The state is a pure function of the batches in the log. That is why it survives everything the log
survives: a follower builds it from what it copies, a truncation or a restart builds it anew.
Only `forget` goes by the clock.
The last five batches of a producer are remembered, as many as a client may have in flight.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.model import NO_OFFSET, NO_PRODUCER, BatchHeader, ErrorCode, Offset, ProducerId

REMEMBERED_BATCHES = 5
_SEQUENCES = 1 << 31


class SeenBatch(NamedTuple):
    """A batch that is in the log."""

    base_sequence: int
    last_sequence: int
    base_offset: Offset
    end_offset: Offset


class SequenceCheck(NamedTuple):
    """May this batch be appended? A duplicate may not, but is answered as the first copy was."""

    error: ErrorCode
    duplicate: SeenBatch | None


_FRESH = SequenceCheck(ErrorCode.NONE, None)
_NO_TRANSACTION = SequenceCheck(ErrorCode.INVALID_TXN_STATE, None)


class _Producer:
    __slots__ = ("batches", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[SeenBatch] = []


def following_sequence(sequence: int, count: int = 1) -> int:
    """Sequences wrap from 2^31 - 1 to 0."""
    return (sequence + count) % _SEQUENCES


def is_earlier(sequence: int, other: int) -> bool:
    """Which of two comes first, where they wrap: they are never half the numbers apart."""
    return 0 < (other - sequence) % _SEQUENCES < _SEQUENCES // 2


class ProducerStates:
    """What one log knows of its producers."""

    __slots__ = ("_producers",)

    def __init__(self) -> None:
        self._producers: dict[ProducerId, _Producer] = {}

    def check(self, batch: BatchHeader) -> SequenceCheck:
        """Judge a batch that a client wants appended."""
        if batch.is_transactional:
            # There is no transaction coordinator: the transaction would stay open, and hold the
            # last stable offset, for good.
            return _NO_TRANSACTION
        known = self._producers.get(batch.producer_id)
        if known is None:
            # Everything this producer wrote may have been deleted by retention: any start is fine.
            return _FRESH
        if batch.producer_epoch < known.epoch:
            return SequenceCheck(ErrorCode.INVALID_PRODUCER_EPOCH, None)
        if batch.producer_epoch > known.epoch or not known.batches:
            fine = batch.base_sequence == 0 or not known.batches
            return _FRESH if fine else _OUT_OF_ORDER
        if batch.base_sequence == following_sequence(known.batches[-1].last_sequence):
            return _FRESH
        last_sequence = following_sequence(batch.base_sequence, batch.record_count - 1)
        for seen in known.batches:
            if seen.base_sequence == batch.base_sequence and seen.last_sequence == last_sequence:
                return SequenceCheck(ErrorCode.NONE, seen)
        return _OUT_OF_ORDER

    def append(self, batch: BatchHeader, base_offset: Offset = NO_OFFSET) -> None:
        """Take note of a batch that is (being) written, at its base offset if none is given."""
        if batch.producer_id == NO_PRODUCER:
            return
        if base_offset == NO_OFFSET:
            base_offset = batch.base_offset
        assert base_offset != NO_OFFSET
        known = self._producers.get(batch.producer_id)
        if known is None or known.epoch != batch.producer_epoch:
            known = self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
        last_sequence = following_sequence(batch.base_sequence, batch.record_count - 1)
        known.batches.append(
            SeenBatch(
                batch.base_sequence,
                last_sequence,
                base_offset,
                Offset(base_offset + batch.record_count),
            )
        )
        if len(known.batches) > REMEMBERED_BATCHES:
            del known.batches[0]

    def rebuild(self, batches: Iterable[BatchHeader]) -> None:
        """Start anew from what the log holds now."""
        self._producers.clear()
        for batch in batches:
            self.append(batch)

    def forget(self, producer_ids: Iterable[ProducerId]) -> None:
        """Drop producers that have been silent for producer.id.expiration.ms.

        The log decides who (its retention knows the time), and tells both memories at once.
        """
        for producer_id in producer_ids:
            self._producers.pop(producer_id, None)

    def last_sequence(self, producer_id: ProducerId) -> int | None:
        """The last sequence number in the log, or None for a producer it does not know."""
        known = self._producers.get(producer_id)
        return known.batches[-1].last_sequence if known and known.batches else None


_OUT_OF_ORDER = SequenceCheck(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None)
