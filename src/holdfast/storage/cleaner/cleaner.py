"""Decides when a compacted log is cleaned, and cleans it in small steps.

`cleaning_need` applies Kafka's two rules: a log needs cleaning if its dirty part has grown beyond
min.cleanable.dirty.ratio, or if a record in it has waited longer than max.compaction.lag.ms. The
broker calls it periodically for every compacted log, cleans the one with the highest ratio, and
keeps `cleaned_below` in the cleaner-offset-checkpoint.

`Cleaner` cleans one log, a bounded number of records per step. Between two steps the log stays in
use: appends, reads, rolls, flushes and retention may happen. A truncation, or the deletion of a
segment that is being cleaned, ends the run without harm and discards its unfinished segment. A swap
that has begun is completed first (`Log.finish_swap`), because half of it would leave a hole.

Everything runs on the thread that owns the log, with one exception: when a step returns FLUSH, the
caller may run `flush` on another thread, and wait for it, before the next step. It is the only call
that can take long: it waits for the bytes of the new file, or for the names in the directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from holdfast.model import Offset
from holdfast.protocol.records import MalformedBatchError, parse_header, read_records
from holdfast.storage.background_flush import SegmentFlush
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.cleaner.compaction import Aborted, Cleaning, Sieve
from holdfast.storage.cleaner.offset_map import KeyMap
from holdfast.storage.file_names import CLEANED, SEGMENT_KINDS, SWAP
from holdfast.storage.log import Log, no_swap
from holdfast.storage.log_reader import aborted_transactions
from holdfast.storage.segment.batch_scan import BadBatchError, FoundBatch, verified_batches
from holdfast.storage.segment.segment import LARGEST_RELATIVE_OFFSET, Segment

DEDUPE_BUFFER_BYTES = 128 << 20
"""log.cleaner.dedupe.buffer.size"""
STEP_RECORDS = 1_000
"""A step ends after so many records, or as many KiB: a few milliseconds."""


class CleaningNeed(NamedTuple):
    """Whether a log should be cleaned, and how urgently."""

    is_wanted: bool
    ratio: float
    """The dirty share of the cleanable bytes. The log with the highest ratio goes first."""
    overdue_ms: int
    """How long a record has waited beyond max.compaction.lag.ms; 0 if none has."""
    first_dirty: Offset
    """The offset to give to `Cleaner`: the checkpoint's, or the log start if that is invalid."""
    limit: Offset
    """First offset that must not be cleaned yet."""


def cleaning_need(log: Log, checkpointed: int, high_watermark: int, now_ms: int) -> CleaningNeed:
    """Whether to clean now. `checkpointed` is `cleaned_below` of the last run, or 0."""
    start = max(log.log_start_offset, log.segments[0].base_offset)
    is_possible = start <= checkpointed <= log.active.base_offset
    first_dirty = Offset(checkpointed) if is_possible else Offset(start)
    limit = cleanable_limit(log, high_watermark, now_ms)
    if not log.settings.is_compacted or log.offline is not None:
        return CleaningNeed(False, 0.0, 0, first_dirty, limit)
    ratio = dirty_ratio(log, first_dirty, limit)
    overdue_ms = _overdue_ms(log, first_dirty, now_ms)
    is_wanted = ratio > log.settings.min_cleanable_dirty_ratio or (overdue_ms > 0 and ratio > 0)
    return CleaningNeed(is_wanted, ratio, overdue_ms, first_dirty, limit)


def _overdue_ms(log: Log, first_dirty: int, now_ms: int) -> int:
    """Counted from the first batch of each dirty, sealed segment, as Kafka does."""
    lag = max(log.settings.max_compaction_lag_ms, log.settings.min_compaction_lag_ms)
    dirty = log.segments[log.place_of(first_dirty) : -1]
    starts = [begun for segment in dirty if (begun := segment.age_starts_at()) is not None]
    return max(0, now_ms - lag - min(starts)) if starts else 0


def dirty_ratio(log: Log, first_dirty: int, limit: int) -> float:
    """The dirty share of the cleanable bytes."""
    whole = _cleanable(log, limit)
    ends = [segment.base_offset for segment in log.segments[1 : len(whole) + 1]]
    sizes = [(end, segment.size) for segment, end in zip(whole, ends, strict=True)]
    total = sum(size for _, size in sizes)
    return sum(size for end, size in sizes if end > first_dirty) / total if total else 0.0


