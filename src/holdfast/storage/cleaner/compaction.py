"""Compaction of a batch: keeps only the last record of every key (cleanup.policy=compact).

A record without a value is a tombstone. The first pass over it stamps its batch with a delete
horizon, delete.retention.ms away; a pass after the horizon drops it. Readers that lag less than
that have seen the deletion by then (KIP-534). Transaction markers are dropped the same way, once no
record of their transaction is left. Records of aborted transactions are dropped immediately.

Batches keep their offsets, and unchanged batches are copied byte for byte. The last batch of a live
producer stays even if it is empty; otherwise its sequence number would be lost. `cleaner` decides
which segments are cleaned, and when.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.model import Offset, ProducerId
from holdfast.protocol.records import (
    Batch,
    BatchBuilder,
    BatchOptions,
    Record,
    RecordBatchHeader,
    read_records,
)
from holdfast.storage.cleaner.offset_map import KeyMap
from holdfast.storage.log import Log
from holdfast.storage.segment.transaction_index import AbortedTransaction


@dataclass(slots=True)
class Cleaning:
    """The result of one run of the cleaner."""

    cleaned_below: Offset
    """The dirty part begins here; goes into the cleaner-offset-checkpoint."""
    records_read: int = 0
    records_kept: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    problem: str = ""
    """Why the run ended early: a damaged batch. The log cannot be cleaned until it is repaired."""


class Aborted:
    """Finds batches of aborted transactions."""

    __slots__ = ("_spans",)

    def __init__(self, transactions: Iterable[AbortedTransaction]) -> None:
        self._spans: dict[int, list[tuple[int, int]]] = {}
        for one in transactions:
            spans = self._spans.setdefault(one.producer_id, [])
            spans.append((one.first_offset, one.last_offset))
        for spans in self._spans.values():
            spans.sort()

    def has(self, header: RecordBatchHeader) -> bool:
        """Whether the batch is aborted. One producer's transactions do not overlap."""
        spans = self._spans.get(header.producer_id) if header.is_transactional else None
        if not spans:
            return False
        place = bisect_right(spans, (header.base_offset, 1 << 63)) - 1
        return place >= 0 and header.base_offset < spans[place][1]


@dataclass(slots=True)
class Sieve:
    """The second pass: filters batch by batch, in the order of the log."""

    log: Log
    keys: KeyMap
    """The last offset of every key in the dirty part."""
    aborted: Aborted
    end: Offset
    """The map does not cover batches from here on: they stay unchanged."""
    now_ms: int
    cleaning: Cleaning
    producers_with_records: set[int] = field(default_factory=set)
    """Producers with a record kept from their transaction since their last marker."""

    def sifted(self, batch: Batch) -> bytes | bytearray | memoryview | None:
        """The bytes to write for a batch; None if nothing is left."""
        header = batch.header
        if header.base_offset >= self.end:
            return batch.view
        if header.is_control:
            return self._cleaned_marker(batch)
        records = list(read_records(batch))
        self.cleaning.records_read += len(records)
        horizon = header.delete_horizon_ms
        kept = [] if self.aborted.has(header) else self._kept(records, horizon)
        self.cleaning.records_kept += len(kept)
        if kept and header.is_transactional:
            self.producers_with_records.add(header.producer_id)
        if not kept and not self._is_last_of_producer(header):
            return None
        has_tombstone = any(record.value is None for record in kept)
        if has_tombstone and horizon is None:
            horizon = self.now_ms + self.log.settings.delete_retention_ms
        elif not has_tombstone:
            horizon = None
        if len(kept) == header.record_count and horizon == header.delete_horizon_ms:
            return batch.view
        return _rebuilt(header, kept, horizon)

    def _kept(self, records: list[Record], horizon: int | None) -> list[Record]:
        is_over = horizon is not None and horizon <= self.now_ms
        return [
            record
            for record in records
            if record.key is not None
            and record.offset >= self.keys.last_offset(record.key)
            and not (is_over and record.value is None)
        ]

    def _cleaned_marker(self, batch: Batch) -> bytes | bytearray | memoryview | None:
        header = batch.header
        has_records = header.producer_id in self.producers_with_records
        self.producers_with_records.discard(header.producer_id)
        horizon = header.delete_horizon_ms
        if has_records or header.producer_id < 0:
            return batch.view
        if horizon is None:
            horizon = self.now_ms + self.log.settings.delete_retention_ms
            return _rebuilt(header, list(read_records(batch)), horizon)
        if horizon > self.now_ms:
            return batch.view
        return _rebuilt(header, [], None) if self._is_last_of_producer(header) else None

    def _is_last_of_producer(self, header: RecordBatchHeader) -> bool:
        known = self.log.producers.states.get(ProducerId(header.producer_id))
        return known is not None and known.last_offset == header.end_offset - 1


def _rebuilt(header: RecordBatchHeader, records: list[Record], horizon: int | None) -> bytearray:
    """The batch with fewer records or another horizon, otherwise unchanged."""
    builder = BatchBuilder(
        BatchOptions(
            base_offset=header.base_offset,
            leader_epoch=header.leader_epoch,
            compression=header.compression if records else 0,
            append_time_ms=header.max_timestamp if header.is_append_time else None,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            is_transactional=header.is_transactional,
            is_control=header.is_control,
            delete_horizon_ms=horizon,
        )
    )
    for record in records:
        headers = [(one.key, one.value) for one in record.headers]
        delta = record.offset - header.base_offset
        builder.append(record.value, record.key, record.timestamp, headers, offset_delta=delta)
    return builder.build(header.last_offset_delta)
