"""LeaderAndIsr: the controller says whom we lead and whom we follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.calls import Call
from holdfast.broker.commands import refusal_of
from holdfast.broker.peers import Endpoint
from holdfast.model import (
    BrokerId,
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


def handle(broker: Broker, call: Call) -> None:
    """Take every role, then answer; a refused command changes nothing."""
    request = call.request
    assert isinstance(request, LeaderAndIsrRequest)
    error = refusal_of(broker, request.controller_epoch, request.broker_epoch)
    if error:
        call.answer(LeaderAndIsrResponse(error_code=error))
        return
    for one in request.live_leaders:
        broker.peers.update(BrokerId(one.broker_id), Endpoint(one.host_name, one.port))
    topics = []
    for topic in request.topic_states:
        errors = [
            LeaderAndIsrPartitionError(
                partition_index=told.partition_index,
                error_code=broker.replicas.apply(
                    TopicPartition(topic.topic_name, told.partition_index),
                    topic.topic_id,
                    _state(told),
                ),
            )
            for told in topic.partition_states
        ]
        topics.append(LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=errors))
    call.answer(LeaderAndIsrResponse(error_code=0, topics=topics))


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