def cleanable_limit(log: Log, high_watermark: int, now_ms: int) -> Offset:
    """First offset that must not be cleaned yet."""
    stable = log.producers.last_stable_offset(high_watermark)
    limit = min(stable, log.recovery_point, log.active.base_offset)
    lag = log.settings.min_compaction_lag_ms
    for segment in log.segments if lag > 0 else ():
        if segment.highest_timestamp().timestamp > now_ms - lag:
            limit = min(limit, segment.base_offset)
            break
    return Offset(limit)


def _cleanable(log: Log, limit: int) -> list[Segment]:
    """Segments that end at or below the limit."""
    ends = [int(segment.base_offset) for segment in log.segments[1:]]
    return [segment for segment, end in zip(log.segments, ends, strict=False) if end <= limit]


class Progress(Enum):
    """The result of a step."""

    MORE = "more"
    FLUSH = "flush"
    """The caller may run `flush` on another thread before the next step; else the step does it."""
    DONE = "done"


class _Flush:
    """A flush that may run on any thread."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._is_done = False
        self._error: OSError | None = None

    def run(self) -> None:
        """Run it on another thread; keeps an error for `ensure`."""
        try:
            self._work()
        except OSError as error:
            self._error = error
        self._is_done = True

    def ensure(self) -> None:
        """Run it now, on the log's thread, unless it has been run. Raises OSError if it failed."""
        if not self._is_done:
            self._work()
        if self._error is not None:
            raise self._error


