"""Producer state: the sequence numbers, epochs and transactions in a log.

It decides whether a batch is new or a retry, holds the last stable offset, and is what a producer
snapshot contains. It is a pure function of the batches in the log, so it survives whatever the log
survives: a follower builds it from the batches it copies, a restart or a truncation from a snapshot
and the batches after it. Only `expire` depends on time, and `abandon_open` on the missing
transaction coordinator.

A leader's batch counts from the moment it has an offset (`assign`), because the next batch of the
same request is checked against it. A snapshot has only what is below its offset (`snapshot_at`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.core.producers.open_transactions import CompletedTransaction, OpenTransactions
from holdfast.model import (
    NO_OFFSET,
    NO_PRODUCER,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    SEQUENCES,
    BatchHeader,
    EndMarker,
    ErrorCode,
    Offset,
    ProducerId,
)

REMEMBERED_BATCHES = 5
"""As many as a client may have in flight."""
NO_COORDINATOR = -1
_EARLIER_BATCHES = slice(1 - REMEMBERED_BATCHES, None)
_ZERO = Offset(0)
_new = tuple.__new__


class SeenBatch(NamedTuple):
    """A batch that is in the log."""

    base_sequence: int
    last_sequence: int
    base_offset: Offset
    end_offset: Offset


class ProducerState(NamedTuple):
    """One producer."""

    producer_id: ProducerId
    producer_epoch: int
    batches: tuple[SeenBatch, ...]
    """Its last batches in this epoch, oldest first; none after a marker that raised the epoch."""
    timestamp: int
    """Of its last batch or marker."""
    coordinator_epoch: int
    transaction_start: Offset
    """First offset of the transaction it has open, or -1."""

    @property
    def last_sequence(self) -> int:
        """The last sequence number, or -1."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> Offset:
        """The last offset of its last batch, or -1."""
        return Offset(self.batches[-1].end_offset - 1) if self.batches else NO_OFFSET


class SequenceCheck(NamedTuple):
    """Whether a batch may be appended. A duplicate may not, but is answered like the first copy."""

    error: ErrorCode
    duplicate: SeenBatch | None


_FRESH = SequenceCheck(ErrorCode.NONE, None)
_OUT_OF_ORDER = SequenceCheck(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None)
_FENCED = SequenceCheck(ErrorCode.INVALID_PRODUCER_EPOCH, None)
_NO_TRANSACTION = SequenceCheck(ErrorCode.INVALID_TXN_STATE, None)


def is_earlier(sequence: int, other: int) -> bool:
    """Whether `sequence` comes first. Sequences wrap, but two are never half the range apart."""
    return 0 < (other - sequence) % SEQUENCES < SEQUENCES // 2


