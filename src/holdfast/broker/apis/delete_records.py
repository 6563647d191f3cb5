"""DeleteRecords: raises a log's start offset on the leader and then on all followers."""

from __future__ import annotations

import asyncio
from typing import Final

from holdfast.broker.clock import Clock
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.network.calls import Call
from holdfast.broker.replication.partition import Partition
from holdfast.broker.replication.replicas import Replicas
from holdfast.broker.tasks import RequestTasks
from holdfast.core import Leader, deletion_target, low_watermark
from holdfast.model import BrokerId, ErrorCode
from holdfast.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from holdfast.storage import LogOfflineError

LOOK_AGAIN_S: Final = 0.01


def handle(
    tasks: RequestTasks, replicas: Replicas, metadata: Metadata, clock: Clock, call: Call
) -> None:
    """Delete records, then wait until every in-sync replica has deleted them."""
    request: DeleteRecordsRequest = call.request
    tasks.answer_by(call, _delete(replicas, metadata, clock, request))


async def _delete(
    replicas: Replicas, metadata: Metadata, clock: Clock, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    deadline_ms = clock.now_ms() + request.timeout_ms
    results: list[DeleteRecordsTopicResult] = []
    waiting: list[tuple[DeleteRecordsPartitionResult, Partition, int]] = []
    for topic in request.topics:
        partitions: list[DeleteRecordsPartitionResult] = []
        results.append(DeleteRecordsTopicResult(name=topic.name, partitions=partitions))
        for asked in topic.partitions:
            result = DeleteRecordsPartitionResult(
                partition_index=asked.partition_index, low_watermark=-1, error_code=0
            )
            partitions.append(result)
            partition = replicas.find(topic.name, asked.partition_index)
            if partition is None:
                result.error_code = metadata.not_hosted_error(topic.name, asked.partition_index)
                continue
            target = _begin(partition, asked, result)
            if not result.error_code:
                waiting.append((result, partition, target))
    while waiting:
        waiting = [one for one in waiting if not _is_done(*one)]
        if waiting and clock.now_ms() >= deadline_ms:
            for result, _, _ in waiting:
                result.error_code = ErrorCode.REQUEST_TIMED_OUT
            break
        if waiting:
            await asyncio.sleep(LOOK_AGAIN_S)
    return DeleteRecordsResponse(topics=results)


def _begin(
    partition: Partition, asked: DeleteRecordsPartition, result: DeleteRecordsPartitionResult
) -> int:
    """Move our own log start; returns the target offset."""
    if partition.presumes_leadership and not partition.log.settings.is_deleted:
        result.error_code = ErrorCode.POLICY_VIOLATION
        return 0
    result.error_code, target = deletion_target(partition.replica, asked.offset)
    if result.error_code:
        return 0
    try:
        partition.advance_start_to(target)
    except LogOfflineError as error:
        partition.failed(error)
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return target


def _is_done(result: DeleteRecordsPartitionResult, partition: Partition, target: int) -> bool:
    role = partition.replica.role
    if not isinstance(role, Leader):
        result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return True
    starts: dict[BrokerId, int] = {partition.replica.broker: partition.log.log_start_offset}
    for session, reader in partition.sessions.items():
        if session.follower is not None:
            starts[session.follower] = reader.log_start_offset
    reached = low_watermark(role, starts)
    if reached < target:
        return False
    result.low_watermark = reached
    return True
