"""Read-only views of groups: DescribeGroups, ListGroups, OffsetFetch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.core.groups.group import Group
from holdfast.core.groups.group_states import GroupState
from holdfast.model import CommittedOffset, ErrorCode, TopicPartition


class MemberView(NamedTuple):
    """A member. Its metadata is shown only while the group is Stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class GroupView(NamedTuple):
    """A group in full.

    A missing group is Dead: versions of DescribeGroups before 6 report it without an error.
    """

    error: ErrorCode
    group_id: str
    state: GroupState = GroupState.DEAD
    protocol_type: str = ""
    protocol_name: str = ""
    generation: int = -1
    members: tuple[MemberView, ...] = ()


class ListedGroup(NamedTuple):
    """A group in one line."""

    group_id: str
    protocol_type: str
    state: GroupState


class FetchedOffsets(NamedTuple):
    """A group's committed offsets; a partition without one is left out."""

    error: ErrorCode
    offsets: Mapping[TopicPartition, CommittedOffset]


def described(group: Group) -> GroupView:
    """The group as DescribeGroups shows it."""
    is_stable = group.state is GroupState.STABLE
    name = group.protocol_name if is_stable else None
    members = tuple(
        MemberView(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.metadata(name) if name is not None else b"",
            member.assignment,
        )
        for member in group.members.values()
    )
    return GroupView(
        ErrorCode.NONE,
        group.group_id,
        group.state,
        group.protocol_type or "",
        name or "",
        group.generation,
        members,
    )