class Cleaner:
    """One run over one log: as many keys as fit into the map; the next run takes the rest."""

    def __init__(
        self,
        log: Log,
        first_dirty: int,
        high_watermark: int,
        now_ms: int,
        map_bytes: int = DEDUPE_BUFFER_BYTES,
    ) -> None:
        self.result = Cleaning(Offset(max(first_dirty, log.segments[0].base_offset)))
        """The result so far. `cleaned_below` rises at the end of the run."""
        self.has_given_up = False
        """The log was truncated, deleted or damaged meanwhile: ignore the result."""
        self._log = log
        self._now_ms = now_ms
        self._keys = KeyMap(map_bytes)
        self._target: Segment | None = None
        """Discarded if the run ends early."""
        self._swapping: Iterator[int] = iter(())
        self._flush: _Flush | None = None
        self._truncations = log.truncations
        limit = cleanable_limit(log, high_watermark, now_ms)
        self._sources = _cleanable(log, limit) if log.settings.is_compacted else []
        self._work: Iterator[int] = self._run(first_dirty)

    def step(self) -> Progress:
        """A few milliseconds of work. Raises LogOfflineError if the disk fails."""
        spent = 0
        try:
            if self._is_stale():
                self._give_up()
            for cost in self._work:  # At most STEP_RECORDS rounds: each costs something.
                spent += cost
                if cost == 0:
                    return Progress.FLUSH
                if spent >= STEP_RECORDS:
                    return Progress.MORE
        except OSError as error:
            raise self._log.fail(error) from error
        except (BadBatchError, MalformedBatchError, DamagedFileError) as error:
            self.result.problem = str(error)
            self._give_up()
        return Progress.DONE

    def flush(self) -> None:
        """Run the flush that the last step asked for. Any thread may call this."""
        if self._flush is not None:
            self._flush.run()

    def _flushed(self, work: Callable[[], None]) -> Iterator[int]:
        """Leave a flush to the caller; run it at the next step if the caller did not."""
        flush = self._flush = _Flush(work)
        yield 0
        flush.ensure()
        self._flush = None

    def _names_flushed(self) -> Iterator[int]:
        log = self._log
        return self._flushed(lambda: log.disk.flush_directory(log.directory))

    def _is_stale(self) -> bool:
        """Whether the log has lost or changed a segment that this run reads."""
        log = self._log
        return (
            log.offline is not None
            or log.truncations != self._truncations
            or any(segment.state or segment.is_active for segment in self._sources)
        )

    def _give_up(self) -> None:
        target, self._target = self._target, None
        self._work = iter(())
        self.has_given_up = True
        if target is not None:
            target.close()
            for kind in SEGMENT_KINDS:
                if self._log.disk.exists(target.path(kind)):
                    self._log.disk.remove(target.path(kind))

    def _run(self, first_dirty: int) -> Iterator[int]:
        """The two passes. Yields the cost of each batch, and 0 where a flush is due."""
        log, sources = self._log, self._sources
        if not sources:
            return
        last = log.segments[len(sources)].base_offset
        aborted = Aborted(aborted_transactions(log, sources[0].base_offset, last))
        end = Offset(first_dirty)
        for segment in log.segments[log.place_of(first_dirty) : len(sources)]:
            for found in verified_batches(segment.file, 0, segment.size):
                if self._keys.is_full:
                    break
                yield self._map(found, first_dirty, aborted)
                end = Offset(max(end, found.header.end_offset))
            else:
                # Compaction may have removed the last offsets of a segment.
                following = log.segments[log.segments.index(segment) + 1].base_offset
                end = Offset(max(end, following))
                continue
            break
        sieve = Sieve(log, self._keys, aborted, end, self._now_ms, self.result)
        groups = [*_groups(log, [one for one in sources if one.base_offset < end])]
        for group in groups:
            yield from self._rewrite(group, sieve)
        self.result.cleaned_below = end

    def _map(self, found: FoundBatch, first_dirty: int, aborted: Aborted) -> int:
        header = found.header
        if header.end_offset <= first_dirty or header.is_control or aborted.has(header):
            return 1
        for record in read_records(found.batch()):
            if record.key is not None:
                self._keys.put(record.key, record.offset)
        return _cost(found)

    def _rewrite(self, group: list[Segment], sieve: Sieve) -> Iterator[int]:
        """Replace a group of segments with one clean segment."""
        log = self._log
        before = sum(segment.size for segment in group)
        target = self._target = Segment.create(
            log.disk,
            log.directory,
            group[0].base_offset,
            log.settings.index_interval_bytes,
            CLEANED,
        )
        for segment in group:
            for found in verified_batches(segment.file, 0, segment.size):
                kept = sieve.sifted(found.batch())
                if kept is not None:
                    target.append([kept], [parse_header(kept)])
                yield _cost(found)
        for segment in group:
            # Their records are gone, but a reader inside such a transaction may still need them.
            for one in segment.transactions():
                target.add_aborted(one)
        target.become_sealed()
        files = SegmentFlush(target)
        try:
            yield from self._flushed(files.run)
        finally:
            files.close()
        files.end()
        self.result.bytes_before += before
        self.result.bytes_after += target.size
        self._target = None
        self._sources = [segment for segment in self._sources if segment not in group]
        self._swapping = self._swap(group, target)
        log.finish_swap = self._finish_swap
        yield from self._swapping

    def _finish_swap(self) -> None:
        for _ in self._swapping:  # At most four rounds, and one for each segment.
            pass

    def _swap(self, group: list[Segment], target: Segment) -> Iterator[int]:
        """Three steps, each durable before the next; `crash_cleanup` completes them after a crash.

        Before them the first swap of a log marks it: recovery then accepts its gaps. Until
        the last step the log uses the old segments, even if they are already renamed.
        """
        log = self._log
        if log.names.mark_compacted():
            yield from self._names_flushed()
        target.rename_to(SWAP)
        yield from self._names_flushed()
        gone: list[tuple[Segment, list[str]]] = []
        for segment in group:
            gone.append((segment, segment.mark_deleted()))
            # Oldest first and one by one: a crash must not leave a record without its tombstone.
            yield from self._names_flushed()
        target.rename_to("")
        yield from self._names_flushed()
        log.finish_swap = no_swap
        log.replace_segments(group, target)
        due = self._now_ms + log.settings.file_delete_delay_ms
        for segment, paths in gone:
            log.deletions.schedule(segment, paths, due)


def _cost(found: FoundBatch) -> int:
    return max(1, found.header.record_count, found.header.size >> 10)


def _groups(log: Log, segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Group adjacent segments that fit into one; otherwise cleaning would leave many small ones."""
    group: list[Segment] = []
    size = 0
    for place, segment in enumerate(segments):
        following = log.segments[place + 1].base_offset
        is_far = group and following > group[0].base_offset + LARGEST_RELATIVE_OFFSET
        if group and (is_far or size + segment.size > log.settings.segment_bytes):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group
