"""Commands: what a controller asks its driver to do, in this order.

Every message to a broker carries the controller's epoch; the driver adds it. `SendStateTo` is a
LeaderAndIsr to a replica; the driver also sends UpdateMetadata to every broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.model import (
    BrokerId,
    ErrorCode,
    LeaderEpoch,
    PartitionEpoch,
    PartitionState,
    TopicPartition,
)


class WriteState(NamedTuple):
    """Compare-and-set one partition's state; answer with `store_confirmed` or `store_refused`."""

    partition: TopicPartition
    state: PartitionState
    expected: PartitionEpoch


class StateConfirmed(NamedTuple):
    """The store has this state; for trace and metadata. `rule` names the election rule."""

    partition: TopicPartition
    before: PartitionState
    after: PartitionState
    rule: str


class SendStateTo(NamedTuple):
    """Send a partition's state to a replica."""

    broker: BrokerId
    partition: TopicPartition
    state: PartitionState


class StopReplica(NamedTuple):
    """Send a StopReplica: the broker no longer hosts this partition."""

    broker: BrokerId
    partition: TopicPartition


class AnswerAlter(NamedTuple):
    """Answer a leader's proposal with the partition's stored state, if there is one."""

    waiter: object
    error: ErrorCode
    state: PartitionState | None


class AskLogEnd(NamedTuple):
    """Ask a replica for its log end. It answers only in this epoch, in which its log is frozen."""

    broker: BrokerId
    partition: TopicPartition
    leader_epoch: LeaderEpoch


class StoreSettings(NamedTuple):
    """Write the changed settings to the store; then call `settings_stored`.

    Brokers must not receive a lower min.insync.replicas before this command.
    """

    waiter: object


Command = (
    WriteState
    | StateConfirmed
    | SendStateTo
    | StopReplica
    | AnswerAlter
    | AskLogEnd
    | StoreSettings
)
Commands = tuple[Command, ...]


def in_order(commands: Iterable[Commands]) -> Commands:
    """The commands of several decisions, one after the other."""
    return tuple(command for decided in commands for command in decided)
