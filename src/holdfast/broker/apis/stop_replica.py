"""StopReplica: a partition has left this broker, perhaps with its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.broker.calls import Call
from holdfast.broker.commands import refusal_of
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.messages.control import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
)

if TYPE_CHECKING:
    from holdfast.broker.node import Broker

DURING_DELETION: Final = -2
"""The leader epoch of a partition whose topic is deleted: no epoch comes after it."""
NO_EPOCH: Final = -1


def handle(broker: Broker, call: Call) -> None:
    """Stop, and delete if that is asked for."""
    request = call.request
    assert isinstance(request, StopReplicaRequest)
    error = refusal_of(broker, request.controller_epoch, request.broker_epoch)
    if error:
        call.answer(StopReplicaResponse(error_code=error, partition_errors=[]))
        return
    errors = [
        StopReplicaPartitionError(
            topic_name=topic.topic_name,
            partition_index=told.partition_index,
            error_code=_stop(broker, TopicPartition(topic.topic_name, told.partition_index), told),
        )
        for topic in request.topic_states
        for told in topic.partition_states
    ]
    call.answer(StopReplicaResponse(error_code=0, partition_errors=errors))


def _stop(broker: Broker, name: TopicPartition, told: StopReplicaPartitionState) -> ErrorCode:
    partition = broker.replicas.partitions.get(name)
    if partition is not None:
        known = partition.replica.leader_epoch
        is_final = told.leader_epoch in (DURING_DELETION, NO_EPOCH)
        if not is_final and told.leader_epoch < known:
            return ErrorCode.FENCED_LEADER_EPOCH
    try:
        broker.replicas.drop(name, delete=told.delete_partition)
    except OSError as error:
        broker.log.error("replica not deleted", partition=str(name), error=str(error))
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
