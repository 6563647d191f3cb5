"""Writes in flight: the records being stored, and the requests that wait for them.

The high watermark passes records in the order of the log. So when one write is committed, all
earlier ones that were not refused are committed too. Some errors leave the records in the log
(`MAY_STILL_COMMIT`): the client receives the error, but the high watermark or another coordinator
decides later whether the records count.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core.coordinator import MAY_STILL_COMMIT, Persist
from holdfast.core.groups.effects import (
    AnswerCommit,
    AnswerDelete,
    AnswerOffsetDelete,
    Effect,
    Record,
)
from holdfast.core.groups.group import TopicsOf
from holdfast.core.groups.group_settings import GroupSettings
from holdfast.core.groups.requests import MemberProtocol
from holdfast.model import ErrorCode, OffsetRecord

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
    """The leader's assignments. Members receive them only once they are stored."""

    group_id: str
    generation: int
    assignments: dict[str, bytes]


class StaticMemberWrite(NamedTuple):
    """A static member's new id, without a rebalance. A refusal restores `before`."""

    group_id: str
    member_id: str
    waiter: object
    before: MemberBefore
    may_skip_assignment: bool


class MemberBefore(NamedTuple):
    """A static member before it rejoined under another id."""

    member_id: str
    leader: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]


Reply = AnswerCommit | AnswerOffsetDelete | AnswerDelete


class OffsetsWrite(NamedTuple):
    """Offsets set or removed, perhaps with their group. `reply` is the answer on success."""

    group_id: str
    offsets: tuple[OffsetRecord, ...]
    reply: Reply | None
    removes_group: bool = False


Write = AssignmentWrite | StaticMemberWrite | OffsetsWrite


class Journal:
    """The writes of one offsets partition without a final result, oldest first."""

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
        """A write without a final result."""
        return self._writes.get(token)

    def keep(self, token: int, write: Write) -> None:
        """The same write, of which less is left to do."""
        assert token in self._writes
        self._writes[token] = write

    def forget(self, token: int) -> None:
        """The write has its result."""
        self._writes.pop(token, None)

    def take_all(self) -> list[Write]:
        """All writes in flight, because their results will not arrive here."""
        writes = [write for write in self._writes.values() if write is not None]
        self._writes.clear()
        return writes


class Turn:
    """One call: its time, and the effects it returns."""

    __slots__ = ("effects", "journal", "now_ms", "settings", "topics_of")

    def __init__(
        self, journal: Journal, settings: GroupSettings, topics_of: TopicsOf, now_ms: int
    ) -> None:
        self.journal = journal
        self.settings = settings
        self.topics_of = topics_of
        self.now_ms = now_ms
        self.effects: list[Effect] = []

    def persist(self, records: tuple[Record, ...], write: Write | None = None) -> None:
        """Ask for records to be written; `write` continues when they are."""
        self.effects.append(Persist(self.journal.begin(write), records))

    def add(self, effect: Effect) -> None:
        """Ask for another effect."""
        self.effects.append(effect)


def group_error(error: ErrorCode) -> ErrorCode:
    """The error for members after a refused write: a coordinator error, not a partition error."""
    return _readable_error(error, ErrorCode.UNKNOWN_SERVER_ERROR)


def offsets_error(error: ErrorCode) -> ErrorCode:
    """The error for an offset commit after a refused write."""
    return _readable_error(error, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)


def _readable_error(error: ErrorCode, too_large: ErrorCode) -> ErrorCode:
    if error in _NOT_NOW:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error in _NOT_HERE:
        return ErrorCode.NOT_COORDINATOR
    return too_large if error in _TOO_LARGE else error
