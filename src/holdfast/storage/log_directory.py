"""One log directory of a broker: its lock, its logs, its checkpoints and its clean-shutdown marker.

A log is opened on first use, so a start costs only a listing. The checkpoints of a log that was not
opened are carried over unchanged.

Correctness depends on this order: the clean-shutdown marker is removed, durably, before the first
log is opened, and written after the last one has been flushed and closed. A recovery point is
written after the flush it covers. When a truncation lowers it, it is written again before anything
can be appended: a recovery point above unflushed records would keep recovery from verifying them.

Segments below a log's start are dropped once the log-start checkpoint is on the disk (`dropping`).
That needs no further flush: opening drops again what a power failure brings back.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from holdfast.model import Offset, TopicPartition
from holdfast.storage.batched_fsync import flush_new, write_together
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.checkpoints.meta_properties import (
    CleanShutdownMarker,
    read_clean_shutdown,
    read_topic_id,
    remove_clean_shutdown,
    topic_id_content,
    write_clean_shutdown,
    write_topic_id,
)
from holdfast.storage.checkpoints.offset_checkpoints import CheckpointWrite, DirectoryCheckpoints
from holdfast.storage.deferred_deletions import Removal
from holdfast.storage.disk import Disk, Lock
from holdfast.storage.errors import LogClosedError, LogOfflineError
from holdfast.storage.file_names import LOCK, PARTITION_METADATA, is_deleted_directory
from holdfast.storage.inspect.log_listing import is_unused, partitions_on
from holdfast.storage.log import Log
from holdfast.storage.log_settings import LogSettings
from holdfast.storage.recovery.log_opening import LogOpening
from holdfast.storage.recovery.log_recovery import LastKnown, OpenedLog, open_log
from holdfast.storage.retention import dropped_below

SettingsOf = Callable[[TopicPartition], LogSettings]
_ZERO = Offset(0)


class DeletedDirectory(NamedTuple):
    """A deleted partition, and when its files may be removed."""

    due_ms: int
    name: str


class LogDirectory:
    """All logs below one root. Locked until it is closed."""

    def __init__(self, disk: Disk, settings_of: SettingsOf) -> None:
        self.disk = disk
        self.settings_of = settings_of
        self.id = ""
        """directory.id from meta.properties, once that has been read."""
        self.notes: list[str] = []
        """Notes about damaged files and leftovers, and what was done about them."""
        self.logs: dict[TopicPartition, Log] = {}
        self._lock: Lock = disk.lock(LOCK)
        self.last_shutdown = self._read_marker()
        self._has_marker = True
        self.checkpoints = DirectoryCheckpoints(disk, self.notes, self.logs)
        self.high_watermarks = self.checkpoints.high_watermarks
        """As the last process wrote them: where leaders and followers start from."""
        self.cleaner_offsets = self.checkpoints.cleaner_offsets
        self._deleted: list[DeletedDirectory] = []
        self.partitions = self._find()

    def _read_marker(self) -> CleanShutdownMarker | None:
        try:
            return read_clean_shutdown(self.disk)
        except DamagedFileError as error:
            self.notes.append(f"{error}; treated as an unclean shutdown")
            return None

    def _changes(self) -> None:
        """Remove the clean-shutdown marker, because something is about to change.

        Not earlier: a process that only reads, and finds that this is not its directory, must not
        make the next start look like one after a crash.
        """
        if self._has_marker:
            self._has_marker = False
            remove_clean_shutdown(self.disk)

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
        """The partition's log, opened if necessary; KeyError if there is none."""
        log = self.logs.get(partition)
        return log if log is not None else self._open(partition, self.partitions[partition])

    def openings(self) -> list[LogOpening]:
        """All logs, to be opened on other threads."""
        self._changes()
        return [LogOpening(self, partition) for partition in self.partitions]

    def not_opened(self, failed: Mapping[TopicPartition, OSError]) -> None:
        """Opening these logs failed."""
        for partition, error in failed.items():
            self.notes.append(f"{partition}: {error}; the log is not open")
        if failed:
            self.last_shutdown = None  # The clean-shutdown marker covered these logs as well.

    def last_known(self, partition: TopicPartition) -> LastKnown:
        """The checkpointed state of one log."""
        return LastKnown(
            is_clean=self.last_shutdown is not None,
            recovery_point=self.checkpoints.recovery_points.get(partition, _ZERO),
            log_start_offset=self.checkpoints.log_starts.get(partition, _ZERO),
            cleaned_below=self.cleaner_offsets.get(partition, _ZERO),
        )

    def _open(self, partition: TopicPartition, name: str) -> Log:
        self._changes()
        settings, known = self.settings_of(partition), self.last_known(partition)
        return self.adopt(partition, open_log(self.disk, name, settings, known))

    def adopt(self, partition: TopicPartition, opened: OpenedLog) -> Log:
        """Take over a log that has been opened."""
        log, report = opened
        self.notes += report.notes
        log.recovery_point_fell = lambda: self.checkpoints.lower(partition, log)
        self.logs[partition] = log
        with suppress(LogOfflineError):
            # A crash may have come between a truncation and this.
            log.guarded(log.recovery_point_fell)
        return log

    def create_all(self, wanted: Mapping[TopicPartition, uuid.UUID]) -> None:
        """Create empty logs; they are durable when this returns."""
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
        """Create directories for new logs, and forget earlier logs of their names."""
        self._changes()
        for partition in wanted:
            assert partition not in self.partitions, f"{partition} exists"
            self.checkpoints.forget(partition)
        self.checkpoints.write_without_deleted()
        for partition in wanted:
            # A creation that failed halfway leaves one.
            if not self.disk.exists(str(partition)):
                self.disk.create_directory(str(partition))

    def create(
        self, partition: TopicPartition, topic_id: uuid.UUID | None, start: Offset = _ZERO
    ) -> Log:
        """Create an empty log; its directory is durable when this returns."""
        name = str(partition)
        self._make_room((partition,))
        if topic_id is not None:
            write_topic_id(self.disk, name, topic_id)
        self.disk.flush_directory("")
        if start:
            self.checkpoints.log_starts[partition] = start
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
        """Delete a partition; its files are removed after file.delete.delay.ms.

        The caller's id makes the new name unique: the partition may be created and deleted again
        before the files are gone. The new name is flushed before the files are removed, but not
        here, because the caller may delete thousands. After a power failure the log may be back
        under its old name; the next start then finds a stray log.
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
        self.checkpoints.forget(partition)

    def flush_deleted(self, partitions: Iterable[TopicPartition]) -> None:
        """Keep deleted logs of these names from coming back after a power failure."""
        gone = dict.fromkeys(one.name.rpartition(".")[0] for one in self._deleted)
        if any(str(partition) in gone for partition in partitions):
            self.disk.flush_directory("")

    def take_due(self, now_ms: int) -> Removal:
        """The files whose delay is over; the caller removes them."""
        due = [one for one in self._deleted if one.due_ms <= now_ms]
        self._deleted = [one for one in self._deleted if one.due_ms > now_ms]
        paths = [path for log in self.logs.values() for path in log.deletions.take_due(now_ms)]
        return Removal(self.disk, [one.name for one in due], paths)

    def not_removed(self, removal: Removal) -> None:
        """The disk failed: try these directories again later."""
        left = [name for name in removal.directories if self.disk.exists(name)]
        self._deleted += [DeletedDirectory(0, name) for name in left]

    # Checkpoints.

    def write_checkpoints(self, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        """Write all checkpoints; they are durable when this returns."""
        self.checkpoints.write_all(self._own(high_watermarks))

    def checkpoint(self, high_watermarks: Mapping[TopicPartition, Offset]) -> CheckpointWrite:
        """Begin to write all checkpoints; the caller waits for the disk on another thread."""
        return self.checkpoints.begin(self._own(high_watermarks))

    def _own(
        self, high_watermarks: Mapping[TopicPartition, Offset]
    ) -> dict[TopicPartition, Offset]:
        return {name: one for name, one in high_watermarks.items() if name in self.partitions}

    def dropping(self, write: CheckpointWrite, now_ms: int) -> Iterator[TopicPartition]:
        """A checkpoint is on the disk: drop the segments below its log starts, one per step.

        Yields the partition of each segment. Its log is offline if the disk failed.
        """
        for partition, (log, start) in write.starts.items():
            if self.logs.get(partition) is not log or not self.checkpoints.are_starts_newest(write):
                continue
            with suppress(LogOfflineError):
                for _ in dropped_below(log, start, now_ms):
                    yield partition
            yield partition

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
        """Shut down; False if a log is not clean, or if the marker cannot be written.

        `beside`: the ids of all log directories of this broker, if it has several.
        """
        for _ in self.closing(now_ms):
            pass
        is_clean = all(isinstance(log.offline, LogClosedError) for log in self.logs.values())
        if self.last_shutdown is None and len(self.logs) < len(self.partitions):
            is_clean = False  # These logs were not verified since a crash.
        if is_clean:
            try:
                self.write_checkpoints(high_watermarks or {})
                marker = CleanShutdownMarker(broker_epoch, intact_since, beside)
                write_clean_shutdown(self.disk, marker)
            except OSError:
                is_clean = False  # Without the marker the next start verifies the logs.
        self.release()
        return is_clean

    def release(self) -> None:
        """Release the lock of this directory."""
        self._lock.release()
