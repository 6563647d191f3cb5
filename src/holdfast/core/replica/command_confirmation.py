"""What a controller's command may do, given what the coordination store says.

A command is a message, and anybody can send one: the epochs in it are small numbers. So a command
only names what to look at. The store decides who is the controller, which role a broker has, and
which replicas it no longer has. Four questions, each answered from values alone:

1. Is the sender the controller? A higher controller epoch than the known one counts only after the
   store has confirmed it (`judge_controller`).
2. Which role does this broker take? The one in the store's partition state, never the one in the
   message (`role_of`). A message that repeats what we know needs no store (`is_known`).
3. May a log be removed? Only if the store has no topic with its id, or names other replicas
   (`is_removed`). What the store cannot tell is kept.
4. When may the store be read for commands again? Immediately, unless the last read was in vain:
   then after a pause (`LookPace`). A controller writes first and sends then, so its commands are
   never in vain; a stranger cannot make a broker read more often than once a pause.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final, NamedTuple

from holdfast.model import BrokerId, ControllerEpoch, ErrorCode, PartitionState

NO_CONTROLLER_EPOCH = ControllerEpoch(-1)
LOOK_PAUSE_MS: Final = 50
"""How long a broker does not read the store for commands after a read that was in vain."""


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
    """Whether this broker commands in this epoch.

    `known` is the newest fact that the store has given us; `is_newest` says that it was read after
    the command arrived. One epoch has one controller, so a known pair needs no second look.
    """
    if epoch == known.epoch and broker == known.broker:
        return Judgement.OBEY
    is_over = epoch < known.epoch or (epoch == known.epoch and known.broker is not None)
    return Judgement.REFUSE if is_over or is_newest else Judgement.ASK_STORE


class PartitionFact(NamedTuple):
    """What the store says of a topic's name and one of its partitions."""

    topic_id: bytes | None
    """None: there is no topic of this name."""
    state: PartitionState | None
    """None: the topic has no such partition, or its state cannot be read."""


def is_known(topic_id: bytes, state: PartitionState, own: PartitionFact | None) -> bool:
    """Whether a command says nothing newer than what this broker already goes by."""
    if own is None or own.state is None or own.topic_id != topic_id:
        return False
    return _age(state) <= _age(own.state)


def role_of(
    broker: BrokerId, topic_id: bytes, state: PartitionState, fact: PartitionFact | None
) -> PartitionState | ErrorCode:
    """The state to go by, as the store has it; or why there is none.

    The store's state may be newer than the command's, because the controller has decided again.
    It is never older, because a controller writes first and sends then: a command that is newer
    than the store is made up. `fact` is None if the store's nodes cannot be read.
    """
    if fact is None or fact.topic_id is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if fact.topic_id != topic_id:
        return ErrorCode.INCONSISTENT_TOPIC_ID
    if fact.state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if _age(fact.state) < _age(state):
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if broker not in fact.state.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return fact.state


def is_removed(broker: BrokerId, topic_id: bytes | None, fact: PartitionFact | None) -> bool:
    """Whether this broker's log of a topic with this id may go.

    An id never comes back, so a topic whose name has another id is gone for good. A log without an
    id and a store that cannot be read say nothing, and nothing is removed.
    """
    if topic_id is None or fact is None:
        return False
    if fact.topic_id != topic_id:
        return True
    return fact.state is not None and broker not in fact.state.replicas


class Found(enum.Enum):
    """What a look at the store for one part of a command has found."""

    AS_COMMANDED = "what the command said, or nothing had to be looked up"
    NOTHING_NEW = "nothing that this broker did not know, or could not use"
    CONTRADICTION = "otherwise than the command said: the rest of it is not looked up"


class LookPace:
    """When a broker may next read the store because of a command."""

    __slots__ = ("_not_before_ms",)

    def __init__(self) -> None:
        self._not_before_ms = 0

    def wait_ms(self, now_ms: int) -> int:
        """How long the next read has to wait."""
        return max(0, self._not_before_ms - now_ms)

    def looked(self, now_ms: int, found: Iterable[Found]) -> None:
        """A read for some commands is over; if it was in vain for any of them, a pause begins."""
        if any(one is not Found.AS_COMMANDED for one in found):
            self._not_before_ms = now_ms + LOOK_PAUSE_MS


def _age(state: PartitionState) -> tuple[int, int]:
    return (state.leader_epoch, state.partition_epoch)
