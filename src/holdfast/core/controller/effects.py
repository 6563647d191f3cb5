"""What a controller asks its driver to do, in order.

Every message to a broker carries the controller's epoch; the driver adds it. `SendStateTo` is a
LeaderAndIsr to a replica; the driver also tells every broker with UpdateMetadata.
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
    """The store has it, for trace and metadata; `rule` says how a leader was found."""

    partition: TopicPartition
    before: PartitionState
    after: PartitionState
    rule: str


class SendStateTo(NamedTuple):
    """Tell a replica who leads."""

    broker: BrokerId
    partition: TopicPartition
    state: PartitionState


class StopReplica(NamedTuple):
    """Tell a broker that it no longer hosts this partition."""

    broker: BrokerId
    partition: TopicPartition


class AnswerAlter(NamedTuple):
    """Answer a leader's proposal. The state is the agreed one, if there is any."""

    waiter: object
    error: ErrorCode
    state: PartitionState | None


class AskLogEnd(NamedTuple):
    """Ask how far a log goes. Answered only in this epoch, in which the log stands still."""

    broker: BrokerId
    partition: TopicPartition
    leader_epoch: LeaderEpoch


Command = WriteState | StateConfirmed | SendStateTo | StopReplica | AnswerAlter | AskLogEnd
Commands = tuple[Command, ...]
