"""DescribeLogDirs: what each log takes on the disk, and how far it is behind.

The lag of a follower is the distance to the high watermark its leader told it last; a leader's is
that of its own end to the high watermark, which is 0 or less by definition, so it is shown as 0.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from holdfast.broker.calls import Call
from holdfast.model import TopicPartition
from holdfast.protocol.messages.cluster import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from holdfast.broker.node import Broker
    from holdfast.broker.partition import Partition


def handle(broker: Broker, call: Call) -> None:
    """The one directory of this broker."""
    request = call.request
    assert isinstance(request, DescribeLogDirsRequest)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for name in _wanted(broker, request):
        partition = broker.replicas.partitions.get(name)
        if partition is not None:
            topics.setdefault(name.topic, []).append(_described(partition))
    directory = broker.settings.log_dirs[0].absolute()
    try:
        usage = shutil.disk_usage(directory)
        total, usable = usage.total, usage.free
    except OSError:
        total = usable = -1
    result = DescribeLogDirsResult(
        error_code=0,
        log_dir=str(directory),
        topics=[DescribeLogDirsTopic(name=one, partitions=found) for one, found in topics.items()],
        total_bytes=total,
        usable_bytes=usable,
    )
    call.answer(DescribeLogDirsResponse(results=[result]))


def _wanted(broker: Broker, request: DescribeLogDirsRequest) -> list[TopicPartition]:
    if request.topics is None:
        return list(broker.replicas.partitions)
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
