"""Helpers for the tests of the controller."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from holdfast.core import (
    SAFE_RULES,
    Command,
    Commands,
    CommitRule,
    Controller,
    LogEnd,
    ProposeIsr,
    Registration,
    Rules,
    Settings,
    StateConfirmed,
    WriteState,
)
from holdfast.model import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    Offset,
    PartitionEpoch,
    PartitionState,
    ReplicaBroker,
    TopicPartition,
)
from tests.unit.core.support import TWO, A, B, C

P = TopicPartition("events", 0)
MAJORITY = Rules(commit_rule=CommitRule.MAJORITY)

CommandT = TypeVar("CommandT", bound=Command)


def alive(broker: int, epoch: int = 0, intact_since: int = 0) -> Registration:
    """A registration; a broker's first broker epoch is its own id."""
    broker_epoch = epoch or broker
    return Registration(
        BrokerId(broker), BrokerEpoch(broker_epoch), BrokerEpoch(intact_since or broker_epoch)
    )


def controller(
    settings: Settings = TWO,
    rules: Rules = SAFE_RULES,
    replicas: tuple[BrokerId, ...] = (A, B, C),
    up: Iterable[int] = (A, B, C),
) -> Controller:
    """A controller with one partition, created and confirmed; leader A in epoch 0."""
    core = Controller(ControllerEpoch(1), [alive(one) for one in up], {}, {}, rules)
    core.create(P, replicas, settings)
    core.store_confirmed(P)
    return core


def of(core: Controller) -> PartitionState:
    """The partition's confirmed state."""
    return core.partitions[P]


def settle(core: Controller, commands: Commands) -> Commands:
    """Let the store confirm every write that follows; return all commands."""
    done: list[Command] = []
    waiting = list(commands)
    while waiting:
        command = waiting.pop(0)
        done.append(command)
        if isinstance(command, WriteState):
            waiting.extend(core.store_confirmed(P))
    return tuple(done)


def lose(core: Controller, *brokers: int) -> Commands:
    """Sessions end, one after the other, and the store follows."""
    done: Commands = ()
    for broker in brokers:
        done = settle(core, core.broker_lost(BrokerId(broker)))
    return done


def come_back(core: Controller, broker: int, epoch: int, intact_since: int = 0) -> Commands:
    """A broker registers again, by default after a crash."""
    return settle(core, core.broker_registered(alive(broker, epoch, intact_since)))


def proposal(core: Controller, *members: tuple[int, int], version: int = 0) -> ProposeIsr:
    """An ISR of (broker, broker epoch) as the present leader would propose it."""
    state = of(core)
    return ProposeIsr(
        tuple(
            ReplicaBroker(BrokerId(one), BrokerEpoch(broker_epoch)) for one, broker_epoch in members
        ),
        state.leader_epoch,
        PartitionEpoch(version or state.partition_epoch),
    )


def end(epoch: int, offset: int) -> LogEnd:
    return LogEnd(LeaderEpoch(epoch), Offset(offset))


def answer_end(core: Controller, broker: int, epoch: int, offset: int) -> Commands:
    """A candidate reports its log end."""
    return settle(
        core, core.log_end_answered(P, BrokerId(broker), of(core).leader_epoch, end(epoch, offset))
    )


def rule_of(commands: Commands) -> str:
    """By which rule the last write of these commands was decided."""
    return only(StateConfirmed, commands)[-1].rule


def only(kind: type[CommandT], commands: Iterable[Command]) -> list[CommandT]:
    """The commands of one kind."""
    return [command for command in commands if isinstance(command, kind)]
