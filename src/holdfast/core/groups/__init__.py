"""Consumer groups of the classic protocol: members, assignments and committed offsets.

Pure like all of the core: calls carry their time, and effects are returned as data. A driver has
one `Groups` per partition of `__consumer_offsets` that its broker leads. The rules are those of
Apache Kafka's group coordinator, with three exceptions: every waiter is answered; the leader's
first SyncGroup of a generation counts; an offset whose write timed out still counts if the log
commits it.
"""

from holdfast.core.coordinator import Persist, Phase
from holdfast.core.groups.descriptions import FetchedOffsets, GroupView, MemberView
from holdfast.core.groups.effects import (
    AnswerCommit,
    AnswerDelete,
    AnswerJoin,
    AnswerLeave,
    AnswerOffsetDelete,
    AnswerSync,
    Effect,
    Effects,
    JoinAnswer,
    JoinedMember,
    Record,
)
from holdfast.core.groups.group import Group
from holdfast.core.groups.group_settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from holdfast.core.groups.group_states import MOVES, GroupState
from holdfast.core.groups.groups import Groups
from holdfast.core.groups.requests import (
    Caller,
    Commit,
    Join,
    Leaver,
    MemberProtocol,
    Sync,
)

__all__ = [
    "MOVES",
    "NEW_MEMBER_JOIN_TIMEOUT_MS",
    "AnswerCommit",
    "AnswerDelete",
    "AnswerJoin",
    "AnswerLeave",
    "AnswerOffsetDelete",
    "AnswerSync",
    "Caller",
    "Commit",
    "Effect",
    "Effects",
    "FetchedOffsets",
    "Group",
    "GroupSettings",
    "GroupState",
    "GroupView",
    "Groups",
    "Join",
    "JoinAnswer",
    "JoinedMember",
    "Leaver",
    "MemberProtocol",
    "MemberView",
    "Persist",
    "Phase",
    "Record",
    "Sync",
]
