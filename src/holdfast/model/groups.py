"""The records of `__consumer_offsets`: group metadata and committed offsets, as plain values.

The core creates them, the protocol encodes and decodes them, the driver writes and reads them. A
record whose content is None is a tombstone: it deletes the group or the offset.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.model.ids import NO_EPOCH, NO_TIMESTAMP, LeaderEpoch, Offset, TopicPartition


class CommittedOffset(NamedTuple):
    """A group's committed offset in one partition."""

    offset: Offset
    leader_epoch: LeaderEpoch = NO_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    expire_timestamp_ms: int = NO_TIMESTAMP
    """Only commits of old clients have one; with -1 the group's retention applies."""


class MemberMetadata(NamedTuple):
    """A member as it is stored: with the metadata of the chosen protocol only."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadata(NamedTuple):
    """A generation of a group. Without members it says since when the group is empty."""

    protocol_type: str
    generation: int
    protocol_name: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[MemberMetadata, ...]


class GroupRecord(NamedTuple):
    """A group's newest generation, or the tombstone of the group."""

    group_id: str
    metadata: GroupMetadata | None


class OffsetRecord(NamedTuple):
    """A group's newest offset in a partition, or its tombstone."""

    group_id: str
    partition: TopicPartition
    committed: CommittedOffset | None
