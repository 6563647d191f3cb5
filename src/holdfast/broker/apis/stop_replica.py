"""StopReplica: this broker stops hosting a partition, and deletes its log if asked."""

from __future__ import annotations

from functools import partial

from holdfast.broker.metadata.controller_fencing import PART, Commands
from holdfast.broker.metadata.store_facts import Facts
from holdfast.broker.network.calls import Call
from holdfast.broker.replication.replicas import Replicas
from holdfast.core import Found, PartitionFact, is_late_stop, is_removed
from holdfast.model import NO_EPOCH, ErrorCode, LeaderEpoch, TopicPartition
from holdfast.protocol.messages.control import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
)


def handle(commands: Commands, replicas: Replicas, call: Call) -> None:
    """Stop the replicas that the store no longer assigns to us; delete their logs if asked."""
    request: StopReplicaRequest = call.request
    commands.obey(call, request, partial(_Stops, replicas), _refused)


def _refused(error: ErrorCode) -> StopReplicaResponse:
    return StopReplicaResponse(error_code=error, partition_errors=[])


class _Stops:
    """The replicas that one command stops, as far as the store confirms it."""

    def __init__(self, replicas: Replicas, request: StopReplicaRequest) -> None:
        self._replicas = replicas
        self._partitions = [
            (TopicPartition(topic.topic_name, one.partition_index), one)
            for topic in request.topic_states
            for one in topic.partition_states
        ]
        self._part: list[tuple[TopicPartition, StopReplicaPartitionState]] = []
        self._errors: list[StopReplicaPartitionError] = []

    @property
    def is_done(self) -> bool:
        return len(self._errors) >= len(self._partitions)

    def next_part(self) -> list[TopicPartition]:
        done = len(self._errors)
        self._part = self._partitions[done : done + PART]
        return [name for name, one in self._part if _is_here(self._replicas, name, one)]

    async def carry_out(self, facts: Facts) -> Found:
        """Stop the replicas of this part."""
        found = Found.AS_COMMANDED
        for name, one in self._part:
            code = _stop(self._replicas, name, one, facts.get(name))
            error = StopReplicaPartitionError(
                topic_name=name.topic, partition_index=name.partition, error_code=code
            )
            self._errors.append(error)
            if code:
                found = Found.NOTHING_NEW
        return found

    def response(self) -> StopReplicaResponse:
        return StopReplicaResponse(error_code=0, partition_errors=self._errors)


def _is_here(replicas: Replicas, name: TopicPartition, command: StopReplicaPartitionState) -> bool:
    """Whether there is anything to stop, or to delete."""
    return name in replicas.partitions or (command.delete_partition and replicas.has(name))


def _stop(
    replicas: Replicas,
    name: TopicPartition,
    command: StopReplicaPartitionState,
    fact: PartitionFact | None,
) -> ErrorCode:
    if not _is_here(replicas, name, command):
        return ErrorCode.NONE
    partition = replicas.partitions.get(name)
    known = NO_EPOCH if partition is None else partition.replica.leader_epoch
    is_late = is_late_stop(LeaderEpoch(command.leader_epoch), known)
    if is_late or not is_removed(replicas.broker, replicas.topic_id(name), fact):
        return ErrorCode.FENCED_LEADER_EPOCH
    try:
        replicas.drop(name, delete=command.delete_partition)
    except OSError as error:
        replicas.log.error("replica not deleted", partition=str(name), error=str(error))
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
