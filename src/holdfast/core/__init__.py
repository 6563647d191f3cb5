"""Pure decisions: the machines of a partition replica, fetch sessions, controller and groups.

The core has no clock, socket, disk, random generator or logging. A driver (the broker or the lab)
calls one method per event and carries out the effects that the method returns.
"""

from holdfast.core.controller.broker_registry import (
    BrokerIncarnation,
    CleanShutdown,
    Registration,
    is_current,
)
from holdfast.core.controller.controller import Controller
from holdfast.core.controller.effects import (
    AnswerAlter,
    AskLogEnd,
    Command,
    Commands,
    SendStateTo,
    StateConfirmed,
    StopReplica,
    StoreSettings,
    WriteState,
)
from holdfast.core.controller.leader_election import LogEnd
from holdfast.core.fetch.session import NO_SESSION, Asked, FetchSession, Place, Reader
from holdfast.core.fetch.sessions import LARGEST_SESSION_ID, FetchSessions
from holdfast.core.producers.producer_state import (
    ProducerState,
    ProducerStates,
    SeenBatch,
    is_earlier,
)
from holdfast.core.producers.sequence_gap_guard import SequenceGapGuard
from holdfast.core.replica.command_confirmation import (
    DURING_DELETION,
    LOOK_PAUSE_MS,
    NO_CONTROLLER,
    ControllerFact,
    Found,
    Judgement,
    LookPace,
    PartitionFact,
    is_known,
    is_late_stop,
    is_removed,
    judge_controller,
    needs_settings,
    role_of,
    state_age,
)
from holdfast.core.replica.effects import (
    Acknowledge,
    ConsiderExpand,
    Effect,
    Effects,
    Flush,
    HighWatermarkMoved,
    IsrApplied,
    ProposeIsr,
    Refuse,
    TruncateTo,
    WakeFetch,
    WriteEpoch,
)
from holdfast.core.replica.follower import Follower, NextFetch
from holdfast.core.replica.follower_progress import UNKNOWN_END, FollowerProgress
from holdfast.core.replica.leader import ACKS_ALL, ACKS_LEADER, ACKS_NONE, AppendAnswer, Leader
from holdfast.core.replica.leader_epoch_cache import EpochCache
from holdfast.core.replica.log_creation import FIRST_PARTITION_EPOCH, may_begin_empty
from holdfast.core.replica.log_state import LogState
from holdfast.core.replica.record_deletion import deletion_target, low_watermark
from holdfast.core.replica.replica import Replica
from holdfast.core.replica.roles import Offline
from holdfast.core.replica.truncation import Fetch, FetchAnswer
from holdfast.core.rules import (
    SAFE_RULES,
    CommitRule,
    FlushRule,
    Guards,
    IsrExpand,
    IsrLagRule,
    IsrUpdate,
    ReadRule,
    Rules,
    Settings,
    Truncation,
    guard_explanation,
    guard_names,
)

__all__ = [
    "ACKS_ALL",
    "ACKS_LEADER",
    "ACKS_NONE",
    "DURING_DELETION",
    "FIRST_PARTITION_EPOCH",
    "LARGEST_SESSION_ID",
    "LOOK_PAUSE_MS",
    "NO_CONTROLLER",
    "NO_SESSION",
    "SAFE_RULES",
    "UNKNOWN_END",
    "Acknowledge",
    "AnswerAlter",
    "AppendAnswer",
    "AskLogEnd",
    "Asked",
    "BrokerIncarnation",
    "CleanShutdown",
    "Command",
    "Commands",
    "CommitRule",
    "ConsiderExpand",
    "Controller",
    "ControllerFact",
    "Effect",
    "Effects",
    "EpochCache",
    "Fetch",
    "FetchAnswer",
    "FetchSession",
    "FetchSessions",
    "Flush",
    "FlushRule",
    "Follower",
    "FollowerProgress",
    "Found",
    "Guards",
    "HighWatermarkMoved",
    "IsrApplied",
    "IsrExpand",
    "IsrLagRule",
    "IsrUpdate",
    "Judgement",
    "Leader",
    "LogEnd",
    "LogState",
    "LookPace",
    "NextFetch",
    "Offline",
    "PartitionFact",
    "Place",
    "ProducerState",
    "ProducerStates",
    "ProposeIsr",
    "ReadRule",
    "Reader",
    "Refuse",
    "Registration",
    "Replica",
    "Rules",
    "SeenBatch",
    "SendStateTo",
    "SequenceGapGuard",
    "Settings",
    "StateConfirmed",
    "StopReplica",
    "StoreSettings",
    "TruncateTo",
    "Truncation",
    "WakeFetch",
    "WriteEpoch",
    "WriteState",
    "deletion_target",
    "guard_explanation",
    "guard_names",
    "is_current",
    "is_earlier",
    "is_known",
    "is_late_stop",
    "is_removed",
    "judge_controller",
    "low_watermark",
    "may_begin_empty",
    "needs_settings",
    "role_of",
    "state_age",
]
