"""StopReplica: a partition has left this broker, perhaps with its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.broker.calls import Call
from holdfast.broker.store_facts import read_partitions
from holdfast.core import PartitionFact, is_removed
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
    """Stop what the store has taken from us, and delete it if that is asked for."""
    request = call.request
    assert isinstance(request, StopReplicaRequest)
    broker.commands.obey(call, request, _carry_out, _refused)


def _refused(error: ErrorCode) -> StopReplicaResponse:
    return StopReplicaResponse(error_code=error, partition_errors=[])


async def _carry_out(broker: Broker, request: StopReplicaRequest) -> StopReplicaResponse:
    told = [
        (TopicPartition(topic.topic_name, one.partition_index), one)
        for topic in request.topic_states
        for one in topic.partition_states
    ]
    here = [name for name, _ in told if broker.replicas.has(name)]
    facts = await read_partitions(broker.store, here) if here else {}
    broker.commands.check(request)
    errors = [
        StopReplicaPartitionError(
            topic_name=name.topic,
            partition_index=name.partition,
            error_code=_stop(broker, name, one, facts.get(name)),
        )
        for name, one in told
    ]
    return StopReplicaResponse(error_code=0, partition_errors=errors)


def _stop(
    broker: Broker,
    name: TopicPartition,
    told: StopReplicaPartitionState,
    fact: PartitionFact | None,
) -> ErrorCode:
    replicas = broker.replicas
    if not replicas.has(name):
        return ErrorCode.NONE
    partition = replicas.partitions.get(name)
    known = NO_EPOCH if partition is None else partition.replica.leader_epoch
    is_final = told.leader_epoch in (DURING_DELETION, NO_EPOCH)
    is_late = not is_final and told.leader_epoch < known
    if is_late or not is_removed(broker.id, replicas.topic_id(name), fact):
        return ErrorCode.FENCED_LEADER_EPOCH
    try:
        replicas.drop(name, delete=told.delete_partition)
    except OSError as error:
        broker.log.error("replica not deleted", partition=str(name), error=str(error))
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
