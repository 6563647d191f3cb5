"""Requests of members and administrators, with flags instead of API versions."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.model import CommittedOffset, TopicPartition

NO_MEMBER = ""
"""The member id of a client that has none yet."""

NO_GENERATION = -1


class MemberProtocol(NamedTuple):
    """An assignment protocol that a member supports, and its metadata for the leader."""

    name: str
    metadata: bytes


class Join(NamedTuple):
    """A JoinGroup. `new_member_id` was drawn by the driver, in case a new one is needed."""

    group_id: str
    member_id: str
    new_member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    """-1 in version 0, which has none: the session timeout stands in."""
    protocol_type: str
    protocols: tuple[MemberProtocol, ...]
    group_instance_id: str | None = None
    requires_member_id: bool = True
    """From version 4 on, a new client first receives its member id (KIP-394)."""
    may_skip_assignment: bool = False
    """From version 9 on, a rejoining leader can be asked to skip the assignment (KIP-814)."""


class Caller(NamedTuple):
    """The sender and its generation: the first fields of SyncGroup, Heartbeat and OffsetCommit."""

    group_id: str
    member_id: str
    generation: int = NO_GENERATION
    group_instance_id: str | None = None


class Sync(NamedTuple):
    """A SyncGroup. Only the leader's carries assignments, by member id."""

    caller: Caller
    assignments: tuple[tuple[str, bytes], ...] = ()
    protocol_type: str | None = None
    protocol_name: str | None = None
    """Both None before version 5."""


class Leaver(NamedTuple):
    """A member to remove from a group: by member id, or by instance id alone (KIP-345)."""

    member_id: str
    group_instance_id: str | None = None


class Commit(NamedTuple):
    """An OffsetCommit, or the offsets that a simple consumer or a tool sets: no generation."""

    caller: Caller
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...]
    """Times need not be filled in: the core stamps `commit_timestamp_ms`."""
    names_missing_group: bool = False
    """From version 9 on a missing group is GROUP_ID_NOT_FOUND, before it is ILLEGAL_GENERATION."""
