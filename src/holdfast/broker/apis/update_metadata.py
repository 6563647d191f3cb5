"""UpdateMetadata: brokers, topics and leaders for clients, as far as the store confirms them.

This broker already has most of it, and unchanged entries cost nothing. Of the new entries, our own
roles confirm the partitions that we host; one read of the store confirms the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.metadata.controller_fencing import PART, Commands
from holdfast.broker.metadata.metadata_cache import (
    ChangedPartition,
    KnownBroker,
    KnownPartition,
    Metadata,
    Update,
)
from holdfast.broker.metadata.store_facts import Facts, read_brokers
from holdfast.broker.network.calls import Call
from holdfast.broker.network.peer_set import Peers
from holdfast.broker.replication.replicas import Replicas
from holdfast.broker.settings.listeners import Endpoint
from holdfast.coordination import Store
from holdfast.core import DURING_DELETION, Found, PartitionFact, state_age
from holdfast.model import BrokerId, ErrorCode, TopicPartition
from holdfast.protocol.messages.control import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

WHOLE: Final = 2
"""The type of an UpdateMetadata that names all topics."""

_Named = tuple[TopicPartition, bytes, UpdateMetadataPartitionState | None]
"""A partition, its topic's id and its new state; None if the topic was deleted."""


@dataclass(frozen=True, slots=True)
class UpdateParts:
    """What an update needs and changes."""

    commands: Commands
    metadata: Metadata
    replicas: Replicas
    peers: Peers
    groups: GroupCoordinator
    store: Store


def handle(parts: UpdateParts, call: Call) -> None:
    """Apply the updates that the store confirms."""
    request: UpdateMetadataRequest = call.request
    parts.commands.obey(call, request, partial(_Updates, parts), _refused)


def _refused(error: ErrorCode) -> UpdateMetadataResponse:
    return UpdateMetadataResponse(error_code=error)


async def _brokers(
    parts: UpdateParts, request: UpdateMetadataRequest
) -> dict[BrokerId, KnownBroker]:
    """The live brokers: the known ones if they are the same, or read in the store."""
    named: dict[BrokerId, KnownBroker] = {}
    for one in request.live_brokers:
        for endpoint in one.endpoints[:1]:
            identity = BrokerId(one.id)
            address = Endpoint(endpoint.host, endpoint.port)
            named[identity] = KnownBroker(identity, address, one.rack or None)
    known = parts.metadata.brokers
    if named == known:
        return known
    return await read_brokers(parts.store, list(dict.fromkeys((*known, *named))))


class _Updates:
    """The updates of one command, as far as the store confirms them."""

    def __init__(self, parts: UpdateParts, request: UpdateMetadataRequest) -> None:
        self._parts = parts
        self._request = request
        self._named: list[_Named] = []
        for topic in request.topic_states:
            for one in topic.partition_states:
                name = TopicPartition(topic.topic_name, one.partition_index)
                is_deleted = one.leader == DURING_DELETION
                self._named.append((name, topic.topic_id, None if is_deleted else one))
        if request.type == WHOLE:
            named = {topic.topic_id: None for topic in request.topic_states}
            for known in parts.metadata.topics.values():
                if known.id not in named:
                    self._named.append((TopicPartition(known.name, 0), known.id, None))
        self._done = 0
        self._size = 0
        """Of this part."""
        self._updates = _PartitionUpdates(parts, ())

    @property
    def is_done(self) -> bool:
        return self._done >= len(self._named)

    def next_part(self) -> list[TopicPartition]:
        part = self._named[self._done : self._done + PART]
        self._size = len(part)
        self._updates = _PartitionUpdates(self._parts, part)
        return list(self._updates.unsure)

    async def carry_out(self, facts: Facts) -> Found:
        """Publish the state in the store."""
        parts, updates = self._parts, self._updates
        brokers = parts.metadata.brokers
        is_first = not self._done
        if is_first:
            brokers = await _brokers(parts, self._request)
            parts.commands.check(self._request)
        is_fruitless = brokers is not parts.metadata.brokers == brokers
        update = Update(
            BrokerId(self._request.controller_id),
            brokers,
            list(updates.changed(facts)),
            updates.gone(facts),
        )
        parts.groups.partitions_deleted(parts.metadata.update(update))
        if is_first:
            for one in brokers.values():
                parts.peers.update(one.id, one.endpoint)
        self._done += self._size
        if updates.is_contradicted(facts):
            return Found.CONTRADICTION
        is_fruitless = is_fruitless or updates.is_deletion_unconfirmed(facts)
        return Found.NOTHING_NEW if is_fruitless else Found.AS_COMMANDED

    def response(self) -> UpdateMetadataResponse:
        return UpdateMetadataResponse(error_code=0)


