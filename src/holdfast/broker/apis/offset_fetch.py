"""OffsetFetch: the committed offsets of groups, for some partitions or for all.

`require_stable` asks the broker to withhold offsets that an open transaction may still change.
There are no transactions here, and only committed offsets are shown, so it always holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.network.calls import Call
from holdfast.core.groups import FetchedOffsets
from holdfast.model import CommittedOffset, ErrorCode, Offset, TopicPartition
from holdfast.protocol.messages.committed_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

ERROR_OF_ALL_FROM: Final = 2
GROUPS_FROM: Final = 8
BY_ID_FROM: Final = 10
NOTHING: Final = CommittedOffset(Offset(-1))


def handle(coordinator: GroupCoordinator, metadata: Metadata, call: Call) -> None:
    """Answers immediately."""
    request: OffsetFetchRequest = call.request
    if call.version >= GROUPS_FROM:
        by_id = call.version >= BY_ID_FROM
        groups = [_group(coordinator, metadata, one, by_id=by_id) for one in request.groups]
        call.answer(OffsetFetchResponse(groups=groups))
    else:
        call.answer(_single(coordinator, request, call.version))


def _names(
    topics: Sequence[OffsetFetchRequestTopic | OffsetFetchRequestTopics],
) -> list[TopicPartition]:
    return [TopicPartition(one.name, index) for one in topics for index in one.partition_indexes]


def _by_topic(fetched: FetchedOffsets) -> dict[str, list[int]]:
    """All partitions with an offset, for a request for all."""
    topics: dict[str, list[int]] = {}
    for topic, index in fetched.offsets:
        topics.setdefault(topic, []).append(index)
    return topics


# Before version 8: one group.


def _single(
    coordinator: GroupCoordinator, request: OffsetFetchRequest, version: int
) -> OffsetFetchResponse:
    asked = request.topics
    groups = coordinator.look(request.group_id)
    fetched = groups.fetch_offsets(request.group_id, None if asked is None else _names(asked))
    if fetched.error and version >= ERROR_OF_ALL_FROM:
        return OffsetFetchResponse(topics=[], error_code=fetched.error)
    wanted = (
        list(_by_topic(fetched).items())
        if asked is None
        else [(one.name, list(one.partition_indexes)) for one in asked]
    )
    topics = []
    for name, indexes in wanted:
        partitions = []
        for index in indexes:
            committed = fetched.offsets.get(TopicPartition(name, index), NOTHING)
            partitions.append(
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                    error_code=fetched.error,
                )
            )
        topics.append(OffsetFetchResponseTopic(name=name, partitions=partitions))
    return OffsetFetchResponse(topics=topics)


# From version 8 on: many groups, and from 10 on topics by their ids.


def _group(
    coordinator: GroupCoordinator,
    metadata: Metadata,
    asked: OffsetFetchRequestGroup,
    *,
    by_id: bool,
) -> OffsetFetchResponseGroup:
    groups = coordinator.look(asked.group_id)
    topics: list[OffsetFetchResponseTopics] = []
    if asked.topics is None:
        fetched = groups.fetch_offsets(asked.group_id)
        for name, indexes in _by_topic(fetched).items():
            known = metadata.topic(name)
            if known is not None or not by_id:
                topic = OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                if known is not None:
                    topic.topic_id = known.id
                topics.append(_topic(topic, name, fetched))
    else:
        for one in asked.topics:
            if by_id:
                one.name = metadata.name_of(one.topic_id) or ""
        fetched = groups.fetch_offsets(asked.group_id, _names(asked.topics))
        topics = [_topic(one, one.name or None, fetched) for one in asked.topics]
    if fetched.error:
        topics = []
    return OffsetFetchResponseGroup(
        group_id=asked.group_id, topics=topics, error_code=fetched.error
    )


def _topic(
    asked: OffsetFetchRequestTopics, name: str | None, fetched: FetchedOffsets
) -> OffsetFetchResponseTopics:
    """The name is None if the topic id is unknown."""
    partitions = []
    for index in asked.partition_indexes:
        committed = NOTHING
        if name is not None:
            committed = fetched.offsets.get(TopicPartition(name, index), NOTHING)
        partitions.append(
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                error_code=ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.NONE,
            )
        )
    return OffsetFetchResponseTopics(
        name=asked.name, topic_id=asked.topic_id, partitions=partitions
    )
