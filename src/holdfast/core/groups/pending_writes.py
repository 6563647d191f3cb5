"""Writes under way: what is being stored, and what waits for it.

A log keeps its order, and the high watermark passes records in that order. So when one write is
known to be committed, so are all earlier ones that were not refused. Some errors leave the records
in the log (`MAY_STILL_COMMIT`): who asked is told, but whether the records count is decided later,
by the high watermark or by another coordinator.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core.groups.effects import (
    AnswerCommit,
    AnswerDelete,
    AnswerOffsetDelete,
    Effect,
    Persist,
    Record,
)
from holdfast.core.groups.group_settings import GroupSettings
from holdfast.core.groups.requests import MemberProtocol
from holdfast.model import ErrorCode, OffsetRecord

MAY_STILL_COMMIT = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

_NOT_NOW = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    *MAY_STILL_COMMIT,
)
_NOT_HERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR)
_TOO_LARGE = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_FETCH_SIZE,
)


class AssignmentWrite(NamedTuple):
    """The leader's assignments: given out only when stored, or a new coordinator knew of none."""

    group_id: str
    generation: int
    assignments: dict[str, bytes]


class StaticMemberWrite(NamedTuple):
    """A static member's new id, without a rebalance. `before` is what a refusal brings back."""

    group_id: str
    member_id: str
    waiter: object
    before: MemberBefore
    may_skip_assignment: bool


class MemberBefore(NamedTuple):
    """A static member before it came back under another id."""

    member_id: str
    leader: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]


Reply = AnswerCommit | AnswerOffsetDelete | AnswerDelete


class OffsetsWrite(NamedTuple):
    """Offsets set or forgotten, perhaps with their group. `reply` is the answer to success."""

    group_id: str
    offsets: tuple[OffsetRecord, ...]
    reply: Reply | None
    removes_group: bool = False


Write = AssignmentWrite | StaticMemberWrite | OffsetsWrite


class Journal:
    """The writes of one offsets partition that have no final verdict yet, oldest first."""

    __slots__ = ("_last_token", "_writes")

    def __init__(self) -> None:
        self._last_token = 0
        self._writes: dict[int, Write | None] = {}

    def begin(self, write: Write | None) -> int:
        """A token for records about to be written. None: nothing waits for them."""
        self._last_token += 1
        self._writes[self._last_token] = write
        return self._last_token

    def committed(self, token: int) -> list[Write]:
        """This write and all earlier ones are safe."""
        settled = [each for each in self._writes if each <= token]
        writes = [self._writes.pop(each) for each in settled]
        return [write for write in writes if write is not None]

    def get(self, token: int) -> Write | None:
        """A write without a final verdict."""
        return self._writes.get(token)

    def keep(self, token: int, write: Write) -> None:
        """The same write, of which less is left to do."""
        assert token in self._writes
        self._writes[token] = write

    def forget(self, token: int) -> None:
        """The write has its verdict."""
        self._writes.pop(token, None)

    def take_all(self) -> list[Write]:
        """Everything under way, because we shall not learn what becomes of it."""
        writes = [write for write in self._writes.values() if write is not None]
        self._writes.clear()
        return writes


class Turn:
    """One call: when it is, and what it asks for."""

    __slots__ = ("effects", "journal", "now_ms", "settings")

    def __init__(self, journal: Journal, settings: GroupSettings, now_ms: int) -> None:
        self.journal = journal
        self.settings = settings
        self.now_ms = now_ms
        self.effects: list[Effect] = []

    def persist(self, records: tuple[Record, ...], write: Write | None = None) -> None:
        """Ask for records to be written; `write` is taken up again when that is done."""
        self.effects.append(Persist(self.journal.begin(write), records))

    def add(self, effect: Effect) -> None:
        """Ask for anything else."""
        self.effects.append(effect)


def group_error(error: ErrorCode) -> ErrorCode:
    """What members are told when the log refused. They know coordinators, not partitions."""
    return _readable_error(error, ErrorCode.UNKNOWN_SERVER_ERROR)


def offsets_error(error: ErrorCode) -> ErrorCode:
    """The same for whoever wanted offsets stored."""
    return _readable_error(error, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)


def _readable_error(error: ErrorCode, too_large: ErrorCode) -> ErrorCode:
    if error in _NOT_NOW:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error in _NOT_HERE:
        return ErrorCode.NOT_COORDINATOR
    return too_large if error in _TOO_LARGE else error
