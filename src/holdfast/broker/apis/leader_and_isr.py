"""LeaderAndIsr: which partitions we lead and which we follow, as the store has it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.broker.calls import Call
from holdfast.broker.replicas import Told
from holdfast.broker.settings.listeners import Endpoint
from holdfast.broker.store_facts import read_brokers, read_partitions
from holdfast.core import PartitionFact, is_known, role_of
from holdfast.model import (
    NO_BROKER,
    BrokerId,
    ErrorCode,
    LeaderEpoch,
    PartitionEpoch,
    PartitionState,
    TopicPartition,
)
from holdfast.protocol.messages.control import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)

if TYPE_CHECKING:
    from holdfast.broker.node import Broker

AT_ONCE: Final = 200
"""Partitions that take their roles, and their place on the disk, in one go."""


def handle(broker: Broker, call: Call) -> None:
    """Take every role that the store gives us, then answer; a refused command changes nothing."""
    request = call.request
    assert isinstance(request, LeaderAndIsrRequest)
    broker.commands.obey(call, request, _carry_out, _refused)


def _refused(error: ErrorCode) -> LeaderAndIsrResponse:
    return LeaderAndIsrResponse(error_code=error)


async def _carry_out(broker: Broker, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    """Read what the store says of these partitions, and take those roles.

    Before a leader epoch begins its settings are read: a leader that went by a lower
    min.insync.replicas than the controller would commit what that counts on not being committed.
    """
    told = [
        Told(TopicPartition(topic.topic_name, one.partition_index), topic.topic_id, _state(one))
        for topic in request.topic_states
        for one in topic.partition_states
    ]
    roles = await _confirmed(broker, told)
    taken = [one for one in roles if isinstance(one, Told)]
    fresh = list(dict.fromkeys(one.name.topic for one in taken if _is_fresh(broker, one)))
    if fresh:
        await broker.configs.read_topics(broker.store, fresh)
        broker.replicas.settings_changed(fresh)
    await _find_leaders(broker, request, taken)
    codes: list[ErrorCode] = []
    for first in range(0, max(1, len(taken)), AT_ONCE):
        if first:
            await asyncio.sleep(0)
        broker.commands.check(request)
        codes += broker.replicas.apply_all(taken[first : first + AT_ONCE])
    done = iter(codes)
    return _answer(told, [next(done) if isinstance(one, Told) else one for one in roles])


async def _confirmed(broker: Broker, told: list[Told]) -> list[Told | ErrorCode]:
    """The store's state of each partition, or why none is to be taken.

    What says nothing new is answered without the store, with the state that we go by.
    """
    own = [_own(broker, one) for one in told]
    pairs = list(zip(told, own, strict=True))
    new = [one.name for one, known in pairs if not is_known(one.topic_id, one.state, known)]
    facts = await read_partitions(broker.store, new) if new else {}
    unknown = dict.fromkeys(new)
    roles: list[Told | ErrorCode] = []
    for one, known in pairs:
        fact = facts.get(one.name) if one.name in unknown else known
        role = role_of(broker.id, one.topic_id, one.state, fact)
        roles.append(role if isinstance(role, ErrorCode) else one._replace(state=role))
    return roles


def _own(broker: Broker, told: Told) -> PartitionFact | None:
    """What the store has confirmed to us before: as a replica, or as the controller."""
    service = broker.controller
    name = None if service is None else service.topic_names.get(told.topic_id)
    if service is not None and name == told.name.topic and service.knows(told.name):
        return PartitionFact(told.topic_id, service.core.partitions[told.name])
    partition = broker.replicas.find(told.topic_id, told.name.partition)
    return None if partition is None else PartitionFact(told.topic_id, partition.state)


def _is_fresh(broker: Broker, told: Told) -> bool:
    partition = broker.replicas.find(told.topic_id, told.name.partition)
    if partition is None:
        return True
    leads = told.state.leader == broker.id
    return leads and told.state.leader_epoch > partition.replica.leader_epoch


async def _find_leaders(broker: Broker, request: LeaderAndIsrRequest, taken: list[Told]) -> None:
    """Where the leaders that we follow listen: as the store has it, if the command has news."""
    named = {
        BrokerId(one.broker_id): Endpoint(one.host_name, one.port) for one in request.live_leaders
    }
    wanted: dict[BrokerId, None] = {}
    for leader in dict.fromkeys(one.state.leader for one in taken):
        known = broker.peers.listens_at(leader)
        if leader not in (broker.id, NO_BROKER) and (known is None or named.get(leader) != known):
            wanted[leader] = None
    if wanted:
        for one in (await read_brokers(broker.store, list(wanted))).values():
            broker.peers.update(one.id, one.endpoint)


def _answer(told: list[Told], codes: list[ErrorCode]) -> LeaderAndIsrResponse:
    errors: dict[bytes, list[LeaderAndIsrPartitionError]] = {}
    for (name, topic_id, _), code in zip(told, codes, strict=True):
        error = LeaderAndIsrPartitionError(partition_index=name.partition, error_code=code)
        errors.setdefault(topic_id, []).append(error)
    topics = [
        LeaderAndIsrTopicError(topic_id=topic_id, partition_errors=found)
        for topic_id, found in errors.items()
    ]
    return LeaderAndIsrResponse(error_code=0, topics=topics)


def _state(told: LeaderAndIsrPartitionState) -> PartitionState:
    return PartitionState(
        replicas=tuple(map(BrokerId, told.replicas)),
        isr=tuple(map(BrokerId, told.isr)),
        leader=BrokerId(told.leader),
        leader_epoch=LeaderEpoch(told.leader_epoch),
        partition_epoch=PartitionEpoch(told.partition_epoch),
        adding=tuple(map(BrokerId, told.adding_replicas)),
        removing=tuple(map(BrokerId, told.removing_replicas)),
    )
