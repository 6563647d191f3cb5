"""Flushes logs to the disk when a rule asks for it, without blocking the event loop.

A few threads wait for the disk; the event loop makes all changes to a log or a replica. One flush
of a log is in progress at a time, and covers what was written when it began. A flush that is wanted
while another is in progress begins when that one has ended; so does the next one of a log that has
more sealed segments than one flush takes.

Nothing is answered here: `Partition.flushed` reports to the core how far the disk is, and the core
releases what waited for the flush.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Final

from holdfast.broker.clock import Clock
from holdfast.broker.histogram import Histogram
from holdfast.broker.replication.partition import Partition
from holdfast.broker.replication.replica_fetcher_manager import Fetchers
from holdfast.model import Offset, TopicPartition
from holdfast.storage import BackgroundFlush, Disk, LogOfflineError

DISK_THREADS: Final = 4
"""Flushes that may wait for one disk at the same time."""
MOST_THREADS: Final = 16
"""The same in `wait_for_all`, which blocks the event loop."""


def wait_for_all(flushes: Sequence[Callable[[], None]]) -> None:
    """Wait for many flushes on several threads: the system combines their writes."""
    with ThreadPoolExecutor(min(MOST_THREADS, max(1, len(flushes)))) as threads:
        waiting = [threads.submit(flush) for flush in flushes]
    for one in waiting:
        one.result()


class _Queue:
    """The flushes of one log directory: a disk that hangs delays no other."""

    def __init__(self) -> None:
        self.records: dict[Partition, None] = {}
        self.checkpoints: dict[Partition, None] = {}
        """Only the leader-epoch checkpoint."""
        self.under_way = 0
        self.threads = ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="flush")

    @property
    def is_empty(self) -> bool:
        return not self.records and not self.checkpoints

    def add(self, partition: Partition, *, has_records: bool) -> None:
        if has_records:
            self.checkpoints.pop(partition, None)
            self.records[partition] = None
        elif partition not in self.records:
            self.checkpoints[partition] = None

    def take(self) -> tuple[Partition, bool]:
        """The next flush. Records come first: producers may wait for them."""
        some = self.records or self.checkpoints
        partition = next(iter(some))
        del some[partition]
        return partition, some is self.records


class Flushes:
    """The flushes that are wanted and those in progress."""

    def __init__(
        self,
        clock: Clock,
        fetchers: Fetchers,
        hosted: Mapping[TopicPartition, Partition],
        times: Histogram,
    ) -> None:
        self._loop = clock.loop
        self._clock = clock
        self._fetchers = fetchers
        self._hosted = hosted
        self._times = times
        self._queues: dict[Disk, _Queue] = {}
        self._under_way: dict[Partition, bool | None] = {}
        """The flush that follows, if one is wanted: of records, or of the checkpoint only."""

    def want(self, partition: Partition, *, has_records: bool = True) -> None:
        """Flush this log when the tick is over, or when its current flush has ended.

        Without records: only its leader-epoch checkpoint.
        """
        if partition in self._under_way:
            self._under_way[partition] = has_records or bool(self._under_way[partition])
            return
        disk = partition.log.disk
        if (queue := self._queues.get(disk)) is None:
            queue = self._queues[disk] = _Queue()
        if queue.is_empty:
            self._loop.call_soon(self._begin_some, queue)
        queue.add(partition, has_records=has_records)

    def now(self, partition: Partition) -> None:
        """Flush this log before anything else happens."""
        try:
            end = partition.log.flush(self._clock.wall_ms())
        except LogOfflineError as error:
            partition.failed(error)
            return
        self._ended(partition, end)

    def _begin_some(self, queue: _Queue) -> None:
        """Start as many as there are threads: each holds file descriptors until it has ended."""
        while not queue.is_empty and queue.under_way < DISK_THREADS:
            partition, has_records = queue.take()
            if self._is_hosted(partition) and partition.log.offline is None:
                self._begin(queue, partition, has_records=has_records)

    def _begin(self, queue: _Queue, partition: Partition, *, has_records: bool) -> None:
        try:
            work = BackgroundFlush(partition.log, has_records=has_records)
        except OSError as error:
            partition.failed(partition.log.fail(error))
            return
        self._under_way[partition] = None
        queue.under_way += 1
        began_s = perf_counter()
        future = self._loop.run_in_executor(queue.threads, work.run)
        future.add_done_callback(lambda done: self._done(queue, partition, work, done))
        future.add_done_callback(lambda _: self._times.observe(perf_counter() - began_s))

    def _done(
        self,
        queue: _Queue,
        partition: Partition,
        work: BackgroundFlush,
        done: asyncio.Future[None],
    ) -> None:
        wanted = self._under_way.pop(partition)
        queue.under_way -= 1
        self._loop.call_soon(self._begin_some, queue)
        error = done.exception()
        assert error is None or isinstance(error, OSError), error
        try:
            end = work.end(error, self._clock.wall_ms())
        except LogOfflineError as offline:
            if self._is_hosted(partition):
                partition.failed(offline)
            return
        if self._is_hosted(partition):
            self._ended(partition, end)
            if wanted or partition.log.has_unflushed_seals:
                self.want(partition)
            elif wanted is not None:
                self.want(partition, has_records=False)

    def _ended(self, partition: Partition, end: Offset) -> None:
        """The core may answer producers now, and a follower may fetch more."""
        partition.flushed(end)
        self._fetchers.flushed(partition)

    def _is_hosted(self, partition: Partition) -> bool:
        """Whether we still host it. A flush must not restore a dropped partition."""
        return self._hosted.get(partition.name) is partition
