"""The group coordinator of a broker: finds the shard of a group, loads shards, runs one timer.

The leader of an offsets partition coordinates the groups whose ids hash to that partition, among
the partitions that `__consumer_offsets` actually has.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from holdfast.broker.groups.coordinator_shard import CoordinatorShard
from holdfast.broker.metadata.metadata_cache import KnownBroker
from holdfast.broker.metadata.topic_names import OFFSETS_TOPIC
from holdfast.broker.replication.partition import Partition
from holdfast.broker.uuids import new_uuid
from holdfast.core.groups import Caller, Effect, Effects, Groups, GroupSettings, Phase
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.coordinator_records import partition_for, subscribed_topics
from holdfast.storage import LogOfflineError

if TYPE_CHECKING:
    from holdfast.broker.node import Broker
    from holdfast.broker.settings import BrokerSettings

LONGEST_NAME_IN_ID: Final = 32_000
"""Member ids begin with the client id, and must fit a string of the wire format."""

Waiter = Callable[[Any], None]
"""Identifies a request to the core; called with the effect that answers it."""


class GroupCoordinator:
    """All groups that this broker coordinates."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.loop = broker.loop
        self.clock = broker.clock
        self._shards: dict[int, CoordinatorShard] = {}
        self._to_load: deque[CoordinatorShard] = deque()
        self._elsewhere = Groups(GroupSettings(), subscribed_topics)
        """For partitions that other brokers lead: it refuses everything as the core does."""
        self._elsewhere.unload()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_s = 0.0
        broker.replicas.role_changes.subscribe(OFFSETS_TOPIC, self.role_changed)
        broker.replicas.high_watermark_moves.subscribe(OFFSETS_TOPIC, self.high_watermark_moved)

    def stop(self) -> None:
        """Stop all groups: the logs are about to be closed."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._to_load.clear()
        for shard in self._shards.values():
            shard.end()
        self._shards.clear()

    @property
    def commit_timeout_ms(self) -> int:
        """How long the in-sync replicas have to replicate what groups write."""
        return self._broker.settings.offsets_commit_timeout_ms

    # Finding a group.

    def _partition_of(self, group_id: str) -> int | None:
        topic = self._broker.metadata.topics.get(OFFSETS_TOPIC)
        return partition_for(group_id, len(topic.partitions)) if topic is not None else None

    def coordinator_of(self, group_id: str) -> KnownBroker | None:
        """The coordinator of a group, None if there is none. Creates the offsets topic."""
        metadata = self._broker.metadata
        place = self._partition_of(group_id)
        if place is None:
            self._broker.auto_creation.create([OFFSETS_TOPIC])
            return None
        found = metadata.leader_of(OFFSETS_TOPIC, place)
        return metadata.brokers.get(found[0]) if found is not None else None

    def _shard_of(self, group_id: str) -> CoordinatorShard | None:
        place = self._partition_of(group_id)
        return self._shards.get(place) if place is not None else None

    # Calls of handlers. Every waiter is called once, immediately or later.

    def ask(self, group_id: str, question: Callable[[Groups, int], Effects]) -> None:
        """Pass a request to the group's partition, and carry out the effects."""
        shard = self._shard_of(group_id)
        if shard is not None:
            shard.run(question(shard.groups, shard.now_ms()))
            return
        for effect in question(self._elsewhere, self.clock.wall_ms()):
            self.answer(effect)

    def look(self, group_id: str) -> Groups:
        """The group's partition, for requests that change nothing."""
        shard = self._shard_of(group_id)
        return shard.groups if shard is not None else self._elsewhere

    def heartbeat(self, caller: Caller) -> ErrorCode:
        """A member's heartbeat."""
        shard = self._shard_of(caller.group_id)
        if shard is None:
            return self._elsewhere.heartbeat(caller, 0)
        error = shard.groups.heartbeat(caller, shard.now_ms())
        self.arm(shard)
        return error

    def all_groups(self) -> Iterator[Groups]:
        """One for each partition that we lead."""
        return (shard.groups for shard in self._shards.values())

    def new_member_id(self, name: str) -> str:
        """A unique member id."""
        drawn = new_uuid(self._broker.rng)
        opening = name.encode()[:LONGEST_NAME_IN_ID].decode(errors="ignore")
        return f"{opening}-{drawn}"

    def partitions_deleted(self, partitions: Sequence[TopicPartition]) -> None:
        """The controller has deleted these partitions."""
        if partitions:
            for shard in tuple(self._shards.values()):
                shard.forget_partitions(partitions)

    # Shards.

    def role_changed(self, partition: Partition) -> None:
        """The role or the leader epoch of a partition may have changed."""
        name = partition.name
        if name.topic != OFFSETS_TOPIC:
            return
        replica = partition.replica
        shard = self._shards.get(name.partition)
        is_hosted = self._broker.replicas.partitions.get(name) is partition
        leads = is_hosted and replica.presumes_leadership and not replica.has_failed
        if shard is not None:
            is_same = shard.partition is partition and shard.leader_epoch == replica.leader_epoch
            if leads and is_same:
                return
            # Another broker may have led in between, so our state may be out of date.
            del self._shards[name.partition]
            shard.end()
        if leads and not self._broker.is_stopping:
            self._begin(partition)

    def _begin(self, partition: Partition) -> None:
        shard = CoordinatorShard(self, partition, _group_settings(self._broker.settings))
        self._shards[partition.name.partition] = shard
        if shard.loader.is_empty:
            # A new topic: there is nothing to load, and clients are about to join.
            shard.was_loaded()
            return
        self._to_load.append(shard)
        if len(self._to_load) == 1:
            self.loop.call_soon(self._load)

    def _load(self) -> None:
        """Load one slice of the oldest shard that is not loaded."""
        if not self._to_load:
            return
        shard = self._to_load[0]
        if shard.groups.phase is Phase.GONE or not self._load_slice(shard):
            self._to_load.popleft()
        if self._to_load:
            self.loop.call_soon(self._load)

    def _load_slice(self, shard: CoordinatorShard) -> bool:
        """Whether there is more to load."""
        try:
            if shard.loader.step():
                return True
        except LogOfflineError as error:
            shard.partition.failed(error)
            return False
        shard.was_loaded()
        return False

    def began(self, shard: CoordinatorShard) -> None:
        """A shard answers from now on."""
        loader = shard.loader
        name = str(shard.partition.name)
        if loader.skipped:
            self._broker.log.warning(
                "records of groups left out",
                partition=name,
                count=loader.skipped,
                first=loader.first_skipped,
            )
        if loader.records:
            self._broker.log.info("groups loaded", partition=name, records=loader.records)

    def high_watermark_moved(self, partition: Partition) -> None:
        """Called for every partition of the broker, so it must be quick."""
        if partition.name.topic == OFFSETS_TOPIC:
            shard = self._shards.get(partition.name.partition)
            if shard is not None:
                shard.high_watermark_moved()

    # Calls of shards.

    def answer(self, effect: Effect) -> None:
        """Give an answer to its waiter."""
        waiter = cast("Waiter", effect.waiter)  # type: ignore[union-attr]
        waiter(effect)

    def arm(self, shard: CoordinatorShard) -> None:
        """Set the timer for the shard's next deadline."""
        due_ms = shard.due_in_ms()
        if due_ms is None:
            return
        at_s = self.loop.time() + max(due_ms, 0) / 1000
        if self._timer is not None:
            if self._timer_at_s <= at_s:
                return
            self._timer.cancel()
        self._timer_at_s = at_s
        self._timer = self.loop.call_at(at_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        for shard in tuple(self._shards.values()):
            due_ms = shard.due_in_ms()
            if due_ms is not None and due_ms <= 0:
                shard.tick()
            self.arm(shard)


def _group_settings(settings: BrokerSettings) -> GroupSettings:
    return GroupSettings(
        group_min_session_timeout_ms=settings.group_min_session_timeout_ms,
        group_max_session_timeout_ms=settings.group_max_session_timeout_ms,
        group_initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        group_max_size=settings.group_max_size,
        offset_metadata_max_bytes=settings.offset_metadata_max_bytes,
        offsets_retention_minutes=settings.offsets_retention_minutes,
        offsets_retention_check_interval_ms=settings.offsets_retention_check_interval_ms,
    )
