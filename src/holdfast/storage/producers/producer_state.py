"""The producer state that a log keeps on disk: the last batch of each producer, open transactions.

Snapshots keep this part of producer state, and the last stable offset is computed from it. The core
checks sequence numbers (`core.ProducerStates`); the log feeds it after a start or a truncation
(`Log.producer_headers`). Like the core's, this state is a pure function of the batches in the log,
with one exception: producers that were silent for producer.id.expiration.ms. Retention expires
those here and in the core at the same time (`Log.producers_expired`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.model import NO_OFFSET, NO_PRODUCER, NO_SEQUENCE, BatchHeader, Offset, ProducerId
from holdfast.protocol.records import (
    Batch,
    EndMarker,
    MalformedBatchError,
    RecordBatchHeader,
    read_end_marker,
    read_records,
)

NO_COORDINATOR = -1
NO_TIMESTAMP = -1


class ProducerEntry(NamedTuple):
    """One producer, in the order of Kafka's snapshot files."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    """Last offset minus first offset of its last batch."""
    timestamp: int
    coordinator_epoch: int
    transaction_start: int
    """First offset of the transaction it has open, or -1."""

    def to_header(self) -> BatchHeader:
        """The header of its last batch, for the core."""
        return BatchHeader(
            record_count=self.offset_delta + 1,
            base_offset=Offset(self.last_offset - self.offset_delta),
            producer_id=ProducerId(self.producer_id),
            producer_epoch=self.producer_epoch,
            base_sequence=(self.last_sequence - self.offset_delta) & 0x7FFFFFFF,
        )


class CompletedTransaction(NamedTuple):
    """A transaction whose marker is in the log."""

    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the marker."""
    is_aborted: bool
    last_stable_offset: int
    """The last stable offset once the marker is committed, for the transaction index."""


class ProducerBook:
    """The producers of one log."""

    __slots__ = ("_appended", "_seen_ms", "_undecided", "_unreplicated", "entries")

    entries: dict[int, ProducerEntry]
    _undecided: dict[int, int]
    """First offsets of open transactions by producer, in the order they began."""
    _appended: set[int]
    """Producers with a batch since the last `expire`."""
    _seen_ms: dict[int, int]
    """When `expire` last found a new batch of a producer, by the broker's clock."""
    _unreplicated: deque[CompletedTransaction]
    """Ended, but the marker is not yet known to be committed: still unstable."""

    def __init__(self, entries: Iterable[ProducerEntry] = ()) -> None:
        self.entries = {entry.producer_id: entry for entry in entries}
        started = sorted(
            (entry.transaction_start, entry.producer_id)
            for entry in self.entries.values()
            if entry.transaction_start >= 0
        )
        self._undecided = {producer: first for first, producer in started}
        self._unreplicated = deque()
        self._appended = set()
        self._seen_ms = {}

    def append(
        self, header: RecordBatchHeader, marker: EndMarker | None = None
    ) -> CompletedTransaction | None:
        """Record a batch in the log; pass the marker of a control batch."""
        if header.producer_id == NO_PRODUCER:
            return None
        self._appended.add(header.producer_id)
        if header.is_control:
            return self._ended(header, marker) if marker is not None else None
        known = self.entries.get(header.producer_id)
        start = known.transaction_start if known is not None else NO_OFFSET
        if header.is_transactional and start < 0:
            start = header.base_offset
            self._undecided[header.producer_id] = start
        self.entries[header.producer_id] = ProducerEntry(
            header.producer_id,
            header.producer_epoch,
            header.last_sequence,
            header.base_offset + header.last_offset_delta,
            header.last_offset_delta,
            header.max_timestamp,
            known.coordinator_epoch if known is not None else NO_COORDINATOR,
            start,
        )
        return None

    def _ended(self, header: RecordBatchHeader, marker: EndMarker) -> CompletedTransaction | None:
        known = self.entries.get(header.producer_id)
        if known is None or known.producer_epoch != header.producer_epoch:
            # A marker may carry a raised epoch, which fences the producer: sequences start again.
            known = _fenced(header)
        self.entries[header.producer_id] = known._replace(
            timestamp=header.max_timestamp,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_start=NO_OFFSET,
        )
        first = self._undecided.pop(header.producer_id, None)
        if first is None:
            return None  # A marker without records: nothing was unstable.
        last = header.base_offset + header.last_offset_delta
        stable = next(iter(self._undecided.values()), last + 1)
        ended = CompletedTransaction(header.producer_id, first, last, not marker.is_commit, stable)
        self._unreplicated.append(ended)
        return ended

    def last_stable_offset(self, high_watermark: int) -> int:
        """First offset a read_committed reader may not see.

        An ended transaction counts as open until its marker is committed: a marker that is
        truncated again would leave records visible whose fate is undecided.
        """
        if not self._undecided and not self._unreplicated:
            return high_watermark
        while self._unreplicated and self._unreplicated[0].last_offset < high_watermark:
            self._unreplicated.popleft()
        first = min(
            next(iter(self._undecided.values()), high_watermark),
            min((one.first_offset for one in self._unreplicated), default=high_watermark),
        )
        return min(first, high_watermark)

    def abandon_open(self) -> dict[int, int]:
        """Count open transactions as ended; returns their first offsets by producer.

        For transactions that no coordinator can end. Their records stay in the log, and a
        read_committed reader sees them.
        """
        abandoned, self._undecided = self._undecided, {}
        for producer in abandoned:
            entry = self.entries[producer]
            self.entries[producer] = entry._replace(transaction_start=NO_OFFSET)
        return abandoned

    def expire(self, now_ms: int, expiration_ms: int) -> list[ProducerId]:
        """Expire silent producers, except those in a transaction; returns their ids.

        Kafka uses the timestamp of a producer's last batch, which the client sets. A producer that
        sends old records would expire between two batches, and a retry would be appended twice. So
        the time of its last append counts as well.
        """
        self._seen_ms.update(dict.fromkeys(self._appended, now_ms))
        self._appended.clear()
        gone = []
        for entry in self.entries.values():
            since = max(entry.timestamp, self._seen_ms.get(entry.producer_id, NO_TIMESTAMP))
            if since < 0:  # A snapshot without a timestamp: count from now on.
                self._seen_ms[entry.producer_id] = now_ms
            elif entry.transaction_start < 0 and now_ms - since >= expiration_ms:
                gone.append(ProducerId(entry.producer_id))
        for producer_id in gone:
            del self.entries[producer_id]
            self._seen_ms.pop(producer_id, None)
        return gone

    def headers(self) -> Iterator[BatchHeader]:
        """The last batches, oldest first, from which the core rebuilds its state."""
        known = [entry for entry in self.entries.values() if entry.last_offset >= 0]
        for entry in sorted(known, key=lambda entry: entry.last_offset):
            yield entry.to_header()


def _fenced(header: RecordBatchHeader) -> ProducerEntry:
    return ProducerEntry(
        header.producer_id,
        header.producer_epoch,
        NO_SEQUENCE,
        NO_OFFSET,
        0,
        header.max_timestamp,
        NO_COORDINATOR,
        NO_OFFSET,
    )


def marker_in(batch: Batch) -> EndMarker | None:
    """The transaction marker in a control batch; None if it has none.

    None also for a batch that cannot be parsed: its CRC matches, so the log is not damaged.
    """
    header = batch.header
    try:
        for record in read_records(batch):
            marker = read_end_marker(record, header.producer_id, header.producer_epoch)
            if marker is not None:
                return marker
    except MalformedBatchError:
        pass
    return None
