"""Opens a log after a clean shutdown, or recovers it after a crash.

After a clean shutdown this reads only names, the end of the last segment and its indexes.
Otherwise it verifies every batch above the recovery point, and truncates the log at the first bad
one: the bytes after it were written later and cannot be trusted. It reads the segment with the
recovery point from its first byte, because it has to rebuild the segment's indexes and producer
state anyway.

A batch is bad if its CRC does not match, its offset falls, or its leader epoch falls. A gap inside
a segment is not damage: bytes that a power failure takes leave a hole in the file, not two adjacent
batches. The cleaner made the gap, here or on the leader that the segment was copied from, whatever
cleanup.policy is now. But no CRC covers a base offset: a batch after a gap is bad if the next batch
would follow without it, or if it is the last one and the only gap of a log that was never
compacted. A gap between two segments may also mean that the earlier file lost its end; so a gap
there is accepted only in a log with gaps, after a segment that is known to be complete.

Damaged indexes, snapshots and checkpoints never stop a start. The report names each one that was
rejected.

Any thread may run this, alone with this log's files: several logs may be opened at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.core import ProducerState, ProducerStates
from holdfast.model import NO_EPOCH, LeaderEpoch, Offset
from holdfast.protocol.records import MalformedBatchError, RecordBatchHeader
from holdfast.protocol.records.batch_header import LENGTH_END
from holdfast.storage.disk import Disk
from holdfast.storage.file_names import COMPACTED, LOG, TRANSACTION_INDEX
from holdfast.storage.log import Log
from holdfast.storage.log_settings import LogSettings
from holdfast.storage.producers.producer_snapshot import snapshot_path
from holdfast.storage.producers.replay import feed, replay, snapshot_offsets
from holdfast.storage.recovery.crash_cleanup import tidy_directory
from holdfast.storage.recovery.epoch_recovery import RecoveredEpochs
from holdfast.storage.segment.batch_scan import BadBatchError, Run, base_after, verified_runs
from holdfast.storage.segment.segment import LARGEST_RELATIVE_OFFSET, Segment

_ZERO = Offset(0)


class LastKnown(NamedTuple):
    """The broker-wide checkpoints of one log. Any of them may be wrong or missing."""

    is_clean: bool = False
    """The last process closed every log. Only this is trusted without a check."""
    recovery_point: Offset = _ZERO
    log_start_offset: Offset = _ZERO
    cleaned_below: Offset = _ZERO
    """Compaction may have left gaps below this offset."""


UNKNOWN = LastKnown()


@dataclass(slots=True)
class Report:
    """What opening a log had to repair."""

    notes: list[str] = field(default_factory=list)
    verified_bytes: int = 0
    truncated_bytes: int = 0


class OpenedLog(NamedTuple):
    """An open log, and the report of its recovery."""

    log: Log
    report: Report


def open_log(
    disk: Disk,
    directory: str,
    settings: LogSettings,
    known: LastKnown = UNKNOWN,
) -> OpenedLog:
    """Open the log in a directory that exists; an empty one becomes an empty log."""
    report = Report()
    found = tidy_directory(disk, directory, report.notes)
    interval = settings.index_interval_bytes
    segments = [Segment(disk, directory, base, interval) for base in found.bases]
    start = Offset(max(known.log_start_offset, segments[0].base_offset if segments else 0))
    _drop_below(start, segments, found.snapshots, report)
    opening = _Opening(disk, directory, settings, report, segments, start)
    if not segments:
        opening.begin_at(start)
    elif known.is_clean and opening.trusts_end():
        opening.take_over(found.snapshots)
    else:
        opening.recover(known, found.snapshots)
    opening.check_start()
    return OpenedLog(opening.log(known), report)


def _drop_below(
    start: Offset, segments: list[Segment], snapshots: list[int], report: Report
) -> None:
    """Drop segments below the start. A power failure may have brought back any of them."""
    while len(segments) > 1 and segments[1].base_offset <= start:  # Ends with the segments.
        segment = segments.pop(0)
        report.notes.append(f"{segment.path(LOG)}: below the log's start {start}; removed")
        for path in segment.mark_deleted():
            segment.disk.remove(path)
        if segment.base_offset in snapshots:
            snapshots.remove(segment.base_offset)
            segment.disk.remove(snapshot_path(segment.directory, segment.base_offset))


class _Opening:
    """The opening of one log."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        report: Report,
        segments: list[Segment],
        start: Offset,
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.settings = settings
        self.report = report
        self.segments = segments
        self.start = start
        self.end = start
        self.producers = ProducerStates()
        self.epochs = RecoveredEpochs(disk, directory, report.notes)
        self.at_bases: dict[Offset, list[ProducerState]] = {}
        """The producers at the base of each verified segment that has no snapshot yet."""
        self.has_gaps = settings.is_compacted or disk.exists(f"{directory}/{COMPACTED}")
        """Whether the log was compacted here, or has a gap that a leader's cleaner made."""
        self.proved: dict[int, None] = {}
        """Offsets below which nothing was lost, apart from what the cleaner removed."""

    def begin_at(self, offset: Offset) -> None:
        """Start an empty log."""
        # A restart that was killed leaves the snapshots of the records that it removed.
        self._remove_snapshots(snapshot_offsets(self.disk, self.directory))
        segment = Segment.create(
            self.disk, self.directory, offset, self.settings.index_interval_bytes
        )
        self.segments = [segment]
        self.start = self.end = offset
        self.epochs.clear()

    # After a clean shutdown.

    def trusts_end(self) -> bool:
        """Find the end from the last segment's index and the batches after it; False if damaged."""
        try:
            self.end = self.segments[-1].end_offset()
        except BadBatchError as error:
            self.report.notes.append(f"{error}; the log is verified")
            return False
        return True

    def take_over(self, snapshots: list[int]) -> None:
        """Trust what the last process wrote."""
        self.segments[-1].activate()
        self._replay_producers(self.segments, self.start, self.end, snapshots)
        self.epochs.load(self.segments, self.start, self.end)
        self.epochs.write()

    def _replay_producers(
        self, segments: list[Segment], start: Offset, end: Offset, snapshots: list[int]
    ) -> None:
        replay(self.producers, self.disk, self.directory, segments, start, end, snapshots)

    # After a crash.

    def recover(self, known: LastKnown, snapshots: list[int]) -> None:
        """Verify from the recovery point on, and truncate at the first bad batch."""
        place = self._first_to_verify(known.recovery_point)
        first = self.segments[place]
        # Later snapshots may cover lost records.
        lowest, base = Offset(max(self.segments[0].base_offset, 0)), Offset(first.base_offset)
        self._replay_producers(self.segments[:place], lowest, base, snapshots)
        self.epochs.load(self.segments[:place], self.start, base)
        # A segment follows after a gap only if the one before it is known to be complete: by the
        # cleaner's checkpoint, or by the name of a snapshot (`pending_writes`).
        self.proved = dict.fromkeys(snapshots)
        self.has_gaps = self.has_gaps or known.cleaned_below > 0
        self.end = first.base_offset
        for index in range(place, len(self.segments)):
            segment = self.segments[index]
            if not self._follows(segment, known.cleaned_below, is_first=index == place):
                self._drop_from(index)
                break
            if index and int(segment.base_offset) not in self.proved:
                base = segment.base_offset
                self.at_bases[base] = self.producers.snapshot_at(base)
            if not self._verify(segment, self._limit_of(index)):
                self._drop_from(index + 1)
                break
            if not segment.is_active:
                segment.close()  # There may be more segments than descriptors.
        if not self.segments[-1].is_active:
            self.segments[-1].activate()
        self._remove_snapshots([offset for offset in snapshots if offset > self.end])
        self.epochs.cache.truncate_to(self.end)
        self.epochs.write()

    def _first_to_verify(self, recovery_point: Offset) -> int:
        places = [
            place
            for place, segment in enumerate(self.segments)
            if segment.base_offset <= recovery_point
        ]
        return places[-1] if places else 0

    def _follows(self, segment: Segment, gaps_below: Offset, *, is_first: bool) -> bool:
        """Whether a segment can follow the verified part."""
        base = segment.base_offset
        if is_first or base == self.end:
            return True
        # Only a log with gaps has one here, except one that is too wide for the indexes.
        may_jump = self.has_gaps or base - self.end > LARGEST_RELATIVE_OFFSET
        if base > self.end and (self.end < gaps_below or (may_jump and int(base) in self.proved)):
            return True
        self.report.notes.append(
            f"{self.directory}: segment {base} does not follow offset {self.end}; dropped"
        )
        return False

    def _limit_of(self, place: int) -> int:
        """The first offset that cannot be in a segment: no CRC covers base offsets."""
        limit = self.segments[place].base_offset + LARGEST_RELATIVE_OFFSET + 1
        following = self.segments[place + 1 : place + 2]
        return min([limit, *(one.base_offset for one in following)])

    def _verify(self, segment: Segment, limit: int) -> bool:
        """Verify and index one segment; False if it had to be truncated."""
        segment.start_empty()
        if self.disk.exists(segment.path(TRANSACTION_INDEX)):
            self.disk.remove(segment.path(TRANSACTION_INDEX))
        self.end = Offset(max(self.end, segment.base_offset))
        good = 0
        reason = ""
        try:
            for run in verified_runs(segment.file, 0, segment.size):
                good, reason = self._take_run(segment, run, limit)
                del run  # As in `verified_runs`.
                if reason:
                    break
        except (BadBatchError, MalformedBatchError) as error:
            reason = error.reason
        self.report.verified_bytes += good
        if segment is not self.segments[-1] and not reason:
            segment.become_sealed()
        if not reason:
            return True
        size = segment.size - good
        self.report.truncated_bytes += size
        self.report.notes.append(
            f"{segment.file.path}: byte {good}, offset {self.end}: {reason}; {size} bytes truncated"
        )
        segment.file.truncate(good)
        segment.file.flush()
        return False

    def _take_run(self, segment: Segment, run: Run, limit: int) -> tuple[int, str]:
        """Index verified batches; returns how far they are valid, and why not further.

        A segment may have a million batches, so this reads fields by position.
        """
        end: int = self.end
        epochs = self.epochs.cache
        latest = epochs.latest_epoch
        place = 0
        for number, fields in enumerate(run.batches):
            base, epoch = fields[0], fields[2]
            if base != end or epoch != latest:
                is_outside = base < end or base + fields[6] >= limit
                if base > end and not is_outside:
                    is_outside = not self._is_gap(segment, run, number, end)
                if is_outside or NO_EPOCH < epoch < latest:
                    self.end = Offset(end)
                    segment.note_run(run._replace(batches=run.batches[:number]))
                    return run.start + place, _objection(base, end, epoch, latest)
                if epoch > latest:
                    epochs.assign(LeaderEpoch(epoch), Offset(base))
                    latest = epochs.latest_epoch
            end = base + fields[6] + 1
            if fields[9] >= 0:
                self._note_producer(segment, RecordBatchHeader._make(fields), run, place)
            place += fields[1] + LENGTH_END
        self.end = Offset(end)
        segment.note_run(run)
        return run.end, ""

    def _is_gap(self, segment: Segment, run: Run, number: int, end: int) -> bool:
        """Whether offsets are missing before a batch; otherwise its base offset is damaged."""
        fields = run.batches[number]
        after = base_after(segment.file, run, number, segment.size)
        if after is None or after < end:  # Recovery truncates the log after this batch.
            return self.has_gaps or segment is not self.segments[-1]
        is_gap = after > fields[0] + fields[6]
        self.has_gaps = self.has_gaps or is_gap
        return is_gap

    def _note_producer(
        self, segment: Segment, header: RecordBatchHeader, run: Run, place: int
    ) -> None:
        aborted = feed(self.producers, header, run.batch(place) if header.is_control else None)
        if aborted is not None:
            segment.add_aborted(aborted)

    def _drop_from(self, place: int) -> None:
        """Newest first, each durable before the next: a crash here leaves no hole."""
        for segment in reversed(self.segments[place:]):
            self.report.truncated_bytes += segment.size
            segment.close()
            for path in segment.mark_deleted():
                self.disk.remove(path)
            self.disk.flush_directory(self.directory)
        del self.segments[place:]

    def _remove_snapshots(self, offsets: list[int]) -> None:
        for offset in offsets:
            self.disk.remove(snapshot_path(self.directory, offset))
        if offsets:
            # One that came back would be taken for the state of other records at this offset.
            self.disk.flush_directory(self.directory)

    # Both cases.

    def check_start(self) -> None:
        """Start again at the log start if the log ends below it: those records were deleted."""
        if self.end >= self.start:
            return
        self.report.notes.append(
            f"{self.directory}: ends at {self.end}, before its start {self.start}; restarted there"
        )
        self._drop_from(0)
        self.producers.restore()
        self.at_bases = {}
        self.begin_at(self.start)

    def log(self, known: LastKnown) -> Log:
        """The open log."""
        point = self.end if known.is_clean else min(known.recovery_point, self.end)
        log = Log(
            self.disk,
            self.directory,
            self.settings,
            segments=self.segments,
            epochs=self.epochs.cache,
            producers=self.producers,
            bounds=(self.start, self.end, Offset(max(0, point))),
        )
        self.segments[-1].reserve_indexes(self.settings.segment_index_bytes)
        log.names.changed()
        if self.epochs.is_behind:
            log.epoch_file.not_written()
        for base, states in self.at_bases.items():
            # The next flush writes these snapshots. Without them nothing would prove a gap that the
            # cleaner leaves between these segments.
            log.snapshots.add(base, states)
        for segment in self.segments[log.place_of(point) :]:
            # A killed process may have left bytes here that are only in the page cache. We serve
            # and acknowledge them, so the next flush must cover them.
            segment.is_dirty = True
        return log


def _objection(base: int, end: int, epoch: int, latest: int) -> str:
    if base != end:
        return f"offset {base} instead of {end}"
    return f"leader epoch {epoch} after {latest}"
