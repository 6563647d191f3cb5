"""The cleaner: of every key only the last record stays (cleanup.policy=compact).

What may be cleaned: sealed and flushed segments, below the high watermark, below the first open
transaction, and older than min.compaction.lag.ms. Two passes: the first notes for every key the
last offset it has in the dirty part; the second writes the segments anew, without the records that
a later one of the same key replaces.

A record without a value is a tombstone. The first pass over it stamps its batch with a delete
horizon, delete.retention.ms away; a pass after the horizon drops it. In between every reader that
is not hopelessly behind has seen the deletion (KIP-534). Markers of transactions are dropped the
same way, once no record of their transaction is left; records of aborted ones go at once.

Batches keep their offsets, and what is not changed is copied byte for byte. The last batch of a
live producer stays even if it is empty, or its sequence would be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.model import Offset
from holdfast.protocol.records import (
    Batch,
    BatchBuilder,
    BatchOptions,
    Record,
    RecordBatchHeader,
    parse_header,
    read_records,
)
from holdfast.storage.log import Log
from holdfast.storage.names import CLEANED, SWAP
from holdfast.storage.reading import aborted_transactions
from holdfast.storage.scan import verified_batches
from holdfast.storage.segment import Segment
from holdfast.storage.transactions import AbortedTransaction


@dataclass(slots=True)
class Cleaning:
    """What one run of the cleaner did."""

    cleaned_below: Offset
    """The dirty part begins here; goes into the cleaner-offset-checkpoint."""
    records_read: int = 0
    records_kept: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


def dirty_ratio(log: Log, first_dirty: int, limit: int) -> float:
    """How much of what could be cleaned has not been, by bytes."""
    place = len(_cleanable(log, limit))
    sizes = [(segment.base_offset, segment.size) for segment in log.segments[:place]]
    total = sum(size for _, size in sizes)
    dirty = sum(size for base, size in sizes if base >= first_dirty)
    return dirty / total if total else 0.0


def cleanable_limit(log: Log, high_watermark: int, now_ms: int) -> Offset:
    """First offset that must not be touched yet."""
    limit = min(high_watermark, log.recovery_point, log.active.base_offset)
    undecided = log.producers.first_undecided()
    if undecided is not None:
        limit = min(limit, undecided)
    lag = log.settings.min_compaction_lag_ms
    for segment in log.segments if lag > 0 else ():
        if segment.highest_timestamp().timestamp > now_ms - lag:
            limit = min(limit, segment.base_offset)
            break
    return Offset(limit)


def _cleanable(log: Log, limit: int) -> list[Segment]:
    """Segments that end at or below the limit."""
    ends = [*(int(segment.base_offset) for segment in log.segments[1:]), log.log_end_offset]
    whole = [segment for segment, end in zip(log.segments, ends, strict=True) if end <= limit]
    return whole[: len(log.segments) - 1]


def clean(log: Log, first_dirty: int, high_watermark: int, now_ms: int) -> Cleaning:
    """Clean everything that may be cleaned; `first_dirty` is what the last run gave back."""
    limit = cleanable_limit(log, high_watermark, now_ms)
    segments = _cleanable(log, limit)
    if not segments or not log.settings.is_compacted:
        return Cleaning(Offset(max(first_dirty, log.segments[0].base_offset)))
    end = log.segments[len(segments)].base_offset
    aborted = aborted_transactions(log, segments[0].base_offset, end)
    cleaning = Cleaning(end)
    pass_ = _Pass(log, _latest_offsets(segments, first_dirty, aborted), aborted, now_ms, cleaning)
    for group in _groups(log, segments):
        pass_.rewrite(group)
    return cleaning


def _latest_offsets(
    segments: Sequence[Segment], first_dirty: int, aborted: list[AbortedTransaction]
) -> dict[bytes, int]:
    """The last offset of every key in the dirty part."""
    latest: dict[bytes, int] = {}
    for segment in segments:
        for found in verified_batches(segment.file, 0, segment.size):
            header = found.header
            if header.end_offset <= first_dirty or header.is_control:
                continue
            if _is_aborted(header, aborted):
                continue
            for record in read_records(found.batch()):
                if record.key is not None:
                    latest[bytes(record.key)] = record.offset
    return latest


def _is_aborted(header: RecordBatchHeader, aborted: list[AbortedTransaction]) -> bool:
    return header.is_transactional and any(
        one.producer_id == header.producer_id
        and one.first_offset <= header.base_offset < one.last_offset
        for one in aborted
    )


def _groups(log: Log, segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Neighbours that fit into one segment together: cleaning leaves many small ones otherwise."""
    group: list[Segment] = []
    size = 0
    for segment in segments:
        last = group[0].base_offset + (1 << 31) - 1 if group else 0
        following = log.segments[log.segments.index(segment) + 1].base_offset
        if group and (size + segment.size > log.settings.segment_bytes or following > last):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group


@dataclass(slots=True)
class _Pass:
    """The second pass."""

    log: Log
    latest: dict[bytes, int]
    aborted: list[AbortedTransaction]
    now_ms: int
    cleaning: Cleaning
    producers_with_records: set[int] = field(default_factory=set)
    """Producers of whose transaction a record has been kept since their last marker."""

    def rewrite(self, group: list[Segment]) -> None:
        """Put one clean segment in the place of a group."""
        log = self.log
        self.cleaning.bytes_before += sum(segment.size for segment in group)
        target = Segment.create(
            log.disk,
            log.directory,
            group[0].base_offset,
            log.settings.index_interval_bytes,
            CLEANED,
        )
        for segment in group:
            for found in verified_batches(segment.file, 0, segment.size):
                kept = self.cleaned(found.batch())
                if kept is not None:
                    target.append([kept], [parse_header(kept)])
        for one in self._still_aborted(group):
            target.add_aborted(one)
        target.become_sealed()
        target.flush()
        self.cleaning.bytes_after += target.size
        self._swap(group, target)

    def _still_aborted(self, group: list[Segment]) -> list[AbortedTransaction]:
        """Their records are gone, but a reader in the middle of one may still ask."""
        return [one for segment in group for one in segment.transactions()]

    def _swap(self, group: list[Segment], target: Segment) -> None:
        """Three steps, each on the disk before the next; `leftovers` finishes what a crash cuts."""
        log = self.log
        target.rename_to(SWAP)
        log.disk.flush_directory(log.directory)
        due = self.now_ms + log.settings.file_delete_delay_ms
        for segment in group:
            log.deletions.schedule(segment, segment.mark_deleted(), due)
            # Oldest first and one by one: a crash must not leave a record whose tombstone went.
            log.disk.flush_directory(log.directory)
        target.rename_to("")
        log.disk.flush_directory(log.directory)
        log.replace_segments(group, target)

    def cleaned(self, batch: Batch) -> bytes | bytearray | memoryview | None:
        """What is to be written of a batch; None: nothing."""
        header = batch.header
        if header.is_control:
            return self._cleaned_marker(batch)
        records = list(read_records(batch))
        self.cleaning.records_read += len(records)
        horizon = header.delete_horizon_ms
        kept = [] if _is_aborted(header, self.aborted) else self._kept(records, horizon)
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
            and record.offset >= self.latest.get(bytes(record.key), -1)
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
        entry = self.log.producers.entries.get(header.producer_id)
        return entry is not None and entry.last_offset == header.end_offset - 1


def _rebuilt(header: RecordBatchHeader, records: list[Record], horizon: int | None) -> bytearray:
    """The batch with fewer records or another horizon; everything else as it was."""
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
