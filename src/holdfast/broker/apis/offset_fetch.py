"""OffsetFetch: the committed offsets of groups, for some partitions or for all.

`require_stable` asks the broker to withhold offsets that an open transaction may still change.
There are no transactions here, and only committed offsets are shown, so it always holds.
"""

from __future__ import annotations

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
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

ERROR_OF_ALL_FROM: Final = 2
GROUPS_FROM: Final = 8
BY_ID_FROM: Final = 10
NOTHING: Final = CommittedOffset(Offset(-1))


def handle(coordinator: GroupCoordinator, metadata: Metadata, call: Call) -> None:
    """Answers immediately: for many groups, or for one before version 8."""
    request: OffsetFetchRequest = call.request
    if call.version >= GROUPS_FROM:
        groups = [_group(coordinator, metadata, one, call.version) for one in request.groups]
        call.answer(OffsetFetchResponse(groups=groups))
        return
    asked = OffsetFetchRequestGroup(group_id=request.group_id, topics=request.topics)
    only = _group(coordinator, metadata, asked, call.version)
    call.answer(OffsetFetchResponse(topics=only.topics, error_code=only.error_code))


def _group(
    coordinator: GroupCoordinator,
    metadata: Metadata,
    asked: OffsetFetchRequestGroup,
    version: int,
) -> OffsetFetchResponseGroup:
    groups, by_id = coordinator.look(asked.group_id), version >= BY_ID_FROM
    if asked.topics is None:
        fetched = groups.fetch_offsets(asked.group_id)
        wanted = _all_topics(metadata, fetched, by_id=by_id)
    else:
        wanted = list(asked.topics)
        for one in wanted if by_id else ():
            one.name = metadata.name_of(one.topic_id) or ""
        names = [
            TopicPartition(one.name, index) for one in wanted for index in one.partition_indexes
        ]
        fetched = groups.fetch_offsets(asked.group_id, names)
    topics = [_topic(one, fetched, version) for one in wanted]
    if fetched.error and version >= ERROR_OF_ALL_FROM:
        topics = []
    return OffsetFetchResponseGroup(
        group_id=asked.group_id, topics=topics, error_code=fetched.error
    )


def _all_topics(
    metadata: Metadata, fetched: FetchedOffsets, *, by_id: bool
) -> list[OffsetFetchRequestTopic]:
    """All partitions with an offset; without an id, a topic cannot be named by id."""
    indexes: dict[str, list[int]] = {}
    for topic, index in fetched.offsets:
        indexes.setdefault(topic, []).append(index)
    found: list[OffsetFetchRequestTopic] = []
    for name, of_topic in indexes.items():
        known = metadata.topic(name)
        if known is not None or not by_id:
            one = OffsetFetchRequestTopic(name=name, partition_indexes=of_topic)
            if known is not None:
                one.topic_id = known.id
            found.append(one)
    return found


def _topic(
    asked: OffsetFetchRequestTopic, fetched: FetchedOffsets, version: int
) -> OffsetFetchResponseTopic:
    is_unknown = version >= GROUPS_FROM and not asked.name
    error = ErrorCode.UNKNOWN_TOPIC_ID if is_unknown else fetched.error
    partitions = []
    for index in asked.partition_indexes:
        committed = fetched.offsets.get(TopicPartition(asked.name, index), NOTHING)
        partitions.append(
            OffsetFetchResponsePartition(
                partition_index=index,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                error_code=error,
            )
        )
    return OffsetFetchResponseTopic(name=asked.name, topic_id=asked.topic_id, partitions=partitions)
