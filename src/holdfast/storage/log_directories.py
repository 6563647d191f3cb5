"""All log directories of a broker: `log.dirs`.

Each directory has its own lock, checkpoints and clean-shutdown marker, and holds the logs of some
partitions. A new partition goes to the directory with the fewest. A directory that fails takes only
its own partitions offline; the broker continues while one is left. A directory that could not be
opened at the start counts as failed, and its partitions are unknown. While it is offline, only the
caller (`Replicas`) can decide whether a partition that is in no other directory is new.
"""

from __future__ import annotations

import errno
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from holdfast.model import Offset, TopicPartition
from holdfast.storage.checkpoints.meta_properties import CleanShutdownMarker
from holdfast.storage.disk import Disk, remove_tree
from holdfast.storage.log import Log
from holdfast.storage.log_directory import LogDirectory, SettingsOf
from holdfast.storage.recovery.log_opening import LogOpening

Disks = Mapping[str, Disk | OSError]
"""Disks by their paths in log.dirs; an OSError for a directory that cannot be used."""


class NoLogDirectoryError(Exception):
    """None of the log directories can be used."""

    def __init__(self, offline: Mapping[str, OSError]) -> None:
        failures = ", ".join(f"{path} ({reason(error)})" for path, error in offline.items())
        super().__init__(f"cannot use {failures}: fix log.dirs")


class DuplicateLogError(Exception):
    """One partition is in two directories. Which log is the right one cannot be known, so nothing
    is opened.
    """

    def __init__(self, partition: TopicPartition, one: str, other: str) -> None:
        super().__init__(
            f"the log of {partition} is in {one} and in {other}: move one of the two away, "
            "the one in the directory that failed recently"
        )


class CreatedLogs(NamedTuple):
    """Logs that were created together, and why others were not."""

    partitions: tuple[TopicPartition, ...]
    errors: tuple[OSError, ...]


