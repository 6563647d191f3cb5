"""All partitions of this broker, and the maintenance they share.

Work that many partitions ask for in one tick is done once at its end: writes, ISR proposals,
flushes.
"""

from __future__ import annotations

import errno
import random
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from holdfast.broker.clock import Clock
from holdfast.broker.histogram import DELAY_BOUNDS_S, Histogram
from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.dynamic_configs import Configs
from holdfast.broker.replication.append_cache import AppendCacheMemory
from holdfast.broker.replication.flushes import Flushes
from holdfast.broker.replication.isr_proposals import Proposals
from holdfast.broker.replication.log_failures import FailureReports
from holdfast.broker.replication.log_loading import end_open_transactions, open_logs
from holdfast.broker.replication.partition import Partition
from holdfast.broker.replication.partition_host import Subscribers
from holdfast.broker.replication.replica_fetcher_manager import Fetchers
from holdfast.broker.replication.topic_traffic import Traffic
from holdfast.broker.tasks import in_parts
from holdfast.broker.trace_events import BrokerTrace
from holdfast.broker.uuids import new_uuid
from holdfast.core import (
    LogState,
    Replica,
    may_begin_empty,
)
from holdfast.model import BrokerId, ErrorCode, Offset, PartitionState, TopicPartition
from holdfast.storage import (
    LogDirectories,
    LogDirectory,
    LogOfflineError,
    LogOpening,
)

TICK_MS: Final = 250
"""How often to check for expired requests, due flushes and lagging followers."""
LONGEST_TURN_MS: Final = 2000
"""The longest time between two checks of a partition without waiters."""


class PartitionAssignment(NamedTuple):
    """One partition's state from the controller."""

    name: TopicPartition
    topic_id: bytes
    state: PartitionState


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaParts:
    """The parts of a broker that its replicas use."""

    broker: BrokerId
    clock: Clock
    log: LogLines
    rng: random.Random
    trace: BrokerTrace | None
    directory: LogDirectories
    configs: Configs
    fetchers: Fetchers
    proposals: Proposals
    failures: FailureReports


