"""Checkpoints of a log directory: recovery points, high watermarks, log starts, cleaner offsets.

Checkpoints are written in the background (`begin`), or, where something depends on them, before the
call returns (`write`). A background write takes its offsets when it begins. It does not replace a
file that was written since, because the newer offsets may be lower.

A log start stays in its file until the names of the dropped segments are flushed. Opening a log
drops everything below its start, so segments that a power failure brings back do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.model import Offset, TopicPartition
from holdfast.storage.batched_fsync import write_together
from holdfast.storage.checkpoints.background_write import BackgroundWrite
from holdfast.storage.checkpoints.checkpoint_file import (
    DamagedFileError,
    offsets_content,
    read_offsets,
)
from holdfast.storage.disk import Disk
from holdfast.storage.file_names import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
)
from holdfast.storage.log import Log

Offsets = dict[TopicPartition, Offset]
Logs = Mapping[TopicPartition, Log]
_ZERO = Offset(0)


class CheckpointWrite(NamedTuple):
    """A background write of checkpoints."""

    work: BackgroundWrite
    seen: Mapping[str, int]
    """How many times each file had been written when this began."""
    starts: Mapping[TopicPartition, tuple[Log, Offset]]
    """The log start offsets in this checkpoint, for logs with segments to drop."""


class DirectoryCheckpoints:
    """The four checkpoint files and their offsets."""

    def __init__(self, disk: Disk, notes: list[str], logs: Logs) -> None:
        self._disk = disk
        self._logs = logs
        self._notes = notes
        self.high_watermarks = self._read(HIGH_WATERMARKS)
        self.cleaner_offsets = self._read(CLEANER_OFFSETS)
        self.recovery_points = self._read(RECOVERY_POINTS)
        self.log_starts = self._read(LOG_STARTS)
        self._highest_starts = dict(self.log_starts)
        """The highest log starts that a file on the disk may have: a background write that omits
        one may not be complete."""
        self._has_deleted_logs = False
        """Whether a file may name a log that was deleted."""
        self._writes: dict[str, int] = {}
        """How many times each file has been written."""

    def _read(self, name: str) -> Offsets:
        try:
            return read_offsets(self._disk, name)
        except DamagedFileError as error:
            self._notes.append(f"{error}; rebuilt")
            return {}

    def forget(self, partition: TopicPartition) -> None:
        """Drop the offsets of a log that is gone."""
        for offsets in (
            self.recovery_points,
            self.log_starts,
            self._highest_starts,
            self.cleaner_offsets,
            self.high_watermarks,
        ):
            if offsets.pop(partition, None) is not None:
                self._has_deleted_logs = True

    def write_without_deleted(self) -> None:
        """Remove deleted logs from the files, because a new log may have the same name.

        The old log start would delete records of the new log; the old recovery point would keep
        recovery from verifying them.
        """
        if self._has_deleted_logs:
            self.write(self._current({}))
            self._has_deleted_logs = False

    def lower(self, partition: TopicPartition, log: Log) -> None:
        """The log was truncated: write the files in which its offsets are too high now."""
        wrong: dict[str, Offsets] = {}
        if self.cleaner_offsets.get(partition, _ZERO) > log.log_end_offset:
            # Records after a truncation are not clean: gaps in them are not the cleaner's.
            self.cleaner_offsets[partition] = log.log_end_offset
            wrong[CLEANER_OFFSETS] = self.cleaner_offsets
        if self.recovery_points.get(partition, _ZERO) > log.recovery_point:
            wrong[RECOVERY_POINTS] = self._current_recovery_points()
        if self._highest_starts.get(partition, _ZERO) > log.log_start_offset:
            wrong[LOG_STARTS] = self._current_log_starts()
        if wrong:
            self.write(wrong)

    def _current_recovery_points(self) -> Offsets:
        for partition, log in self._logs.items():
            self.recovery_points[partition] = log.recovery_point
        return self.recovery_points

    def _current_log_starts(self) -> Offsets:
        for partition, log in self._logs.items():
            is_inside = log.log_start_offset > log.segments[0].base_offset
            if is_inside or (log.log_start_offset and log.names.are_unflushed):
                self.log_starts[partition] = log.log_start_offset
            else:
                self.log_starts.pop(partition, None)
        return self.log_starts

    def _current(self, high_watermarks: Mapping[TopicPartition, Offset]) -> dict[str, Offsets]:
        self.high_watermarks.update(high_watermarks)
        return {
            RECOVERY_POINTS: self._current_recovery_points(),
            LOG_STARTS: self._current_log_starts(),
            HIGH_WATERMARKS: self.high_watermarks,
            CLEANER_OFFSETS: self.cleaner_offsets,
        }

    def write_all(self, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        """Write all files; they are on the disk when this returns."""
        self.write(self._current(high_watermarks))

    def write(self, files: Mapping[str, Offsets]) -> None:
        """Write these files; they are on the disk when this returns."""
        for path in files:
            self._writes[path] = self._writes.get(path, 0) + 1
        write_together(self._disk, {path: offsets_content(one) for path, one in files.items()})
        if LOG_STARTS in files:
            self._highest_starts = dict(files[LOG_STARTS])

    def begin(self, high_watermarks: Mapping[TopicPartition, Offset]) -> CheckpointWrite:
        """Begin to write all files; the caller waits for the disk on another thread."""
        current = self._current(high_watermarks)
        for partition, start in current[LOG_STARTS].items():
            known = self._highest_starts.get(partition, _ZERO)
            self._highest_starts[partition] = max(start, known)
        contents = {path: offsets_content(offsets) for path, offsets in current.items()}
        starts = {
            partition: (log, log.log_start_offset)
            for partition, log in self._logs.items()
            if log.place_of(log.log_start_offset)
        }
        return CheckpointWrite(BackgroundWrite(self._disk, contents), dict(self._writes), starts)

    def put_in_place(self, write: CheckpointWrite) -> None:
        """The content is on the disk: rename the files, except where newer content exists."""
        write.work.put_in_place(lambda path: self._is_newest(write, path))

    def are_starts_newest(self, write: CheckpointWrite) -> bool:
        """Whether no log start has been written since this write began."""
        return self._is_newest(write, LOG_STARTS)

    def _is_newest(self, write: CheckpointWrite, path: str) -> bool:
        return write.seen.get(path) == self._writes.get(path)
