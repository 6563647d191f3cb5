"""Periodic maintenance: retention, cleaning, flushing, checkpoints, deletion of files.

It handles one log at a time and cleans in steps of some milliseconds: everything but the cleaner's
flushes runs on the event loop that also serves clients. `directory_upkeep` has the work on whole
log directories.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from holdfast.broker.clock import Clock
from holdfast.broker.log_lines import LogLines
from holdfast.broker.maintenance.directory_upkeep import DirectoryUpkeep
from holdfast.broker.metadata.dynamic_configs import Configs
from holdfast.broker.replication.partition import Partition
from holdfast.broker.replication.replicas import TICK_MS, Replicas
from holdfast.storage import (
    Cleaner,
    LogOfflineError,
    Progress,
    apply_retention,
    cleaning_need,
)

FILES_S: Final = 1.0
"""How often to delete files whose delay is over."""


class Maintenance:
    """The maintenance timers of a broker."""

    def __init__(
        self,
        clock: Clock,
        log: LogLines,
        configs: Configs,
        replicas: Replicas,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._loop = clock.loop
        self._clock = clock
        self._log = log
        self._configs = configs
        self._replicas = replicas
        self._is_stopping = is_stopping
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._cleaner: Cleaner | None = None
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="cleaner")
        self._uncleanable: dict[Partition, None] = {}
        """Logs with a damaged batch: as in Kafka, the cleaner skips them."""
        self._directories = DirectoryUpkeep(clock, log, replicas)

    def start(self) -> None:
        """Start all timers."""
        settings = self._configs.settings
        self._every("tick", TICK_MS / 1000, self._replicas.tick)
        checkpoint_ms = settings.replica_high_watermark_checkpoint_interval_ms
        self._every("checkpoints", checkpoint_ms / 1000, self._directories.write_checkpoints)
        self._every("files", FILES_S, self._directories.remove_files)
        retention_ms = settings.log_retention_check_interval_ms
        self._every("retention", retention_ms / 1000, self._apply_retention)
        self.settings_changed()

    def settings_changed(self) -> None:
        """Apply the new log.cleaner.backoff.ms."""
        settings = self._configs.settings
        if settings.log_cleaner_enable:
            self._every("cleaning", settings.log_cleaner_backoff_ms / 1000, self._clean)

    def stop(self) -> None:
        """Stop all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _every(self, name: str, seconds: float, work: Callable[[], None]) -> None:
        def run() -> None:
            self._timers[name] = self._loop.call_later(seconds, run)
            work()

        if name in self._timers:
            self._timers[name].cancel()
        self._timers[name] = self._loop.call_later(seconds, run)

    async def finish(self) -> None:
        """Wait for the disk work in progress."""
        await self._directories.finish()

    # Retention.

    def _apply_retention(self) -> None:
        """Move the log starts. Segments below are deleted after the checkpoint is written."""
        wall_ms = self._clock.wall_ms()
        has_moved = False
        for partition in tuple(self._replicas.partitions.values()):
            if partition.replica.has_failed:
                continue
            was = partition.log.log_start_offset
            try:
                start = apply_retention(
                    partition.log, partition.replica.log.high_watermark, wall_ms
                )
            except LogOfflineError as error:
                partition.failed(error)
                continue
            except OSError as error:
                partition.failed(partition.log.fail(error))
                continue
            if start > was:
                partition.replica.log.advance_start_to(start)
                has_moved = True
        if has_moved:
            self._directories.write_checkpoints()

    # Cleaning.

    def _clean(self) -> None:
        """Start cleaning the dirtiest log, unless one is being cleaned."""
        if self._cleaner is not None:
            return
        wall_ms = self._clock.wall_ms()
        hosted = self._replicas.partitions
        bad = self._uncleanable
        self._uncleanable = {one: None for one in bad if hosted.get(one.name) is one}
        wanted = []
        for partition in hosted.values():
            if self._may_clean(partition):
                directory = self._replicas.directory.of(partition.name)
                checkpointed = directory.cleaner_offsets.get(partition.name, 0)
                high_watermark = partition.replica.log.high_watermark
                try:
                    need = cleaning_need(partition.log, checkpointed, high_watermark, wall_ms)
                except OSError as error:
                    partition.failed(partition.log.fail(error))
                    continue
                if need.is_wanted:
                    wanted.append((need.overdue_ms > 0, need.ratio, partition, need.first_dirty))
        if wanted:
            _, _, partition, first_dirty = max(wanted, key=lambda one: one[:2])
            high_watermark = partition.replica.log.high_watermark
            self._cleaner = Cleaner(partition.log, first_dirty, high_watermark, wall_ms)
            self._step(partition)

    def _may_clean(self, partition: Partition) -> bool:
        is_wanted = partition.log.settings.is_compacted and not partition.replica.has_failed
        return is_wanted and partition not in self._uncleanable

    def _step(self, partition: Partition) -> None:
        cleaner = self._cleaner
        if cleaner is None or self._is_stopping():
            return
        try:
            progress = cleaner.step()
        except LogOfflineError as error:
            self._cleaner = None
            partition.failed(error)
            return
        if progress is Progress.FLUSH:
            flush = self._loop.run_in_executor(self._threads, cleaner.flush)
            flush.add_done_callback(lambda _: self._step(partition))
            return
        if progress is Progress.MORE:
            self._loop.call_soon(self._step, partition)
            return
        self._cleaner = None
        result = cleaner.result
        if result.problem:
            self._uncleanable[partition] = None
            self._log.error(
                "a log cannot be cleaned", partition=str(partition.name), error=result.problem
            )
        if cleaner.has_given_up:
            return
        offsets = self._replicas.directory.of(partition.name).cleaner_offsets
        if result.cleaned_below > offsets.get(partition.name, 0):
            # Other logs may wait: log.cleaner.backoff.ms applies only when none does.
            self._loop.call_soon(self._clean)
        offsets[partition.name] = result.cleaned_below
