"""Opening logs away from the thread that serves, several at a time.

After a crash opening reads everything above the recovery point. So each log is opened on whatever
thread is free, alone with its files, and handed over when it is done: none of its files is open
then, because a file belongs to the thread that opened it (`real_disk`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.core import ProducerStates
from holdfast.model import TopicPartition
from holdfast.storage.log import Log
from holdfast.storage.recovery.log_recovery import OpenedLog, open_log

if TYPE_CHECKING:
    from holdfast.storage.log_directory import LogDirectory


class LogOpening:
    """One log on its way: made and ended on the thread that owns the directory, run on any."""

    def __init__(self, directory: LogDirectory, partition: TopicPartition) -> None:
        self.partition = partition
        self.producers = ProducerStates()
        """What the core knows of the log's producers; there when `run` is over."""
        self._directory = directory
        self._name = directory.partitions[partition]
        self._settings = directory.settings_of(partition)
        self._known = directory.last_known(partition)
        self._opened: OpenedLog | None = None

    def run(self) -> None:
        """Read what has to be read. OSError if the disk fails."""
        opened = open_log(self._directory.disk, self._name, self._settings, self._known)
        self.producers.rebuild(opened.log.producer_headers())
        opened.log.close_files()
        self._opened = opened

    def end(self) -> Log:
        """The log is the directory's from now on."""
        assert self._opened is not None, "not run"
        return self._directory.adopt(self.partition, self._opened)