class _PartitionUpdates:
    """The updates of a request that are new to this broker, and where to read them."""

    def __init__(self, parts: UpdateParts, named: Iterable[_Named]) -> None:
        self._parts = parts
        self._named: list[tuple[TopicPartition, bytes, UpdateMetadataPartitionState]] = []
        self._ended: dict[bytes, TopicPartition] = {}
        """Topics that the request names as deleted, and one partition of each to read."""
        self._own: Facts = {}
        self.unsure: dict[TopicPartition, None] = {}
        for name, topic_id, command in named:
            if command is None:
                self._end(topic_id)
            else:
                self._look_at(name, topic_id, command)

    def _look_at(
        self, name: TopicPartition, topic_id: bytes, command: UpdateMetadataPartitionState
    ) -> None:
        self._named.append((name, topic_id, command))
        age = (command.leader_epoch, command.zk_version)
        known = self._parts.metadata.partition(topic_id, name.partition)
        if known is not None and known.age >= age:
            return
        partition = self._parts.replicas.find(topic_id, name.partition)
        state = None if partition is None else partition.state
        if state is not None and state_age(state) >= age:
            self._own[name] = PartitionFact(topic_id, state)
        else:
            self.unsure[name] = None

    def _end(self, topic_id: bytes) -> None:
        topic = self._parts.metadata.topic(topic_id)
        if topic is not None and topic_id not in self._ended:
            name = self._ended[topic_id] = TopicPartition(topic.name, 0)
            self.unsure[name] = None

    def changed(self, facts: Facts) -> Iterator[ChangedPartition]:
        """The partitions that are new or changed."""
        for name, topic_id, command in self._named:
            known = self._known(name, topic_id, facts)
            if known is not None:
                # The offline replicas are in no node; only clients read them.
                offline = tuple(one for one in command.offline_replicas if one in known.replicas)
                yield ChangedPartition(name, topic_id, known._replace(offline=offline))

    def _known(self, name: TopicPartition, topic_id: bytes, facts: Facts) -> KnownPartition | None:
        """The newest state: another command of the round may have brought a newer one."""
        known = self._parts.metadata.partition(topic_id, name.partition)
        fact = facts.get(name) or self._own.get(name)
        if fact is None:
            return known
        state = fact.state
        if state is None or fact.topic_id != topic_id:
            return None
        found = KnownPartition(
            state.leader,
            state.leader_epoch,
            state.replicas,
            state.isr,
            (),
            state.partition_epoch,
        )
        return found if known is None or found.age >= known.age else known

    def is_contradicted(self, facts: Facts) -> bool:
        """Whether the store contradicts a partition that was read."""
        for name, topic_id, command in self._named:
            fact = facts.get(name)
            if fact is None or name not in self.unsure:
                continue
            state = fact.state
            if fact.topic_id != topic_id or state is None:
                return True
            if state_age(state) < (command.leader_epoch, command.zk_version):
                return True
        return False

    def is_deletion_unconfirmed(self, facts: Facts) -> bool:
        """Whether a topic that was omitted, or named as deleted, still exists."""
        return any(
            (fact := facts.get(name)) is not None and fact.topic_id == topic_id
            for topic_id, name in self._ended.items()
        )

    def gone(self, facts: Facts) -> list[bytes]:
        """The topics that are not in the store any more."""
        return [
            topic_id
            for topic_id, name in self._ended.items()
            if (fact := facts.get(name)) is not None and fact.topic_id != topic_id
        ]