class ProducerStates:
    """The producers of one log. A log and its `LogState` share one."""

    __slots__ = ("_seen_ms", "_transactions", "end_offset", "states", "unwritten")

    states: dict[ProducerId, ProducerState]
    end_offset: int
    """Every batch of a producer below this offset is included."""
    unwritten: list[tuple[Offset, ProducerId, ProducerState | None]]
    """Batches with an offset that are not in the log yet, and the states before them."""
    _seen_ms: dict[ProducerId, int]
    """When `expire` last found a new batch, by the broker's clock. A producer with a batch since
    then has no entry; one from a snapshot has -1."""

    def __init__(self) -> None:
        self.restore()

    # What is in the log.

    def restore(self, states: Iterable[ProducerState] = (), end_offset: Offset = _ZERO) -> None:
        """Replace everything with a snapshot at `end_offset`; the batches after it follow."""
        self.states = {state.producer_id: state for state in states}
        self.end_offset = end_offset
        self.unwritten = []
        self._seen_ms = dict.fromkeys(self.states, NO_TIMESTAMP)
        self._transactions = OpenTransactions(
            (state.transaction_start, producer_id)
            for producer_id, state in self.states.items()
            if state.transaction_start != NO_OFFSET
        )

    def recall(self, batch: BatchHeader) -> None:
        """Add a batch from before the snapshot; call this after `restore`, in the log's order.

        A snapshot has one batch per producer, and a client may send any of its last five again.
        """
        known = self.states.get(batch.producer_id)
        if known is None or batch.is_control or batch.producer_epoch != known.producer_epoch:
            return
        if known.batches and batch.end_offset <= known.batches[-1].base_offset:
            *earlier, last = known.batches
            sequences = batch.base_sequence, batch.last_sequence
            seen = SeenBatch(*sequences, batch.base_offset, batch.end_offset)
            batches = (*earlier, seen, last)[-REMEMBERED_BATCHES:]
            self.states[batch.producer_id] = known._replace(batches=batches)

    def rebuild(self, batches: Iterable[BatchHeader]) -> None:
        """Build the state again from all batches in the log."""
        self.restore()
        for batch in batches:
            self.append(batch)

    def append(
        self, batch: BatchHeader, marker: EndMarker | None = None
    ) -> CompletedTransaction | None:
        """Add a batch that is in the log, unless it is included; of a control batch, the marker."""
        if batch.producer_id == NO_PRODUCER:
            return None
        assert batch.base_offset != NO_OFFSET
        if batch.base_offset < self.end_offset:
            return None
        if not batch.is_control:
            self._add(batch, batch.base_offset, self.states.get(batch.producer_id))
            return None
        self.end_offset = batch.end_offset
        self._seen_ms.pop(batch.producer_id, None)
        return None if marker is None else self._end_transaction(batch, marker)

    def _add(self, batch: BatchHeader, base_offset: Offset, known: ProducerState | None) -> None:
        # Runs for every batch of a producer: it reads fields by position, and a named tuple's own
        # constructor costs twice as much.
        count, _, _, producer_id, epoch, first, is_transactional, _, timestamp = batch
        last = (first + count - 1) % SEQUENCES if first >= 0 else NO_SEQUENCE
        self.end_offset = end_offset = base_offset + count
        batches: tuple[SeenBatch, ...] = (_new(SeenBatch, (first, last, base_offset, end_offset)),)
        coordinator_epoch, start = NO_COORDINATOR, NO_OFFSET
        if known is not None:
            _, known_epoch, earlier, _, coordinator_epoch, start = known
            if known_epoch == epoch:
                batches = earlier[_EARLIER_BATCHES] + batches
        if is_transactional and start == NO_OFFSET:
            start = base_offset
            self._transactions.begin(producer_id, start)
        fields = (producer_id, epoch, batches, timestamp, coordinator_epoch, start)
        self.states[producer_id] = _new(ProducerState, fields)
        if producer_id in self._seen_ms:
            del self._seen_ms[producer_id]

    def _end_transaction(
        self, batch: BatchHeader, marker: EndMarker
    ) -> CompletedTransaction | None:
        producer_id, producer_epoch = batch.producer_id, batch.producer_epoch
        known = self.states.get(producer_id)
        # A marker may carry a raised epoch, which fences the producer: sequences start again.
        batches = known.batches if known and known.producer_epoch == producer_epoch else ()
        fields = (batches, batch.max_timestamp, marker.coordinator_epoch, NO_OFFSET)
        self.states[producer_id] = ProducerState(producer_id, producer_epoch, *fields)
        last = Offset(batch.end_offset - 1)
        return self._transactions.end(producer_id, last, is_aborted=not marker.is_commit)

    def snapshot_at(self, end_offset: Offset) -> list[ProducerState]:
        """The producers as the batches below `end_offset` leave them: what a snapshot contains."""
        states = self.states
        later = [undo for undo in self.unwritten if undo[0] >= end_offset]
        if later:
            states = states.copy()
        for _, producer_id, before in reversed(later):
            if before is None:
                states.pop(producer_id, None)
            else:
                states[producer_id] = before
        return list(states.values())

    # A leader's new batches.

    def check(self, batch: BatchHeader) -> SequenceCheck:
        """Check a batch that a client wants to append."""
        if batch.is_transactional:
            # There is no transaction coordinator: the transaction would stay open, and hold the
            # last stable offset, for good.
            return _NO_TRANSACTION
        known = self.states.get(batch.producer_id)
        if known is None:
            # Everything this producer wrote may have been deleted by retention: any start is fine.
            return _FRESH
        epoch, first, batches = batch.producer_epoch, batch.base_sequence, known.batches
        if epoch < known.producer_epoch:
            return _FENCED
        if epoch > known.producer_epoch or not batches:
            return _FRESH if first == 0 else _OUT_OF_ORDER
        if first == (batches[-1].last_sequence + 1) % SEQUENCES:
            return _FRESH
        for seen in batches:
            if seen.base_sequence == first and seen.last_sequence == batch.last_sequence:
                return SequenceCheck(ErrorCode.NONE, seen)
        return _OUT_OF_ORDER

    def assign(self, batch: BatchHeader, base_offset: Offset) -> None:
        """Add a batch that has been given this offset, and will be written next."""
        producer_id = batch.producer_id
        known = self.states.get(producer_id)
        self.unwritten.append((base_offset, producer_id, known))
        self._add(batch, base_offset, known)

    def written(self) -> None:
        """All assigned batches are in the log."""
        self.unwritten.clear()

    def last_sequence(self, producer_id: ProducerId) -> int | None:
        """The last sequence number in the log, or None for an unknown producer."""
        known = self.states.get(producer_id)
        return known.last_sequence if known and known.batches else None

    # Transactions.

    def last_stable_offset(self, high_watermark: int) -> int:
        """First offset that a read_committed reader may not see; the log may start above it."""
        return self._transactions.last_stable_offset(high_watermark)

    def abandon_open(self) -> dict[ProducerId, Offset]:
        """Count open transactions as ended; returns their first offsets by producer.

        For transactions that no coordinator can end. Their records stay in the log, and a
        read_committed reader sees them.
        """
        abandoned = self._transactions.abandon()
        for producer_id in abandoned:
            known = self.states[producer_id]
            self.states[producer_id] = known._replace(transaction_start=NO_OFFSET)
        return abandoned

    # Time.

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Expire producers that were silent for producer.id.expiration.ms, outside transactions.

        Kafka uses the timestamp of a producer's last batch, which the client sets. A producer that
        sends old records would expire between two batches, and a retry would be appended twice. So
        the time of its last append counts as well.
        """
        for producer_id, state in tuple(self.states.items()):
            since = max(state.timestamp, self._seen_ms.setdefault(producer_id, now_ms))
            if since < 0:  # A snapshot without a timestamp: count from now on.
                self._seen_ms[producer_id] = now_ms
            elif state.transaction_start == NO_OFFSET and now_ms - since >= expiration_ms:
                del self.states[producer_id], self._seen_ms[producer_id]
