"""DescribeLogDirs: the size of each log on the disk, and its lag.

A follower's lag is its distance to the last high watermark that the leader sent. A leader's log end
is never below the high watermark, so its lag is 0.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from holdfast.broker.network.calls import Call
from holdfast.broker.replication.partition import Partition
from holdfast.broker.replication.replicas import Replicas
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.messages.cluster import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from holdfast.storage import LogDirectories, LogDirectory


def handle(replicas: Replicas, directory: LogDirectories, call: Call) -> None:
    """Every log directory of this broker; a failed one only with its error."""
    request: DescribeLogDirsRequest = call.request
    found: dict[LogDirectory, dict[str, list[DescribeLogDirsPartition]]] = {}
    for name in _wanted(replicas, request):
        partition = replicas.partitions.get(name)
        if partition is not None:
            topics = found.setdefault(directory.of(name), {})
            topics.setdefault(name.topic, []).append(_described(partition))
    live = directory.live
    results = [
        _result(path, found.get(live[path], {})) if path in live else _failed(path)
        for path in directory.paths
    ]
    call.answer(DescribeLogDirsResponse(results=results))


def _result(
    path: str, topics: Mapping[str, list[DescribeLogDirsPartition]]
) -> DescribeLogDirsResult:
    try:
        usage = shutil.disk_usage(path)
        total, usable = usage.total, usage.free
    except OSError:
        total = usable = -1
    return DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=str(Path(path).absolute()),
        topics=[DescribeLogDirsTopic(name=one, partitions=found) for one, found in topics.items()],
        total_bytes=total,
        usable_bytes=usable,
    )


def _failed(path: str) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(
        error_code=ErrorCode.KAFKA_STORAGE_ERROR,
        log_dir=str(Path(path).absolute()),
        topics=[],
    )


def _wanted(replicas: Replicas, request: DescribeLogDirsRequest) -> list[TopicPartition]:
    if request.topics is None:
        return list(replicas.partitions)
    return [
        TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions
    ]


def _described(partition: Partition) -> DescribeLogDirsPartition:
    numbers = partition.replica.log
    leader_mark = max(numbers.high_watermark, partition.leader_high_watermark)
    return DescribeLogDirsPartition(
        partition_index=partition.name.partition,
        partition_size=sum(segment.size for segment in partition.log.segments),
        offset_lag=max(0, leader_mark - numbers.log_end_offset),
        is_future_key=False,
    )
