"""One log directory of a broker: one process at a time, many logs, a few files about all of them.

Logs are opened when they are first asked for, so a start costs a listing. What the checkpoints say
of a log that was not opened is carried over as it is.

The order that everything hangs on: the mark of a clean shutdown is removed, durably, before the
first log is opened, and written after the last one has been flushed and closed. A recovery point
is written after the flush it tells of, and written anew when a truncation lowers it, before
anything can be appended: a point above unflushed records would keep recovery from looking at them.

Checkpoints are written in the background (`checkpoint`), or where something depends on them, before
the call returns (`write_checkpoints`). A background write takes its numbers when it begins. It does
not replace a file that was written since: the newer numbers may be lower.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from holdfast.model import Offset, TopicPartition
from holdfast.storage.background_write import BackgroundWrite
from holdfast.storage.checkpoints import (
    DamagedFileError,
    offsets_content,
    read_offsets,
    write_offsets,
)
from holdfast.storage.deletions import Removal
from holdfast.storage.disk import Disk, Lock
from holdfast.storage.errors import LogClosedError, LogOfflineError
from holdfast.storage.found_logs import is_unused, partitions_on
from holdfast.storage.log import Log
from holdfast.storage.names import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOCK,
    LOG_STARTS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    is_deleted_directory,
)
from holdfast.storage.opening import LogOpening
from holdfast.storage.properties import (
    CleanShutdownMarker,
    read_clean_shutdown,
    read_topic_id,
    remove_clean_shutdown,
    topic_id_content,
    write_clean_shutdown,
    write_topic_id,
)
from holdfast.storage.recovery import LastKnown, OpenedLog, open_log
from holdfast.storage.settings import LogSettings
from holdfast.storage.together import flush_new, write_together

SettingsOf = Callable[[TopicPartition], LogSettings]
Offsets = dict[TopicPartition, Offset]
_ZERO = Offset(0)


class DeletedDirectory(NamedTuple):
    """A deleted partition, and when its files may go."""

    due_ms: int
    name: str


class CheckpointWrite(NamedTuple):
    """Checkpoints on their way to the disk."""

    work: BackgroundWrite
    seen: Mapping[str, int]
    """How often each file had been given new content when this began."""


class LogDirectory:
    """All logs below one root. Held until it is closed."""

    def __init__(self, disk: Disk, settings_of: SettingsOf) -> None:
        self.disk = disk
        self.settings_of = settings_of
        self.id = ""
        """directory.id of meta.properties, once that has been read."""
        self.notes: list[str] = []
        """What was found damaged or left over, and what was done about it."""
        self.logs: dict[TopicPartition, Log] = {}
        self._lock: Lock = disk.lock(LOCK)
        self.last_shutdown = self._read_marker()
        self._has_marker = True
        self.high_watermarks = self._read(HIGH_WATERMARKS)
        """As the last process left them: a start for followers and leaders to agree from."""
        self.cleaner_offsets = self._read(CLEANER_OFFSETS)
        self._recovery_points = self._read(RECOVERY_POINTS)
        self._log_starts = self._read(LOG_STARTS)
        self._says_too_much = False
        """Whether a checkpoint on the disk may tell of a log that was deleted."""
        self._writes: dict[str, int] = {}
        """How often each checkpoint has been given new content."""
        self._deleted: list[DeletedDirectory] = []
        self.partitions = self._find()

    def _read_marker(self) -> CleanShutdownMarker | None:
        try:
            return read_clean_shutdown(self.disk)
        except DamagedFileError as error:
            self.notes.append(f"{error}; taken for an unclean shutdown")
            return None

    def _changes(self) -> None:
        """Something below is about to change, and the mark of a clean shutdown holds no more.

        Not before: a process that only looks, and finds that this is not its directory, must not
        make the next one take it for crashed.
        """
        if self._has_marker:
            self._has_marker = False
            remove_clean_shutdown(self.disk)

    def _read(self, name: str) -> Offsets:
        try:
            return read_offsets(self.disk, name)
        except DamagedFileError as error:
            self.notes.append(f"{error}; worked out anew")
            return {}

    def _find(self) -> dict[TopicPartition, str]:
        """The partitions that have a directory here."""
        for entry in self.disk.list(""):
            if entry.is_directory and is_deleted_directory(entry.name):
                self._deleted.append(DeletedDirectory(0, entry.name))
        return partitions_on(self.disk)

    def is_unused(self, partition: TopicPartition) -> bool:
        """Whether this log has never had a record or a leader: its creation was not completed."""
        return is_unused(self.disk, self.partitions[partition])

    # Logs.

    def log(self, partition: TopicPartition) -> Log:
        """The partition's log, opened if it is not; KeyError if there is none."""
        log = self.logs.get(partition)
        return log if log is not None else self._open(partition, self.partitions[partition])

    def openings(self) -> list[LogOpening]:
        """Every log that is there, to be opened on other threads."""
        self._changes()
        return [LogOpening(self, partition) for partition in self.partitions]

    def not_opened(self, failed: Mapping[TopicPartition, OSError]) -> None:
        """The disk failed on these."""
        for partition, error in failed.items():
            self.notes.append(f"{partition}: {error}; the log is not open")
        if failed:
            self.last_shutdown = None  # The mark of a clean shutdown covered these logs as well.

    def last_known(self, partition: TopicPartition) -> LastKnown:
        """What the checkpoints say of one log."""
        return LastKnown(
            is_clean=self.last_shutdown is not None,
            recovery_point=self._recovery_points.get(partition, _ZERO),
            log_start_offset=self._log_starts.get(partition, _ZERO),
            cleaned_below=self.cleaner_offsets.get(partition, _ZERO),
        )

    def _open(self, partition: TopicPartition, name: str) -> Log:
        self._changes()
        settings, known = self.settings_of(partition), self.last_known(partition)
        return self.adopt(partition, open_log(self.disk, name, settings, known))

    def adopt(self, partition: TopicPartition, opened: OpenedLog) -> Log:
        """A log that has been opened."""
        log, report = opened
        self.notes += report.notes
        log.recovery_point_fell = lambda: self._lower_recovery_point(partition, log)
        self.logs[partition] = log
        with suppress(LogOfflineError):
            # A crash may have come between a cut and this.
            log.guarded(log.recovery_point_fell)
        return log

    def create_all(self, wanted: Mapping[TopicPartition, uuid.UUID]) -> None:
        """New, empty logs; they are on the disk when this returns."""
        self._make_room(wanted)
        contents = {
            f"{partition}/{PARTITION_METADATA}": topic_id_content(topic_id)
            for partition, topic_id in wanted.items()
        }
        write_together(self.disk, contents, lasting=False)
        made = {partition: self._open(partition, str(partition)) for partition in wanted}
        flush_new(self.disk, made.values())
        self.partitions.update({partition: str(partition) for partition in made})

    def _make_room(self, wanted: Iterable[TopicPartition]) -> None:
        """Empty directories for new logs, and nothing left of earlier ones of their names."""
        self._changes()
        for partition in wanted:
            assert partition not in self.partitions, f"{partition} exists"
            self._forget(partition)
        if self._says_too_much:
            # Of an earlier log of this name: its start would have records of this one deleted,
            # its recovery point would have them believed.
            self.write_checkpoints({})
            self._says_too_much = False
        for partition in wanted:
            # One may be there: as a creation that failed half way leaves it.
            if not self.disk.exists(str(partition)):
                self.disk.create_directory(str(partition))

    def create(
        self, partition: TopicPartition, topic_id: uuid.UUID | None, start: Offset = _ZERO
    ) -> Log:
        """A new, empty log; its directory is on the disk when this returns."""
        name = str(partition)
        self._make_room((partition,))
        if topic_id is not None:
            write_topic_id(self.disk, name, topic_id)
        self.disk.flush_directory("")
        if start:
            self._log_starts[partition] = start
        log = self._open(partition, name)
        self.partitions[partition] = name
        log.flush(0)
        return log

    def topic_id(self, partition: TopicPartition) -> uuid.UUID | None:
        """The id in the log's directory; None if it is missing or damaged."""
        try:
            return read_topic_id(self.disk, self.partitions[partition])
        except DamagedFileError as error:
            self.notes.append(str(error))
            return None

    def delete(self, partition: TopicPartition, unique: uuid.UUID, now_ms: int) -> None:
        """Take a partition away; its files go after file.delete.delay.ms.

        The caller's id makes the new name unique: the partition may be created and deleted again
        before the files are gone. The new name is flushed before the files go, not here: the
        caller may delete thousands. After a power failure the log may be back under its old name;
        the next start then finds a stray log.
        """
        self._changes()
        name = self.partitions[partition]
        log = self.logs.pop(partition, None)
        if log is not None:
            log.abandon()
        gone = f"{name}.{unique.hex}-delete"
        self.disk.rename(name, gone)
        del self.partitions[partition]
        delay = self.settings_of(partition).file_delete_delay_ms
        self._deleted.append(DeletedDirectory(now_ms + delay, gone))
        self._forget(partition)

    def flush_deleted(self, partitions: Iterable[TopicPartition]) -> None:
        """Those of these that were deleted here do not come back after a power failure."""
        gone = dict.fromkeys(one.name.rpartition(".")[0] for one in self._deleted)
        if any(str(partition) in gone for partition in partitions):
            self.disk.flush_directory("")

    def _forget(self, partition: TopicPartition) -> None:
        for offsets in (
            self._recovery_points,
            self._log_starts,
            self.cleaner_offsets,
            self.high_watermarks,
        ):
            if offsets.pop(partition, None) is not None:
                self._says_too_much = True

    def take_due(self, now_ms: int) -> Removal:
        """Everything whose delay is over: the caller removes it."""
        due = [one for one in self._deleted if one.due_ms <= now_ms]
        self._deleted = [one for one in self._deleted if one.due_ms > now_ms]
        paths = [path for log in self.logs.values() for path in log.deletions.take_due(now_ms)]
        return Removal(self.disk, [one.name for one in due], paths)

    def not_removed(self, removal: Removal) -> None:
        """The disk failed: try those directories again later."""
        left = [name for name in removal.directories if self.disk.exists(name)]
        self._deleted += [DeletedDirectory(0, name) for name in left]

    # Checkpoints.

    def _lower_recovery_point(self, partition: TopicPartition, log: Log) -> None:
        """The file is written for all logs, so only if it says too much of this one."""
        if self._forget_cleaning(partition, log):
            self._write(CLEANER_OFFSETS, self.cleaner_offsets)
        if self._recovery_points.get(partition, _ZERO) > log.recovery_point:
            self.write_recovery_points()

    def _forget_cleaning(self, partition: TopicPartition, log: Log) -> bool:
        """What follows a truncation is not clean: gaps in it would be no work of the cleaner."""
        has_more = self.cleaner_offsets.get(partition, _ZERO) > log.log_end_offset
        if has_more:
            self.cleaner_offsets[partition] = log.log_end_offset
        return has_more

    def write_recovery_points(self) -> None:
        """How far each log is flushed."""
        self._write(RECOVERY_POINTS, self._current_recovery_points())

    def _current_recovery_points(self) -> Offsets:
        for partition, log in self.logs.items():
            self._recovery_points[partition] = log.recovery_point
        return self._recovery_points

    def _current_log_starts(self) -> Offsets:
        for partition, log in self.logs.items():
            if log.log_start_offset > log.segments[0].base_offset:
                self._log_starts[partition] = log.log_start_offset
            else:
                self._log_starts.pop(partition, None)
        return self._log_starts

    def _current(self, high_watermarks: Mapping[TopicPartition, Offset]) -> dict[str, Offsets]:
        """The content of every checkpoint; the core knows the high watermarks."""
        self.high_watermarks.update(
            {name: mark for name, mark in high_watermarks.items() if name in self.partitions}
        )
        return {
            RECOVERY_POINTS: self._current_recovery_points(),
            LOG_STARTS: self._current_log_starts(),
            HIGH_WATERMARKS: self.high_watermarks,
            CLEANER_OFFSETS: self.cleaner_offsets,
        }

    def write_checkpoints(self, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        """All of them; they are on the disk when this returns."""
        for path, offsets in self._current(high_watermarks).items():
            self._write(path, offsets)

    def _write(self, path: str, offsets: Offsets) -> None:
        self._writes[path] = self._writes.get(path, 0) + 1
        write_offsets(self.disk, path, offsets)

    def checkpoint(self, high_watermarks: Mapping[TopicPartition, Offset]) -> CheckpointWrite:
        """Begin to write all of them; the caller waits for the disk on another thread."""
        contents = {
            path: offsets_content(offsets)
            for path, offsets in self._current(high_watermarks).items()
        }
        return CheckpointWrite(BackgroundWrite(self.disk, contents), dict(self._writes))

    def put_in_place(self, write: CheckpointWrite) -> None:
        """The content is on the disk: give it its names, except where newer content has them."""
        write.work.put_in_place(lambda path: write.seen.get(path) == self._writes.get(path))

    def closing(self, now_ms: int) -> Iterator[Log]:
        """Close the logs, one at a time; `close` does the rest."""
        for log in tuple(self.logs.values()):
            with suppress(LogOfflineError):
                log.close(now_ms)
            yield log

    def close(
        self,
        now_ms: int,
        broker_epoch: int,
        high_watermarks: Mapping[TopicPartition, Offset] | None = None,
        intact_since: int = -1,
        beside: tuple[str, ...] = (),
    ) -> bool:
        """Shut down cleanly; False if a log cannot be vouched for, or the mark not be written.

        `beside`: the ids of all log directories of this broker, if it has several.
        """
        for _ in self.closing(now_ms):
            pass
        is_clean = all(isinstance(log.offline, LogClosedError) for log in self.logs.values())
        if self.last_shutdown is None and len(self.logs) < len(self.partitions):
            is_clean = False  # Nobody has looked at these since a crash, or could.
        if is_clean:
            try:
                self.write_checkpoints(high_watermarks or {})
                marker = CleanShutdownMarker(broker_epoch, intact_since, beside)
                write_clean_shutdown(self.disk, marker)
            except OSError:
                is_clean = False  # Without the mark the next start looks at everything.
        self.release()
        return is_clean

    def release(self) -> None:
        """Let another process have this directory."""
        self._lock.release()
