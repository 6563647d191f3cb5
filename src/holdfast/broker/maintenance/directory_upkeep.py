"""Checkpoints and deleted files of the log directories, without blocking the event loop.

The event loop takes the values and renames files; threads wait for the disk and remove files. Each
directory has at most one checkpoint write and one removal in flight, so a directory that hangs
delays only itself. A directory whose checkpoint cannot be written has failed, unless it is full.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Final

from holdfast.broker.clock import Clock
from holdfast.broker.log_lines import LogLines
from holdfast.broker.replication.replicas import Replicas
from holdfast.broker.tasks import in_parts
from holdfast.model import TopicPartition
from holdfast.storage import (
    CheckpointWrite,
    LogDirectory,
    LogOfflineError,
    Removal,
    dropped_below,
    is_full,
)

CHECKPOINTS: Final = "checkpoints"
FILES: Final = "files"
KINDS: Final = (CHECKPOINTS, FILES)
"""The kinds of work of one directory."""


class DirectoryUpkeep:
    """The work in progress, one task per directory and kind."""

    def __init__(self, clock: Clock, log: LogLines, replicas: Replicas) -> None:
        self._loop = clock.loop
        self._clock = clock
        self._log = log
        self._replicas = replicas
        self._directories = replicas.directory
        self._under_way: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._threads = ThreadPoolExecutor(
            len(KINDS) * len(self._directories.paths), thread_name_prefix="directory"
        )

    def write_checkpoints(self) -> None:
        """Write the recovery points, log starts, high watermarks and cleaner offsets."""
        for path, directory in self._directories.live.items():
            if (path, CHECKPOINTS) not in self._under_way:
                self._begin((path, CHECKPOINTS), self._write_checkpoints(path, directory))

    def remove_files(self) -> None:
        """Remove the files whose delay is over."""
        for path, directory in self._directories.live.items():
            if (path, FILES) not in self._under_way:
                removal = directory.take_due(self._clock.wall_ms())
                if removal:
                    self._begin((path, FILES), self._remove_files(path, directory, removal))

    def _begin(self, key: tuple[str, str], work: Coroutine[Any, Any, None]) -> None:
        task = self._under_way[key] = self._loop.create_task(work)
        task.add_done_callback(lambda task: self._ended(key, task))

    def _ended(self, key: tuple[str, str], task: asyncio.Task[None]) -> None:
        self._under_way.pop(key, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._log.bug(f"{key[1]} failed", error)

    async def finish(self) -> None:
        """Wait until no work is in progress; none may be started meanwhile."""
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    async def _wait(self, work: Callable[[], None]) -> None:
        await self._loop.run_in_executor(self._threads, work)

    async def _write_checkpoints(self, path: str, directory: LogDirectory) -> None:
        try:
            write = directory.checkpoint(self._replicas.high_watermarks())
            try:
                await self._wait(write.work.flush)
                directory.checkpoints.put_in_place(write)
            finally:
                write.work.close()
            await self._wait(write.work.flush_names)
            await in_parts(self._dropping(directory, write))
        except OSError as error:
            self._log.error("checkpoints not written", directory=path, error=error)
            if is_full(error):
                await self._drop_one_by_one(directory)
            else:
                self._directories.failed(directory, error)

    def _dropping(self, directory: LogDirectory, write: CheckpointWrite) -> Iterator[None]:
        """Remove segments below the written log starts from their logs."""
        for name in directory.dropping(write, self._clock.wall_ms()):
            self._look_at(name)
            yield

    def _look_at(self, name: TopicPartition) -> None:
        partition = self._replicas.partitions.get(name)
        if partition is not None and partition.log.offline is not None:
            partition.failed(partition.log.offline)

    async def _drop_one_by_one(self, directory: LogDirectory) -> None:
        """Free space on a disk that is too full for a checkpoint: delete removable segments. Each
        is deleted before the next: only their order then shows where the log starts.
        """
        for name, log in tuple(directory.logs.items()):
            # Both affect this log only: it may fail, or have been deleted meanwhile.
            with suppress(LogOfflineError, OSError):
                for _ in dropped_below(log, log.log_start_offset, self._clock.wall_ms()):
                    await self._wait(partial(log.disk.flush_directory, log.directory))
            self._look_at(name)

    async def _remove_files(self, path: str, directory: LogDirectory, removal: Removal) -> None:
        try:
            await self._wait(removal.run)
        except OSError as error:
            self._log.error("files not deleted", directory=path, error=error)
            directory.not_removed(removal)
