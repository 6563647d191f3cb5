"""LeaderAndIsr: the controller says whom we lead and whom we follow."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.broker.calls import Call
from holdfast.broker.commands import refusal_of
from holdfast.broker.peers import Endpoint
from holdfast.broker.replicas import Told
from holdfast.broker.tasks import answer_by
from holdfast.coordination import StoreError
from holdfast.model import (
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
    LeaderAndIsrTopicState,
)

if TYPE_CHECKING:
    from holdfast.broker.node import Broker

AT_ONCE: Final = 200
"""Partitions that take their roles, and their place on the disk, in one go."""


def handle(broker: Broker, call: Call) -> None:
    """Take every role, then answer; a refused command changes nothing.

    Before a reign begins its settings are read: a leader that went by a lower min.insync.replicas
    than the controller would commit what that counts on not being committed. Meanwhile nothing
    else is commanded, because one command is under way at a time.
    """
    request = call.request
    assert isinstance(request, LeaderAndIsrRequest)
    error = refusal_of(broker, request.controller_epoch, request.broker_epoch)
    if error:
        call.answer(LeaderAndIsrResponse(error_code=error))
        return
    fresh = [
        topic.topic_name
        for topic in request.topic_states
        if any(_is_fresh(broker, topic, told) for told in topic.partition_states)
    ]
    answer_by(broker, call, _read_and_take(broker, request, fresh))


def _is_fresh(
    broker: Broker, topic: LeaderAndIsrTopicState, told: LeaderAndIsrPartitionState
) -> bool:
    partition = broker.replicas.find(topic.topic_id, told.partition_index)
    if partition is None:
        return True
    return told.leader == broker.id and told.leader_epoch > partition.replica.leader_epoch


async def _read_and_take(
    broker: Broker, request: LeaderAndIsrRequest, fresh: list[str]
) -> LeaderAndIsrResponse:
    if fresh:
        try:
            await broker.configs.read_topics(broker.store, fresh)
            broker.replicas.settings_changed(fresh)
        except StoreError:
            return LeaderAndIsrResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
    return await _take(broker, request)


async def _take(broker: Broker, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    """Some at a time, so that others are served between them."""
    told = [
        Told(TopicPartition(topic.topic_name, one.partition_index), topic.topic_id, _state(one))
        for topic in request.topic_states
        for one in topic.partition_states
    ]
    errors: dict[bytes, list[LeaderAndIsrPartitionError]] = {}
    for first in range(0, max(1, len(told)), AT_ONCE):
        if first:
            await asyncio.sleep(0)
        error = refusal_of(broker, request.controller_epoch, request.broker_epoch)
        if error:
            return LeaderAndIsrResponse(error_code=error)
        if not first:
            for one in request.live_leaders:
                broker.peers.update(BrokerId(one.broker_id), Endpoint(one.host_name, one.port))
        some = told[first : first + AT_ONCE]
        for (name, topic_id, _), code in zip(some, broker.replicas.apply_all(some), strict=True):
            answer = LeaderAndIsrPartitionError(partition_index=name.partition, error_code=code)
            errors.setdefault(topic_id, []).append(answer)
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
