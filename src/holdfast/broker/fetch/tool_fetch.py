"""Fetch for a tool that compares replicas: Kafka's "debugging replica", whose id is -2.

Every replica answers it, also a follower, up to its log end and without waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from holdfast.broker.replication.partition import Partition
from holdfast.model import ErrorCode, Offset
from holdfast.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)
from holdfast.storage import LogOfflineError, OffsetOutOfRangeError

DEBUGGING_REPLICA: Final = -2

Find = Callable[[str | bytes, int], Partition | None]


def answer(request: FetchRequest, find: Find, budget: int) -> FetchResponse:
    """The records and offsets of this broker's replicas, without a fetch session.

    `budget`: how many bytes the response may have. Only versions that name topics ask like this.
    """
    left = budget
    topics = []
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            data = _data(asked, find(topic.topic, asked.partition), left)
            left -= len(data.records or b"")
            partitions.append(data)
        topics.append(FetchableTopicResponse(topic=topic.topic, partitions=partitions))
    return FetchResponse(responses=topics)


def _data(asked: FetchPartition, partition: Partition | None, budget: int) -> FetchPartitionData:
    data = FetchPartitionData(
        partition_index=asked.partition,
        error_code=ErrorCode.NONE,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )
    if partition is None:
        data.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return data
    log = partition.replica.log
    start, end = Offset(asked.fetch_offset), log.log_end_offset
    try:
        if partition.replica.has_failed:
            data.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        elif not log.log_start_offset <= start <= end:
            data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        elif start < end and budget > 0:
            data.records = partition.read(start, min(asked.partition_max_bytes, budget), end)
    except LogOfflineError as failure:
        partition.read_failed(failure)
        data.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    except OffsetOutOfRangeError:
        data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
    if not data.error_code:
        data.high_watermark = log.high_watermark
        data.last_stable_offset = log.last_stable_offset
        data.log_start_offset = log.log_start_offset
    return data
