"""OffsetDelete: deletes committed offsets of topics that no member subscribes to (KIP-496)."""

from __future__ import annotations

from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.network.calls import Call
from holdfast.core.groups import AnswerOffsetDelete
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.messages.committed_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(coordinator: GroupCoordinator, metadata: Metadata, call: Call) -> None:
    """Answers when the tombstones are committed."""
    request: OffsetDeleteRequest = call.request
    known = [
        TopicPartition(topic.name, asked.partition_index)
        for topic in request.topics
        for asked in topic.partitions
        if metadata.partition(topic.name, asked.partition_index) is not None
    ]

    def deleted(effect: AnswerOffsetDelete) -> None:
        call.answer(_response(request, effect))

    coordinator.ask(
        request.group_id,
        lambda groups, now_ms: groups.delete_offsets(request.group_id, known, deleted, now_ms),
    )


def _response(request: OffsetDeleteRequest, effect: AnswerOffsetDelete) -> OffsetDeleteResponse:
    if effect.error:
        return OffsetDeleteResponse(error_code=effect.error, topics=[])
    errors = dict(effect.results)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topics = [
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(
                    partition_index=asked.partition_index,
                    error_code=errors.get(
                        TopicPartition(topic.name, asked.partition_index), unknown
                    ),
                )
                for asked in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=topics)
