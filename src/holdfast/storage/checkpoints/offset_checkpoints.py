"""The checkpoints of one log directory: how far its logs are flushed, committed, kept and cleaned.

Checkpoints are written in the background (`begin`), or where something depends on them, before the
call returns (`write`). A background write takes its numbers when it begins. It does not replace a
file that was written since: the newer numbers may be lower.

A log start is kept in its file until the names of the segments that went are flushed: opening a log
drops what lies below it, whatever a power failure brings back.
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
    """Checkpoints on their way to the disk."""

    work: BackgroundWrite
    seen: Mapping[str, int]
    """How often each file had been given new content when this began."""
    starts: Mapping[TopicPartition, tuple[Log, Offset]]
    """Where the logs with segments to drop start, as this says."""


class DirectoryCheckpoints:
    """The four files, and what they say."""

    def __init__(self, disk: Disk, notes: list[str], logs: Logs) -> None:
        self._disk = disk
        self._logs = logs
        self._notes = notes
        self.high_watermarks = self._read(HIGH_WATERMARKS)
        self.cleaner_offsets = self._read(CLEANER_OFFSETS)
        self.recovery_points = self._read(RECOVERY_POINTS)
        self.log_starts = self._read(LOG_STARTS)
        self._says_too_much = False
        """Whether a file may tell of a log that was deleted."""
        self._writes: dict[str, int] = {}
        """How often each file has been given new content."""

    def _read(self, name: str) -> Offsets:
        try:
            return read_offsets(self._disk, name)
        except DamagedFileError as error:
            self._notes.append(f"{error}; worked out anew")
            return {}

    def forget(self, partition: TopicPartition) -> None:
        """Its log is gone."""
        for offsets in (
            self.recovery_points,
            self.log_starts,
            self.cleaner_offsets,
            self.high_watermarks,
        ):
            if offsets.pop(partition, None) is not None:
                self._says_too_much = True

    def forgotten(self) -> None:
        """Let the files say nothing of logs that are gone: a new log may have one of their names.

        Its start would have records of the new one deleted, its recovery point would have them
        believed.
        """
        if self._says_too_much:
            self.write(self._current({}))
            self._says_too_much = False

    def lower(self, partition: TopicPartition, log: Log) -> None:
        """The log was truncated. The files are written for all logs, so only if they say too much
        of this one.
        """
        wrong: dict[str, Offsets] = {}
        if self.cleaner_offsets.get(partition, _ZERO) > log.log_end_offset:
            # What follows a truncation is not clean: gaps in it would be no work of the cleaner.
            self.cleaner_offsets[partition] = log.log_end_offset
            wrong[CLEANER_OFFSETS] = self.cleaner_offsets
        if self.recovery_points.get(partition, _ZERO) > log.recovery_point:
            wrong[RECOVERY_POINTS] = self._current_recovery_points()
        if self.log_starts.get(partition, _ZERO) > log.log_start_offset:
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
        """All of them; they are on the disk when this returns."""
        self.write(self._current(high_watermarks))

    def write(self, files: Mapping[str, Offsets]) -> None:
        """Some of them; they are on the disk when this returns."""
        for path in files:
            self._writes[path] = self._writes.get(path, 0) + 1
        write_together(self._disk, {path: offsets_content(one) for path, one in files.items()})

    def begin(self, high_watermarks: Mapping[TopicPartition, Offset]) -> CheckpointWrite:
        """Begin to write all of them; the caller waits for the disk on another thread."""
        current = self._current(high_watermarks)
        contents = {path: offsets_content(offsets) for path, offsets in current.items()}
        starts = {
            partition: (log, log.log_start_offset)
            for partition, log in self._logs.items()
            if log.place_of(log.log_start_offset)
        }
        return CheckpointWrite(BackgroundWrite(self._disk, contents), dict(self._writes), starts)

    def put_in_place(self, write: CheckpointWrite) -> None:
        """The content is on the disk: give it its names, except where newer content has them."""
        write.work.put_in_place(lambda path: self._is_newest(write, path))

    def are_starts_newest(self, write: CheckpointWrite) -> bool:
        """Whether no log start has been written since."""
        return self._is_newest(write, LOG_STARTS)

    def _is_newest(self, write: CheckpointWrite, path: str) -> bool:
        return write.seen.get(path) == self._writes.get(path)
