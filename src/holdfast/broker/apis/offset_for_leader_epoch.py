"""OffsetForLeaderEpoch: the end offset of a leader epoch in our log."""

from __future__ import annotations

from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.network.calls import Call
from holdfast.broker.replication.replicas import Replicas
from holdfast.model import LeaderEpoch
from holdfast.protocol.messages.offsets import (
    OffsetForLeaderEpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(replicas: Replicas, metadata: Metadata, call: Call) -> None:
    """One answer for each partition."""
    request: OffsetForLeaderEpochRequest = call.request
    topics = [
        OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=[
                _answer(replicas, metadata, topic.topic, asked) for asked in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    call.answer(OffsetForLeaderEpochResponse(topics=topics))


def _answer(
    replicas: Replicas, metadata: Metadata, topic: str, asked: OffsetForLeaderPartition
) -> OffsetForLeaderEpochEndOffset:
    partition = replicas.find(topic, asked.partition)
    if partition is None:
        error = metadata.not_hosted_error(topic, asked.partition)
        return OffsetForLeaderEpochEndOffset(error_code=error, partition=asked.partition)
    error, end = partition.replica.end_offset_for(
        LeaderEpoch(asked.leader_epoch), LeaderEpoch(asked.current_leader_epoch)
    )
    return OffsetForLeaderEpochEndOffset(
        error_code=error,
        partition=asked.partition,
        leader_epoch=end.epoch,
        end_offset=end.end_offset,
    )
