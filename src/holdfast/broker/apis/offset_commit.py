"""OffsetCommit: stores a group's offsets; answers when the offsets partition has committed them."""

from __future__ import annotations

from typing import Final

from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.network.calls import Call
from holdfast.core.groups import AnswerCommit, Caller, Commit
from holdfast.model import (
    NO_TIMESTAMP,
    CommittedOffset,
    ErrorCode,
    LeaderEpoch,
    Offset,
    TopicPartition,
)
from holdfast.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

NAMES_MISSING_GROUP_FROM: Final = 9
BY_ID_FROM: Final = 10
NO_RETENTION: Final = -1


def handle(coordinator: GroupCoordinator, metadata: Metadata, call: Call) -> None:
    """Refuse unknown partitions here; pass the others to the group's coordinator."""
    request: OffsetCommitRequest = call.request
    known: list[tuple[TopicPartition, OffsetCommitRequestPartition]] = []
    answers: list[tuple[TopicPartition | None, OffsetCommitResponsePartition]] = []
    topics: list[OffsetCommitResponseTopic] = []
    for topic in request.topics:
        partitions: list[OffsetCommitResponsePartition] = []
        key = topic.topic_id if call.version >= BY_ID_FROM else topic.name
        found = metadata.topic(key)
        for asked in topic.partitions:
            answer = OffsetCommitResponsePartition(
                partition_index=asked.partition_index, error_code=0
            )
            name = None
            if found is None or asked.partition_index not in found.partitions:
                answer.error_code = metadata.not_hosted_error(key, asked.partition_index)
            else:
                name = TopicPartition(found.name, asked.partition_index)
                known.append((name, asked))
            partitions.append(answer)
            answers.append((name, answer))
        topics.append(
            OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=partitions
            )
        )

    def committed(effect: AnswerCommit) -> None:
        errors = dict(effect.results)
        for name, answer in answers:
            if name is not None:
                answer.error_code = errors.get(name, ErrorCode.NONE)
        call.answer(OffsetCommitResponse(topics=topics))

    if not known:
        call.answer(OffsetCommitResponse(topics=topics))
        return
    coordinator.ask(
        request.group_id,
        lambda groups, now_ms: groups.commit_offsets(
            _commit(call, request, known, now_ms), committed, now_ms
        ),
    )


def _commit(
    call: Call,
    request: OffsetCommitRequest,
    known: list[tuple[TopicPartition, OffsetCommitRequestPartition]],
    now_ms: int,
) -> Commit:
    expires_ms = NO_TIMESTAMP
    if request.retention_time_ms != NO_RETENTION:
        expires_ms = now_ms + request.retention_time_ms
    offsets = tuple(
        (
            name,
            CommittedOffset(
                Offset(asked.committed_offset),
                LeaderEpoch(asked.committed_leader_epoch),
                asked.committed_metadata or "",
                expire_timestamp_ms=expires_ms,
            ),
        )
        for name, asked in known
    )
    caller = Caller(
        request.group_id,
        request.member_id,
        request.generation_id_or_member_epoch,
        request.group_instance_id,
    )
    return Commit(caller, offsets, names_missing_group=call.version >= NAMES_MISSING_GROUP_FROM)
