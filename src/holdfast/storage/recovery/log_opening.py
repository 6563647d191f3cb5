"""Opens logs on other threads, several at a time.

After a crash, opening a log reads everything above the recovery point. So any free thread opens a
log, alone with its files, and hands it over when it is done. None of its files is open then,
because a file belongs to the thread that opened it (`real_disk`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.model import TopicPartition
from holdfast.storage.log import Log
from holdfast.storage.recovery.log_recovery import OpenedLog, open_log

if TYPE_CHECKING:
    from holdfast.storage.log_directory import LogDirectory


class LogOpening:
    """Opens one log. The thread that owns the directory creates and ends it; any thread runs it."""

    def __init__(self, directory: LogDirectory, partition: TopicPartition) -> None:
        self.partition = partition
        self._directory = directory
        self._name = directory.partitions[partition]
        self._settings = directory.settings_of(partition)
        self._known = directory.last_known(partition)
        self._opened: OpenedLog | None = None

    def run(self) -> None:
        """Open and recover the log. Raises OSError if the disk fails."""
        opened = open_log(self._directory.disk, self._name, self._settings, self._known)
        opened.log.close_files()
        self._opened = opened

    def end(self) -> Log:
        """Hand the log over to the directory."""
        assert self._opened is not None, "not run"
        return self._directory.adopt(self.partition, self._opened)
