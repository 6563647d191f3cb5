"""The coordinator of an internal topic: finds the shard of a key, loads shards, runs one timer.

The leader of a partition coordinates the keys (group ids, transactional ids) that hash to that
partition, among the partitions that the topic actually has.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from holdfast.broker.coordinator.shard import (
    CoordinatorKind,
    CoordinatorParts,
    CoordinatorShard,
    State,
)
from holdfast.broker.metadata.metadata_cache import KnownBroker
from holdfast.broker.replication.partition import Partition
from holdfast.core.coordinator import Phase
from holdfast.protocol.coordinator_records import partition_for

T = TypeVar("T")


class CoordinatorShards(Generic[State]):
    """The shards of one internal topic that this broker leads."""

    def __init__(self, parts: CoordinatorParts, kind: CoordinatorKind[State]) -> None:
        self._parts = parts
        self._kind = kind
        self._shards: dict[int, CoordinatorShard[State]] = {}
        self._to_load: deque[CoordinatorShard[State]] = deque()
        self._elsewhere = kind.new_state()
        """For partitions that other brokers lead: it refuses everything as the core does."""
        self._elsewhere.unload()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_s = 0.0
        parts.replicas.role_changes.subscribe(kind.topic, self.role_changed)
        parts.replicas.high_watermark_moves.subscribe(kind.topic, self.high_watermark_moved)

    def stop(self) -> None:
        """Stop all shards: the logs are about to be closed."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._to_load.clear()
        for shard in self._shards.values():
            shard.end()
        self._shards.clear()

    # Finding a key's partition.

    def _partition_of(self, key: str) -> int | None:
        topic = self._parts.metadata.topics.get(self._kind.topic)
        return partition_for(key, len(topic.partitions)) if topic is not None else None

    def coordinator_of(self, key: str) -> KnownBroker | None:
        """The coordinator of a key, None if there is none. Creates the internal topic."""
        metadata = self._parts.metadata
        place = self._partition_of(key)
        if place is None:
            self._parts.auto_creation.create([self._kind.topic])
            return None
        found = metadata.leader_of(self._kind.topic, place)
        return metadata.brokers.get(found[0]) if found is not None else None

    def _shard_of(self, key: str) -> CoordinatorShard[State] | None:
        place = self._partition_of(key)
        return self._shards.get(place) if place is not None else None

    # Requests. Every waiter is answered once, immediately or later.

    def ask(self, key: str, question: Callable[[State, int], Sequence[object]]) -> None:
        """Pass a request to the key's partition, and carry out the effects."""
        shard = self._shard_of(key)
        if shard is not None:
            shard.run(question(shard.state, shard.now_ms()))
            return
        for effect in question(self._elsewhere, self._parts.clock.wall_ms()):
            self._kind.carry_out(effect)

    def ask_all(self, question: Callable[[State, int], Sequence[object]]) -> None:
        """Pass a request to all partitions that we lead, and carry out the effects."""
        for shard in tuple(self._shards.values()):
            shard.run(question(shard.state, shard.now_ms()))

    def ask_directly(self, key: str, question: Callable[[State, int], T]) -> T:
        """Pass a request without effects to the key's partition, and return the answer."""
        shard = self._shard_of(key)
        if shard is None:
            return question(self._elsewhere, self._parts.clock.wall_ms())
        answer = question(shard.state, shard.now_ms())
        self._arm(shard)
        return answer

    def look(self, key: str) -> State:
        """The state of the key's partition, for requests that change nothing."""
        shard = self._shard_of(key)
        return shard.state if shard is not None else self._elsewhere

    def states(self) -> Iterator[State]:
        """One for each partition that we lead."""
        return (shard.state for shard in self._shards.values())

    # Shards.

    def role_changed(self, partition: Partition) -> None:
        """The role or the leader epoch of one of our topic's partitions may have changed."""
        name, replica = partition.name, partition.replica
        shard = self._shards.get(name.partition)
        is_hosted = self._parts.replicas.partitions.get(name) is partition
        leads = is_hosted and replica.presumes_leadership and not replica.has_failed
        if shard is not None:
            is_same = shard.partition is partition and shard.leader_epoch == replica.leader_epoch
            if leads and is_same:
                return
            # Another broker may have led in between, so our state may be out of date.
            del self._shards[name.partition]
            shard.end()
        if leads and not self._parts.is_stopping():
            self._begin(partition)

    def _begin(self, partition: Partition) -> None:
        shard = CoordinatorShard(self._parts, self._kind, partition, self._arm)
        self._shards[partition.name.partition] = shard
        if shard.loader.is_empty:
            # A new topic: there is nothing to load, and clients are about to send requests.
            shard.load()
            return
        self._to_load.append(shard)
        if len(self._to_load) == 1:
            self._parts.clock.loop.call_soon(self._load)

    def _load(self) -> None:
        """Load one slice of the oldest shard that is not loaded."""
        if not self._to_load:
            return
        shard = self._to_load[0]
        if shard.state.phase is Phase.GONE or not shard.load():
            self._to_load.popleft()
        if self._to_load:
            self._parts.clock.loop.call_soon(self._load)

    def high_watermark_moved(self, partition: Partition) -> None:
        """More of one of our topic's partitions is committed."""
        shard = self._shards.get(partition.name.partition)
        if shard is not None:
            shard.high_watermark_moved()

    # Time.

    def _arm(self, shard: CoordinatorShard[State]) -> None:
        """Set the timer for the shard's next deadline."""
        due_ms = shard.due_in_ms()
        if due_ms is None:
            return
        loop = self._parts.clock.loop
        at_s = loop.time() + max(due_ms, 0) / 1000
        if self._timer is not None:
            if self._timer_at_s <= at_s:
                return
            self._timer.cancel()
        self._timer_at_s = at_s
        self._timer = loop.call_at(at_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        for shard in tuple(self._shards.values()):
            due_ms = shard.due_in_ms()
            if due_ms is not None and due_ms <= 0:
                shard.tick()
            self._arm(shard)
