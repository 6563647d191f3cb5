"""Effects: what groups ask their driver to do.

The driver carries out the effects of one call in their order, as everywhere in the core. It writes
the records of one `Persist` after those of every earlier one. A `waiter` is the
driver's handle for a request; each is answered exactly once.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core.coordinator import Persist
from holdfast.core.groups.requests import NO_GENERATION, NO_MEMBER
from holdfast.model import ErrorCode, GroupRecord, OffsetRecord, TopicPartition

Record = GroupRecord | OffsetRecord


class JoinedMember(NamedTuple):
    """A member, as the leader's JoinGroup response lists it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinAnswer(NamedTuple):
    """The response to a JoinGroup."""

    error: ErrorCode
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    """None with an error; versions before 7 send an empty name instead."""
    leader: str = NO_MEMBER
    members: tuple[JoinedMember, ...] = ()
    """Only in the leader's response."""
    skip_assignment: bool = False


class AnswerJoin(NamedTuple):
    """Answer a JoinGroup."""

    waiter: object
    answer: JoinAnswer


class AnswerSync(NamedTuple):
    """Answer a SyncGroup."""

    waiter: object
    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class LeftMember(NamedTuple):
    """The result for one member of a LeaveGroup."""

    member_id: str
    group_instance_id: str | None
    error: ErrorCode


class AnswerLeave(NamedTuple):
    """Answer a LeaveGroup. Versions before 3 show the single member's error as their own."""

    waiter: object
    error: ErrorCode
    members: tuple[LeftMember, ...] = ()


class AnswerCommit(NamedTuple):
    """Answer an OffsetCommit, partition by partition, in the order asked."""

    waiter: object
    results: tuple[tuple[TopicPartition, ErrorCode], ...]


class AnswerOffsetDelete(NamedTuple):
    """Answer an OffsetDelete. With an error of the whole there are no results."""

    waiter: object
    error: ErrorCode
    results: tuple[tuple[TopicPartition, ErrorCode], ...] = ()


class AnswerDelete(NamedTuple):
    """Answer DeleteGroups for one group."""

    waiter: object
    error: ErrorCode


Effect = (
    Persist[Record]
    | AnswerJoin
    | AnswerSync
    | AnswerLeave
    | AnswerCommit
    | AnswerOffsetDelete
    | AnswerDelete
)
Effects = tuple[Effect, ...]
