"""Consumer groups, the classic protocol: who is in a group, who gets what, how far all have read.

Pure like all of the core: calls carry their time, effects come back as data. `Groups` is what a
driver holds for each partition of `__consumer_offsets` that its broker leads; its module says what
the driver owes it. The rules are those of Apache Kafka's group coordinator, but for these: every
waiter is answered; the leader's first SyncGroup of a generation is the one that counts; an offset
whose write timed out still counts if the log committed it.
"""

from holdfast.core.groups.descriptions import FetchedOffsets, GroupView, ListedGroup, MemberView
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
    LeftMember,
    Persist,
    Record,
)
from holdfast.core.groups.group import Group, TopicsOf
from holdfast.core.groups.group_settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from holdfast.core.groups.group_states import MOVES, GroupState
from holdfast.core.groups.groups import Groups, Phase
from holdfast.core.groups.requests import (
    NO_GENERATION,
    NO_MEMBER,
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
    "NO_GENERATION",
    "NO_MEMBER",
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
    "LeftMember",
    "ListedGroup",
    "MemberProtocol",
    "MemberView",
    "Persist",
    "Phase",
    "Record",
    "Sync",
    "TopicsOf",
]
