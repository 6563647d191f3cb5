"""Confirmation of a controller's command by the coordination store.

Any process can send a command, and the epochs in it are easy to guess. So a command only names what
to look up. The store decides which broker is the controller, which role a broker has, and which
replicas it no longer has. Four questions, each answered by a pure function:

1. Is the sender the controller? A higher controller epoch than the known one counts only after the
   store has confirmed it (`judge_controller`).
2. Which role does this broker take? The one in the store's partition state, never the one in the
   message (`role_of`). A message that repeats what we know needs no store (`is_known`).
3. May a log be removed? Only if the store has no topic with its id, or names other replicas
   (`is_removed`). If the store does not decide, the log stays.
4. When may the broker read the store for commands again? Immediately, unless the last read found
   nothing new: then after a pause (`LookPace`). A controller writes before it sends, so a read for
   its commands always finds the change; other senders cause at most one read per pause.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final, NamedTuple

from holdfast.model import (
    NO_EPOCH,
    BrokerId,
    ControllerEpoch,
    ErrorCode,
    LeaderEpoch,
    PartitionState,
)

NO_CONTROLLER_EPOCH = ControllerEpoch(-1)
DURING_DELETION: Final = LeaderEpoch(-2)
"""The leader and the leader epoch of a partition whose topic is being deleted."""
LOOK_PAUSE_MS: Final = 50
"""The pause before a broker reads the store for commands after a read without a result."""


class ControllerFact(NamedTuple):
    """The controller epoch in the store, and the broker that holds the controller's node."""

    epoch: ControllerEpoch
    broker: BrokerId | None
    """None: no broker holds it."""


NO_CONTROLLER = ControllerFact(NO_CONTROLLER_EPOCH, None)


class Judgement(enum.Enum):
    """What to do with a command."""

    OBEY = "obey"
    REFUSE = "refuse"
    ASK_STORE = "ask the store, then judge again"


def judge_controller(
    broker: BrokerId, epoch: ControllerEpoch, known: ControllerFact, *, is_newest: bool
) -> Judgement:
    """Whether this broker is the controller in this epoch.

    `known` is the newest fact from the store; `is_newest`: it was read after the command arrived.
    One epoch has one controller, so a known pair needs no second read.
    """
    if epoch == known.epoch and broker == known.broker:
        return Judgement.OBEY
    is_over = epoch < known.epoch or (epoch == known.epoch and known.broker is not None)
    return Judgement.REFUSE if is_over or is_newest else Judgement.ASK_STORE


class PartitionFact(NamedTuple):
    """The store's topic id and partition state for a topic name and a partition."""

    topic_id: bytes | None
    """None: there is no topic of this name."""
    state: PartitionState | None
    """None: the topic has no such partition, or its state cannot be read."""


def is_known(topic_id: bytes, state: PartitionState, own: PartitionFact | None) -> bool:
    """Whether a command has nothing newer than the state that this broker uses."""
    if own is None or own.state is None or own.topic_id != topic_id:
        return False
    return state_age(state) <= state_age(own.state)


def role_of(
    broker: BrokerId, topic_id: bytes, state: PartitionState, fact: PartitionFact | None
) -> PartitionState | ErrorCode:
    """The state to use, as the store has it; or the error if there is none.

    The store's state may be newer than the command's, because the controller has decided again.
    It is never older, because a controller writes before it sends: a command that is newer than
    the store is forged. `fact` is None if the store's nodes cannot be read.
    """
    if fact is None or fact.topic_id is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if fact.topic_id != topic_id:
        return ErrorCode.INCONSISTENT_TOPIC_ID
    if fact.state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if state_age(fact.state) < state_age(state):
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if broker not in fact.state.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return fact.state


def needs_settings(broker: BrokerId, state: PartitionState, known: LeaderEpoch | None) -> bool:
    """Whether this broker must read the topic's settings before it takes this role.

    A leader with a lower min.insync.replicas than the controller's would commit records that the
    controller assumes are not committed. `known` is the leader epoch of our replica; None: it is
    new.
    """
    return known is None or (state.leader == broker and state.leader_epoch > known)


def is_late_stop(leader_epoch: LeaderEpoch, known: LeaderEpoch) -> bool:
    """Whether a StopReplica is older than the role that this broker has now."""
    return leader_epoch not in (DURING_DELETION, NO_EPOCH) and leader_epoch < known


def is_removed(broker: BrokerId, topic_id: bytes | None, fact: PartitionFact | None) -> bool:
    """Whether this broker's log of a topic with this id may be deleted.

    Topic ids are never reused, so a topic whose name has another id was deleted. Nothing is removed
    if the log has no id or the store cannot be read.
    """
    if topic_id is None or fact is None:
        return False
    if fact.topic_id != topic_id:
        return True
    return fact.state is not None and broker not in fact.state.replicas


class Found(enum.Enum):
    """What a read of the store found for one part of a command."""

    AS_COMMANDED = "the state in the command, or nothing had to be looked up"
    NOTHING_NEW = "only what this broker already had, or could not use"
    CONTRADICTION = "another state than the command's: the rest of it is not looked up"


class LookPace:
    """When a broker may next read the store because of a command."""

    __slots__ = ("_not_before_ms",)

    def __init__(self) -> None:
        self._not_before_ms = 0

    def wait_ms(self, now_ms: int) -> int:
        """How long the next read has to wait."""
        return max(0, self._not_before_ms - now_ms)

    def looked(self, now_ms: int, found: Iterable[Found]) -> None:
        """A read for some commands has ended; if one of them was not confirmed, a pause begins."""
        if any(one is not Found.AS_COMMANDED for one in found):
            self._not_before_ms = now_ms + LOOK_PAUSE_MS


def state_age(state: PartitionState) -> tuple[int, int]:
    """The order of a partition's states: leader epoch, then partition epoch."""
    return (state.leader_epoch, state.partition_epoch)
