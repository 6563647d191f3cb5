"""A broker's log directory: one process at a time, many logs, a few files about all of them.

Logs are opened when they are first asked for, so a start costs a listing. What the checkpoints say
of a log that was not opened is carried over as it is.

The order that everything hangs on: the mark of a clean shutdown is removed, durably, before the
first log is opened, and written after the last one has been flushed and closed. A recovery point
is written after the flush it tells of, and written anew when a truncation lowers it, before
anything can be appended: a point above unflushed records would keep recovery from looking at them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from holdfast.model import Offset, TopicPartition
from holdfast.storage.checkpoints import DamagedFileError, read_offsets, write_offsets
from holdfast.storage.disk import Disk, Lock, remove_tree
from holdfast.storage.errors import LogClosedError, LogOfflineError
from holdfast.storage.log import Log
from holdfast.storage.names import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOCK,
    LOG_STARTS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    is_deleted_directory,
    partition_of,
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


class LogDirectory:
    """All logs below one root. Held until it is closed."""

    def __init__(self, disk: Disk, settings_of: SettingsOf) -> None:
        self.disk = disk
        self.settings_of = settings_of
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
        found: dict[TopicPartition, str] = {}
        for entry in sorted(self.disk.list("")):
            if not entry.is_directory:
                continue
            partition = partition_of(entry.name)
            if partition is not None:
                found[partition] = entry.name
            elif is_deleted_directory(entry.name):
                self._deleted.append(DeletedDirectory(0, entry.name))
        return found

    # Logs.

    def log(self, partition: TopicPartition) -> Log:
        """The partition's log, opened if it is not; KeyError if there is none."""
        log = self.logs.get(partition)
        return log if log is not None else self._open(partition, self.partitions[partition])

    def open_all(self) -> dict[TopicPartition, OSError]:
        """Open every log that is there; those on which the disk fails, and how."""
        failed: dict[TopicPartition, OSError] = {}
        for partition in tuple(self.partitions):
            try:
                self.log(partition)
            except OSError as error:
                failed[partition] = error
        self.not_opened(failed)
        return failed

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
        self._forget_cleaning(partition, log)
        log.recovery_point_fell = lambda: self._lower_recovery_point(partition, log)
        self.logs[partition] = log
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
            self.write_cleaner_offsets()
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
        """Take a partition away at once; its files go after file.delete.delay.ms.

        The new name is made unique by the caller's id: the partition may be created and deleted
        again before the files are gone.
        """
        self._changes()
        name = self.partitions.pop(partition)
        log = self.logs.pop(partition, None)
        if log is not None:
            log.abandon()
        gone = f"{name}.{unique.hex}-delete"
        self.disk.rename(name, gone)
        self.disk.flush_directory("")
        delay = self.settings_of(partition).file_delete_delay_ms
        self._deleted.append(DeletedDirectory(now_ms + delay, gone))
        self._forget(partition)

    def _forget(self, partition: TopicPartition) -> None:
        for offsets in (
            self._recovery_points,
            self._log_starts,
            self.cleaner_offsets,
            self.high_watermarks,
        ):
            if offsets.pop(partition, None) is not None:
                self._says_too_much = True

    def delete_due(self, now_ms: int) -> None:
        """Remove everything whose delay is over."""
        for one in [one for one in self._deleted if one.due_ms <= now_ms]:
            remove_tree(self.disk, one.name)
            self._deleted.remove(one)
        for log in self.logs.values():
            log.deletions.run(now_ms)

    # Checkpoints.

    def _lower_recovery_point(self, partition: TopicPartition, log: Log) -> None:
        """The file is written for all logs, so only if it says too much of this one."""
        if self._forget_cleaning(partition, log):
            self.write_cleaner_offsets()
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
        for partition, log in self.logs.items():
            self._recovery_points[partition] = log.recovery_point
        write_offsets(self.disk, RECOVERY_POINTS, self._recovery_points)

    def write_checkpoints(self, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        """All of them; the core knows the high watermarks."""
        self.write_recovery_points()
        for partition, log in self.logs.items():
            if log.log_start_offset > log.segments[0].base_offset:
                self._log_starts[partition] = log.log_start_offset
            else:
                self._log_starts.pop(partition, None)
        write_offsets(self.disk, LOG_STARTS, self._log_starts)
        self.high_watermarks.update(high_watermarks)
        write_offsets(self.disk, HIGH_WATERMARKS, self.high_watermarks)

    def write_cleaner_offsets(self) -> None:
        """How far each compacted log has been cleaned."""
        write_offsets(self.disk, CLEANER_OFFSETS, self.cleaner_offsets)

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
    ) -> bool:
        """Shut down cleanly; False if a log cannot be vouched for, or the mark not be written."""
        for _ in self.closing(now_ms):
            pass
        is_clean = all(isinstance(log.offline, LogClosedError) for log in self.logs.values())
        if self.last_shutdown is None and len(self.logs) < len(self.partitions):
            is_clean = False  # Nobody has looked at these since a crash, or could.
        if is_clean:
            try:
                self.write_checkpoints(high_watermarks or {})
                self.write_cleaner_offsets()
                write_clean_shutdown(self.disk, CleanShutdownMarker(broker_epoch, intact_since))
            except OSError:
                is_clean = False  # Without the mark the next start looks at everything.
        self._lock.release()
        return is_clean