class LogDirectories:
    """The directories by their paths, and the directory of each partition."""

    def __init__(self, disks: Disks, settings_of: SettingsOf) -> None:
        """May raise DirectoryLockedError, DuplicateLogError or NoLogDirectoryError."""
        self.all: dict[str, LogDirectory] = {}
        """Directories that could be opened, even if they have failed since."""
        self.offline: dict[str, OSError] = {}
        """Directories that have failed, at the start or since."""
        self.paths = tuple(disks)
        self.partitions: dict[TopicPartition, LogDirectory] = {}
        self.on_offline: Callable[[LogDirectory, OSError], None] = _ignore
        """Called when a directory has failed."""
        self._notes: list[str] = []
        self._unused: list[tuple[LogDirectory, str]] = []
        """Leftovers of failed creations, whose partitions are now in another directory."""
        try:
            for path, disk in disks.items():
                self._open(path, disk, settings_of)
            if not self.all:
                raise NoLogDirectoryError(self.offline)
        except BaseException:
            self.release()
            raise

    def _open(self, path: str, disk: Disk | OSError, settings_of: SettingsOf) -> None:
        try:
            if isinstance(disk, OSError):
                raise disk
            directory = LogDirectory(disk, settings_of)
        except OSError as error:
            self.offline[path] = error
            self._notes.append(f"{path}: {reason(error)}; this directory is offline")
            return
        self.all[path] = directory
        for partition in tuple(directory.partitions):
            other = self.partitions.setdefault(partition, directory)
            if other is not directory:
                self._choose(partition, other, directory)

    def _choose(self, partition: TopicPartition, one: LogDirectory, other: LogDirectory) -> None:
        """Two directories have this log: drop the one that a failed creation left unused."""
        for unused, kept in ((other, one), (one, other)):
            if unused.is_unused(partition):
                self._unused.append((unused, unused.partitions.pop(partition)))
                self.partitions[partition] = kept
                return
        raise DuplicateLogError(partition, self.path_of(one), self.path_of(other))

    # Directories.

    @property
    def live(self) -> dict[str, LogDirectory]:
        """Directories that have not failed, by their paths."""
        return {path: one for path, one in self.all.items() if path not in self.offline}

    def path_of(self, directory: LogDirectory) -> str:
        """The path of a directory in log.dirs."""
        return next(path for path, one in self.all.items() if one is directory)

    def of(self, partition: TopicPartition) -> LogDirectory:
        """The directory of a partition; KeyError if there is none."""
        return self.partitions[partition]

    def failed(self, directory: LogDirectory, error: OSError) -> None:
        """The disk of a directory has failed: take all its logs offline."""
        path = self.path_of(directory)
        if path in self.offline:
            return
        self.offline[path] = error
        for log in directory.logs.values():
            if log.offline is None:
                log.fail(error)
        self.on_offline(directory, error)

    @contextmanager
    def guarded(self, directory: LogDirectory) -> Iterator[None]:
        """Run an operation that must not fail: an OSError takes the directory offline."""
        try:
            yield
        except OSError as error:
            self.failed(directory, error)

    @property
    def last_shutdown(self) -> CleanShutdownMarker | None:
        """The marker of the last shutdown, if that was clean for all logs of this broker.

        All directories must have the same marker, and none may be missing: the records in a missing
        directory are as lost as those that a crash took.
        """
        markers = dict.fromkeys(one.last_shutdown for one in self.all.values())
        if self.offline or len(markers) > 1:
            return None
        [marker] = markers
        present = [one.id for one in self.all.values()]
        if marker is None or any(one not in present for one in marker.directories):
            return None
        return marker

    def take_notes(self) -> list[str]:
        """Notes about damaged files and leftovers, since the last call."""
        notes = self._notes
        self._notes = []
        for directory in self.all.values():
            notes += directory.notes
            directory.notes.clear()
        return notes

    # Logs.

    def log(self, partition: TopicPartition) -> Log:
        """The partition's log, opened if necessary; KeyError if there is none."""
        return self.partitions[partition].log(partition)

    def openings(self) -> list[LogOpening]:
        """All logs, to be opened on other threads; none of a directory that fails."""
        for directory, name in self._unused:
            self._notes.append(f"{self.path_of(directory)}/{name}: never used; removed")
            with self.guarded(directory):
                remove_tree(directory.disk, name)
        self._unused.clear()
        found: list[LogOpening] = []
        for directory in self.live.values():
            with self.guarded(directory):
                found += directory.openings()
        return found

    def lost(self) -> dict[TopicPartition, OSError]:
        """The partitions in failed directories, with the error."""
        return {
            partition: error
            for path, error in self.offline.items()
            if path in self.all
            for partition in self.all[path].partitions
        }

    def not_opened(self, failed: Mapping[TopicPartition, OSError]) -> None:
        """Opening these logs failed."""
        for directory in self.all.values():
            directory.not_opened(
                {name: error for name, error in failed.items() if name in directory.partitions}
            )

    def topic_id(self, partition: TopicPartition) -> uuid.UUID | None:
        """The id in the log's directory; None if it is missing, damaged or cannot be read."""
        try:
            return self.partitions[partition].topic_id(partition)
        except OSError as error:
            self._notes.append(f"{partition}: {error}; the topic id of this log is unknown")
            return None

    def high_watermark(self, partition: TopicPartition) -> Offset:
        """The high watermark that the last process wrote."""
        return self.partitions[partition].high_watermarks.get(partition, Offset(0))

    def _by_load(self) -> list[LogDirectory]:
        """The live directories, fewest partitions first."""
        return sorted(self.live.values(), key=lambda one: len(one.partitions))

    def create_all(self, wanted: Mapping[TopicPartition, uuid.UUID]) -> CreatedLogs:
        """Create empty logs, spread over the directories; they are durable when this returns."""
        loads = {one: len(one.partitions) for one in self.live.values()}
        if not loads:
            return CreatedLogs((), (_nothing_left(),))
        shares: dict[LogDirectory, dict[TopicPartition, uuid.UUID]] = {}
        for partition, topic_id in wanted.items():
            directory = min(loads, key=lambda one: loads[one])
            loads[directory] += 1
            shares.setdefault(directory, {})[partition] = topic_id
        made: list[TopicPartition] = []
        errors: list[OSError] = []
        for directory, share in shares.items():
            self._flush_deleted(directory, share)
            try:
                directory.create_all(share)
            except OSError as error:
                errors.append(error)
                continue
            made += share
            self.partitions.update(dict.fromkeys(share, directory))
        return CreatedLogs(tuple(made), tuple(errors))

    def create(self, partition: TopicPartition, topic_id: uuid.UUID) -> Log:
        """Create an empty log in the first directory that succeeds; OSError if none does."""
        last = _nothing_left()
        for directory in self._by_load():
            self._flush_deleted(directory, (partition,))
            try:
                log = directory.create(partition, topic_id)
            except OSError as error:
                last = error
                if not is_full(error):
                    self.failed(directory, error)
                continue
            self.partitions[partition] = directory
            return log
        raise last

    def _flush_deleted(self, chosen: LogDirectory, wanted: Iterable[TopicPartition]) -> None:
        """Keep a deleted log from coming back in another directory beside its successor."""
        for directory in self.live.values():
            if directory is not chosen:
                with self.guarded(directory):
                    directory.flush_deleted(wanted)

    def delete(self, partition: TopicPartition, unique: uuid.UUID, now_ms: int) -> None:
        """Delete a partition; its files are removed after file.delete.delay.ms."""
        self.partitions[partition].delete(partition, unique, now_ms)
        del self.partitions[partition]

    # Closing.

    def closing(self, now_ms: int) -> Iterator[Log]:
        """Close the logs, one at a time; `close` does the rest."""
        for directory in self.all.values():
            yield from directory.closing(now_ms)

    def close(
        self,
        now_ms: int,
        broker_epoch: int,
        high_watermarks: Mapping[TopicPartition, Offset],
        intact_since: int,
    ) -> bool:
        """Shut down; False if a directory cannot be closed cleanly."""
        ids = tuple(one.id for one in self.all.values() if one.id)
        beside = ids if len(self.paths) > 1 else ()
        clean = [
            one.close(now_ms, broker_epoch, high_watermarks, intact_since, beside)
            for one in self.live.values()
        ]
        self.release()
        return all(clean) and not self.offline

    def release(self) -> None:
        """Release the locks of all directories."""
        for directory in self.all.values():
            directory.release()


def reason(error: OSError) -> str:
    """The system's message, without the number."""
    return error.strerror or str(error)


def is_full(error: OSError) -> bool:
    """A full disk still reads: its directory has not failed."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _nothing_left() -> OSError:
    return OSError(errno.EIO, "no log directory is left")


def _ignore(*_: object) -> None:
    pass