class Replicas:
    """The partitions by name and by topic id; the `PartitionHost` of all of them."""

    def __init__(self, parts: ReplicaParts) -> None:
        self.broker = parts.broker
        self.clock = parts.clock
        self.log = parts.log
        self.trace = parts.trace
        self.directory = parts.directory
        self.fetchers = parts.fetchers
        self._loop = parts.clock.loop
        self._rng = parts.rng
        self._configs = parts.configs
        self._proposals = parts.proposals
        self._failures = parts.failures
        self.high_watermark_moves = Subscribers(parts.log)
        self.role_changes = Subscribers(parts.log)
        self.tail_memory = AppendCacheMemory()
        self.traffic = Traffic()
        self.partitions: dict[TopicPartition, Partition] = {}
        self._by_id: dict[tuple[bytes, int], Partition] = {}
        self._to_write: list[Partition] = []
        self.flush_times = Histogram(DELAY_BOUNDS_S)
        """Of flushes in the background, successful or not."""
        self._flushes = Flushes(parts.clock, parts.fetchers, self.partitions, self.flush_times)
        self._awaited: dict[Partition, None] = {}
        """Partitions for the next tick: they have new records or waiters."""
        self._turn: list[Partition] = []
        """Partitions that this round has not checked yet."""

    # Finding.

    def find(self, topic: str | bytes, index: int) -> Partition | None:
        """By name, or by topic id."""
        if isinstance(topic, str):
            # A plain tuple equals the named one, which costs more to make than the look-up.
            return self.partitions.get((topic, index))  # type: ignore[call-overload, no-any-return]
        return self._by_id.get((topic, index))

    # Adding and removing.

    async def load(self) -> None:
        """Make a replica for every log on the disk; none has a role yet."""
        openings, failed = await open_logs(self._loop, self.directory)
        self._failures.add(failed)
        await in_parts(self._adding(openings))

    def _adding(self, openings: Sequence[LogOpening]) -> Iterator[Partition | None]:
        for opening in openings:
            name = opening.partition
            opening.end()
            topic_id = self.directory.topic_id(name)
            if topic_id is None:
                self.log.warning("a log without a topic id is ignored", partition=str(name))
                yield None
                continue
            partition = self._add(name, topic_id.bytes)
            if self.trace is not None:
                clean = self.directory.last_shutdown is not None
                self.trace.restarted(partition, clean=clean)
            yield partition

    def _add(self, name: TopicPartition, topic_id: bytes) -> Partition:
        log = self.directory.log(name)
        settings = self._configs.of_topic(name.topic)
        log.epochs.truncate_to(log.log_end_offset)
        numbers = LogState(
            settings.core,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            high_watermark=self.directory.high_watermark(name),
            flushed_offset=log.recovery_point,
            epochs=log.epochs,
            producers=log.producers,
        )
        numbers.last_flush_ms = self.clock.now_ms()
        partition = Partition(self, name, topic_id, Replica(self.broker, numbers), log, settings)
        log.rolled = partial(self.flush, partition)
        log.epochs_changed = partial(self.flush, partition, has_records=False)
        if log.has_unflushed_seals:
            self.flush(partition)
        self.partitions[name] = partition
        self._by_id[topic_id, name.partition] = partition
        end_open_transactions(partition, self.log)
        return partition

    def has(self, name: TopicPartition) -> bool:
        """Whether this broker has a log of this name, in use or not."""
        return name in self.partitions or name in self.directory.partitions

    def topic_id(self, name: TopicPartition) -> bytes | None:
        """The id of the topic that a log belongs to; None if its directory has none."""
        partition = self.partitions.get(name)
        if partition is not None:
            return partition.topic_id
        found = self.directory.topic_id(name)
        return None if found is None else found.bytes

    def host(self, name: TopicPartition, topic_id: bytes) -> Partition:
        """The partition, created if it is new here; the store has this id for its topic.

        A log with another id belongs to a deleted topic of the same name and is deleted. OSError if
        there is an unusable log that may belong to this topic: it must not be removed.
        """
        partition = self.partitions.get(name)
        if partition is not None and partition.topic_id == topic_id:
            return partition
        if partition is not None:
            self.drop(name)
        if name not in self.directory.partitions or self._made_room(name, topic_id):
            self.directory.create(name, uuid.UUID(bytes=topic_id))
        return self._add(name, topic_id)

    def _made_room(self, name: TopicPartition, topic_id: bytes) -> bool:
        """Whether an unused log of another topic was deleted."""
        identity, log = self.topic_id(name), self.directory.of(name).logs.get(name)
        if identity in (topic_id, None):
            if log is None or log.offline is not None:
                raise OSError(f"the log {name} could not be opened; see the log lines of the start")
            if identity == topic_id:
                return False
            if log.log_end_offset:
                raise OSError(f"{name} has records, but no partition.metadata names their topic")
        self._discard(name)
        return True

    def drop(self, name: TopicPartition, *, delete: bool = True) -> None:
        """This broker no longer hosts the partition."""
        partition = self.partitions.pop(name, None)
        if partition is not None:
            self._by_id.pop((partition.topic_id, name.partition), None)
            self.fetchers.forget(partition)
            self._proposals.forget(partition)
            partition.close()
            self.traffic.leave(name.topic)
            self.role_changes.notify(partition)
        if delete and name in self.directory.partitions:
            self._discard(name)

    def _discard(self, name: TopicPartition) -> None:
        self.directory.delete(name, new_uuid(self._rng), self.clock.wall_ms())

    def apply_all(self, assignments: Sequence[PartitionAssignment]) -> list[ErrorCode]:
        """Apply the controller's states of some partitions; creates their logs together."""
        self._host_new(assignments)
        return [self._apply(*one) for one in assignments]

    def _host_new(self, assignments: Sequence[PartitionAssignment]) -> None:
        """Create the new logs; one that fails is tried alone later."""
        fresh = [one for one in assignments if one.name not in self.directory.partitions]
        new = {one.name: one for one in fresh if self._may_create(one.state)}
        made = self.directory.create_all(
            {name: uuid.UUID(bytes=one.topic_id) for name, one in new.items()}
        )
        for error in made.errors:
            self.log.warning("logs not created together", error=str(error))
        for name in made.partitions:
            self._add(name, new[name].topic_id)

    def _may_create(self, state: PartitionState) -> bool:
        is_offline = bool(self.directory.offline)
        return may_begin_empty(self.broker, state, is_directory_offline=is_offline)

    def _apply(self, name: TopicPartition, topic_id: bytes, state: PartitionState) -> ErrorCode:
        try:
            if name not in self.directory.partitions and not self._may_create(state):
                where = ", ".join(self.directory.offline)
                raise OSError(errno.EIO, f"the log may be in {where}, which is offline")
            partition = self.host(name, topic_id)
            end_open_transactions(partition, self.log)
            partition.apply(state)
        except (LogOfflineError, OSError) as error:
            self.log.error("the log cannot be used", partition=str(name), error=str(error))
            return ErrorCode.KAFKA_STORAGE_ERROR
        if partition.replica.has_failed:
            return ErrorCode.KAFKA_STORAGE_ERROR
        self.fetchers.follow(partition)
        self.role_changes.notify(partition)
        return ErrorCode.NONE

    # The end of a tick.

    def queue_write(self, partition: Partition) -> None:
        """Write this partition's batches when the tick is over."""
        if not self._to_write:
            self._loop.call_soon(self._write_all)
        self._to_write.append(partition)
        self._awaited[partition] = None

    def await_tick(self, partition: Partition) -> None:
        """Check this partition in the next tick."""
        self._awaited[partition] = None

    def _write_all(self) -> None:
        partitions, self._to_write = self._to_write, []
        for partition in partitions:
            partition.write()

    # Calls of partitions.

    def consider(self, partition: Partition, follower: BrokerId) -> None:
        """A follower may have caught up: check again when this tick is over."""
        self._loop.call_soon(self._expand, partition, follower)

    def _expand(self, partition: Partition, follower: BrokerId) -> None:
        partition.run(partition.replica.expand_isr(follower))

    def propose(self, partition: Partition) -> None:
        """Propose another ISR to the controller."""
        self._proposals.add(partition)

    def log_failed(self, partition: Partition, error: LogOfflineError) -> None:
        """Report it to the controller; a failed log is offline until this process restarts."""
        self.log.error("log failed", partition=str(partition.name), error=str(error))
        if self.trace is not None:
            self.trace.went_offline(partition, str(error))
        self.fetchers.forget(partition)
        self._failures.add([partition.name])
        self._failures.report_soon()

    def directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        """A whole log directory has failed: its partitions go offline."""
        path = self.directory.path_of(directory)
        self.log.error("log directory failed", directory=path, error=str(error))
        for name in tuple(directory.partitions):
            partition = self.partitions.get(name)
            if partition is not None and partition.log.offline is not None:
                partition.failed(partition.log.offline)

    def flush(self, partition: Partition, *, has_records: bool = True) -> None:
        """Flush this log soon; without records, only its leader-epoch checkpoint."""
        self._flushes.want(partition, has_records=has_records)

    def flush_all(self) -> None:
        """Force every log to the disk, now."""
        for partition in tuple(self.partitions.values()):
            if not partition.replica.has_failed:
                self._flushes.now(partition)

    # Time.

    def tick(self) -> None:
        """Check for expired requests, lagging followers and due flushes."""
        now_ms = self.clock.now_ms()
        due, self._awaited = self._awaited, {}
        due.update(dict.fromkeys(self._next_in_turn()))
        for partition in due:
            if self.partitions.get(partition.name) is not partition:
                continue
            replica = partition.replica
            partition.tail.trim(replica.log.high_watermark)
            effects = replica.tick(now_ms)
            if effects:
                partition.run(effects)
            if partition.tail or replica.is_awaited:
                self._awaited[partition] = None

    def _next_in_turn(self) -> list[Partition]:
        """A share of all partitions: those without waiters are checked less often, for lag only."""
        if not self._turn:
            self._turn = list(self.partitions.values())
        lag_ms = self._configs.settings.replica_lag_time_max_ms
        ticks = max(1, min(LONGEST_TURN_MS, lag_ms // 8) // TICK_MS)
        count = -(-len(self.partitions) // ticks)
        some = self._turn[-count:]
        del self._turn[-count:]
        return some

    def high_watermarks(self) -> dict[TopicPartition, Offset]:
        """For the checkpoint."""
        return {name: one.replica.log.high_watermark for name, one in self.partitions.items()}

    def settings_changed(self, topics: Iterable[str] | None) -> None:
        """Topic settings have changed; None for all topics."""
        wanted = None if topics is None else dict.fromkeys(topics)
        for name, partition in tuple(self.partitions.items()):
            if wanted is None or name.topic in wanted:
                partition.use(self._configs.of_topic(name.topic))
