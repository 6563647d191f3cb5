"""Producer state: the sequence numbers in a log, so that a retry is not appended twice.

The state is a pure function of the batches in the log, so it survives whatever the log survives: a
follower builds it from the batches it copies, and a truncation or a restart builds it again. Only
`forget` depends on time. The state has the last five batches of each producer, as many as a client
may have in flight.
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
    """Whether a batch may be appended. A duplicate may not, but is answered like the first copy."""

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
    """Whether `sequence` comes first. Sequences wrap, but two are never half the range apart."""
    return 0 < (other - sequence) % _SEQUENCES < _SEQUENCES // 2


class ProducerStates:
    """The producers of one log."""

    __slots__ = ("_producers",)

    def __init__(self) -> None:
        self._producers: dict[ProducerId, _Producer] = {}

    def check(self, batch: BatchHeader) -> SequenceCheck:
        """Check a batch that a client wants to append."""
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
        """Add a written batch, at its own base offset if none is given."""
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
        """Build the state again from the batches in the log."""
        self._producers.clear()
        for batch in batches:
            self.append(batch)

    def forget(self, producer_ids: Iterable[ProducerId]) -> None:
        """Drop producers that have been silent for producer.id.expiration.ms.

        The log chooses them, because its retention has the time, and calls this and its own
        `forget` together.
        """
        for producer_id in producer_ids:
            self._producers.pop(producer_id, None)

    def last_sequence(self, producer_id: ProducerId) -> int | None:
        """The last sequence number in the log, or None for an unknown producer."""
        known = self._producers.get(producer_id)
        return known.batches[-1].last_sequence if known and known.batches else None


_OUT_OF_ORDER = SequenceCheck(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None)
