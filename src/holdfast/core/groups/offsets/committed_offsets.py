"""Committed offsets: which caller may commit, what is committed, when it expires.

An offset counts once its record is committed, and not before: otherwise the next coordinator could
answer an OffsetFetch with an older offset. `OffsetStore` has only committed offsets, and the
partitions with a write in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.core.groups.group import CONSUMER, Group
from holdfast.core.groups.group_states import GroupState
from holdfast.core.groups.requests import NO_MEMBER, Caller
from holdfast.model import (
    NO_TIMESTAMP,
    CommittedOffset,
    ErrorCode,
    OffsetRecord,
    TopicPartition,
)

_NOTHING: Mapping[TopicPartition, CommittedOffset] = {}


class OffsetStore:
    """The committed offsets of all groups of one offsets partition."""

    __slots__ = ("_committed", "_under_way")

    def __init__(self) -> None:
        self._committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._under_way: dict[tuple[str, TopicPartition], int] = {}
        """How many writes of a partition's offset are in flight. Never 0."""

    def __len__(self) -> int:
        """How many offsets are committed."""
        return sum(map(len, self._committed.values()))

    def groups(self) -> tuple[str, ...]:
        """The groups that have offsets."""
        return tuple(self._committed)

    def of(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """What a group has committed."""
        return self._committed.get(group_id, _NOTHING)

    def is_under_way(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether a write in flight may change this offset."""
        return (group_id, partition) in self._under_way

    def known(self, group_id: str) -> tuple[TopicPartition, ...]:
        """Partitions with an offset, or with one in flight: what a deletion must cover."""
        under_way = [partition for owner, partition in self._under_way if owner == group_id]
        return tuple(dict.fromkeys((*self.of(group_id), *under_way)))

    def begin(self, records: Iterable[OffsetRecord]) -> None:
        """These are being written."""
        for record in records:
            key = (record.group_id, record.partition)
            self._under_way[key] = self._under_way.get(key, 0) + 1

    def end(self, records: Iterable[OffsetRecord]) -> None:
        """These have their result."""
        for record in records:
            key = (record.group_id, record.partition)
            self._under_way[key] -= 1
            if not self._under_way[key]:
                del self._under_way[key]

    def apply(self, record: OffsetRecord) -> None:
        """A committed record: in the log's order, the last one counts."""
        offsets = self._committed.setdefault(record.group_id, {})
        if record.committed is None:
            offsets.pop(record.partition, None)
        else:
            offsets[record.partition] = record.committed
        if not offsets:
            del self._committed[record.group_id]


def commit_refusal(group: Group | None, caller: Caller, *, names_missing_group: bool) -> ErrorCode:
    """Why this caller may not commit now. Without a generation it may if there are no members."""
    has_generation = caller.generation >= 0
    if group is None:
        missing = ErrorCode.GROUP_ID_NOT_FOUND
        error = missing if names_missing_group else ErrorCode.ILLEGAL_GENERATION
        return error if has_generation else ErrorCode.NONE
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not has_generation and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    is_nobody = caller.member_id == NO_MEMBER and caller.group_instance_id is None
    if not has_generation and is_nobody:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.find(caller.member_id, caller.group_instance_id)
    if error:
        return error
    if caller.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.COMPLETING_REBALANCE:
        # The member has the new generation, but not yet its assignment.
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def offset_delete_refusal(group: Group | None) -> ErrorCode:
    """Why no offset of this group may be deleted. Topics in use are checked elsewhere."""
    if group is None or group.state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.members and group.protocol_type != CONSUMER:
        # Members whose metadata we cannot read may use anything.
        return ErrorCode.NON_EMPTY_GROUP
    return ErrorCode.NONE


def group_delete_refusal(group: Group | None) -> ErrorCode:
    """Why this group may not be deleted."""
    if group is None or group.state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is not GroupState.EMPTY:
        return ErrorCode.NON_EMPTY_GROUP
    return ErrorCode.NONE


def expired(
    group: Group, offsets: Mapping[TopicPartition, CommittedOffset], retention_ms: int, now_ms: int
) -> list[TopicPartition]:
    """Expired offsets (KIP-211).

    A group keeps its offsets while it has members, and for the retention after that. The retention
    begins with the last commit if there is no group management, or for topics that the members
    of a consumer group no longer read.
    """
    is_empty = group.state is GroupState.EMPTY
    is_simple = group.protocol_type is None
    reads_known_topics = group.subscribed_topics is not None and group.state is GroupState.STABLE
    if not (is_simple or is_empty or reads_known_topics):
        return []
    since_ms = NO_TIMESTAMP
    if is_empty and not is_simple:
        since_ms = group.state_timestamp_ms

    def is_over(committed: CommittedOffset) -> bool:
        if committed.expire_timestamp_ms != NO_TIMESTAMP:
            return now_ms >= committed.expire_timestamp_ms
        start_ms = committed.commit_timestamp_ms if since_ms == NO_TIMESTAMP else since_ms
        return now_ms - start_ms >= retention_ms

    return [
        partition
        for partition, committed in offsets.items()
        if not group.is_subscribed_to(partition.topic) and is_over(committed)
    ]
