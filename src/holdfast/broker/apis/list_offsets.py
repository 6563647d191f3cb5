"""ListOffsets: earliest, latest, by timestamp, and the record with the highest timestamp."""

from __future__ import annotations

from typing import Final

from holdfast.broker.fetch.tool_fetch import DEBUGGING_REPLICA
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.network.calls import Call
from holdfast.broker.replication.partition import Partition
from holdfast.broker.replication.replicas import Replicas
from holdfast.model import NO_EPOCH, ErrorCode, LeaderEpoch, Offset
from holdfast.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from holdfast.storage import LogOfflineError, latest_timestamp, offset_for_timestamp

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
REMOTE: Final = (-5, -6)
"""Timestamps of tiered storage, which is not supported: there is no such offset."""
READ_COMMITTED: Final = 1
LEADER_EPOCH_FROM: Final = 4


def handle(replicas: Replicas, metadata: Metadata, call: Call) -> None:
    """One answer for each partition."""
    request: ListOffsetsRequest = call.request
    topics = [
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=[
                _answer(replicas, metadata, topic.name, asked, request)
                for asked in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    if call.version < LEADER_EPOCH_FROM:
        for topic in topics:
            for answer in topic.partitions:
                answer.leader_epoch = NO_EPOCH
    call.answer(ListOffsetsResponse(topics=topics))


def _answer(
    replicas: Replicas,
    metadata: Metadata,
    topic: str,
    asked: ListOffsetsPartition,
    request: ListOffsetsRequest,
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=0)
    partition = replicas.find(topic, asked.partition_index)
    if partition is None:
        answer.error_code = metadata.not_hosted_error(topic, asked.partition_index)
        return answer
    error = _refusal(partition, asked, request)
    try:
        if not error:
            error = _look(partition, asked.timestamp, request, answer)
    except LogOfflineError as failure:
        partition.read_failed(failure)
        error = ErrorCode.KAFKA_STORAGE_ERROR
    answer.error_code = error
    return answer


def _refusal(
    partition: Partition, asked: ListOffsetsPartition, request: ListOffsetsRequest
) -> ErrorCode:
    replica = partition.replica
    if request.replica_id == DEBUGGING_REPLICA:
        return ErrorCode.KAFKA_STORAGE_ERROR if replica.has_failed else ErrorCode.NONE
    epoch = LeaderEpoch(asked.current_leader_epoch)
    return replica.end_offset_for(replica.leader_epoch, epoch)[0]


def _look(
    partition: Partition,
    timestamp: int,
    request: ListOffsetsRequest,
    answer: ListOffsetsPartitionResponse,
) -> ErrorCode:
    numbers = partition.replica.log
    epochs = numbers.epochs
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        answer.offset = numbers.log_start_offset
        answer.leader_epoch = epochs.epoch_at(numbers.log_start_offset)
        return ErrorCode.NONE
    if timestamp == LATEST:
        return _latest(partition, request, answer)
    if timestamp in REMOTE:
        return ErrorCode.NONE
    found = (
        latest_timestamp(partition.log)
        if timestamp == MAX_TIMESTAMP
        else offset_for_timestamp(partition.log, timestamp)
    )
    end = _readable_end(partition, request)
    if found is not None and found.offset < end:
        answer.offset = found.offset
        answer.timestamp = found.timestamp
        answer.leader_epoch = found.leader_epoch
    return ErrorCode.NONE


def _latest(
    partition: Partition, request: ListOffsetsRequest, answer: ListOffsetsPartitionResponse
) -> ErrorCode:
    if request.replica_id < 0 and request.replica_id != DEBUGGING_REPLICA:
        error, _ = partition.replica.latest_offset()
        if error:
            return error
    answer.offset = _readable_end(partition, request)
    answer.leader_epoch = partition.replica.leader_epoch
    return ErrorCode.NONE


def _readable_end(partition: Partition, request: ListOffsetsRequest) -> Offset:
    """A follower and a tool read to the log end; a consumer reads what is committed."""
    if request.replica_id >= 0 or request.replica_id == DEBUGGING_REPLICA:
        return partition.replica.log.log_end_offset
    if request.isolation_level == READ_COMMITTED:
        return partition.replica.log.last_stable_offset
    return partition.replica.log.high_watermark
