"""What members and administrators ask, as the core sees it: no versions, only what they imply."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.model import CommittedOffset, TopicPartition

NO_MEMBER = ""
"""The member id of somebody who has none yet."""

NO_GENERATION = -1


class MemberProtocol(NamedTuple):
    """A way to deal out partitions that a member knows, and what it says to whoever does it."""

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
    """From version 4 on a newcomer is told its id first (KIP-394)."""
    may_skip_assignment: bool = False
    """From version 9 on a returning leader can be told not to assign (KIP-814)."""


class Caller(NamedTuple):
    """Who is asking, and in which generation: the opening of SyncGroup, Heartbeat and commits."""

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
    """Somebody to be taken out of a group: by member id, or by instance id alone (KIP-345)."""

    member_id: str
    group_instance_id: str | None = None


class Commit(NamedTuple):
    """An OffsetCommit, or the offsets that a simple consumer or a tool sets: no generation."""

    caller: Caller
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...]
    """Times need not be filled in: the core stamps `commit_timestamp_ms`."""
    names_missing_group: bool = False
    """From version 9 on a missing group is GROUP_ID_NOT_FOUND, before it is ILLEGAL_GENERATION."""
