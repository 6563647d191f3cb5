"""Commands: what a controller asks its driver to do, in this order.

Every message to a broker carries the controller's epoch; the driver adds it. `SendStateTo` is a
LeaderAndIsr to a replica; the driver also sends UpdateMetadata to every broker.
"""

from __future__ import annotations

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


Command = WriteState | StateConfirmed | SendStateTo | StopReplica | AnswerAlter | AskLogEnd
Commands = tuple[Command, ...]
