"""The messages between the replicas, the controller and the clients of the small cluster."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core import Fetch, FetchAnswer, LogEnd, NextFetch, ProposeIsr
from holdfast.model import (
    NO_BROKER,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    ErrorCode,
    LeaderEpoch,
    PartitionState,
    TopicPartition,
)

PARTITION = TopicPartition("events", 0)
BROKERS = (BrokerId(1), BrokerId(2), BrokerId(3))
CONTROLLER = NO_BROKER


class Record(NamedTuple):
    """One record; the idempotent producer numbers its records from 0, others are negative."""

    leader_epoch: LeaderEpoch
    value: int


class FetchSent(NamedTuple):
    fetch: Fetch
    asked: NextFetch
    incarnation: int


class FetchAnswered(NamedTuple):
    asked: NextFetch
    answer: FetchAnswer
    records: tuple[Record, ...]


class StateSent(NamedTuple):
    controller_epoch: ControllerEpoch
    broker_epoch: BrokerEpoch
    state: PartitionState


class Proposed(NamedTuple):
    leader: BrokerId
    broker_epoch: BrokerEpoch
    incarnation: int
    proposal: ProposeIsr


class ProposalAnswered(NamedTuple):
    error: ErrorCode
    state: PartitionState | None


class EndAsked(NamedTuple):
    broker_epoch: BrokerEpoch
    leader_epoch: LeaderEpoch


class EndAnswered(NamedTuple):
    broker: BrokerId
    broker_epoch: BrokerEpoch
    leader_epoch: LeaderEpoch
    end: LogEnd


Payload = (
    FetchSent | FetchAnswered | StateSent | Proposed | ProposalAnswered | EndAsked | EndAnswered
)


REPEATABLE = (FetchSent, FetchAnswered, Proposed, ProposalAnswered)
"""Messages that may be lost: brokers send them again. A controller repeats its own."""


class Message(NamedTuple):
    """A message in flight to one incarnation of a broker, or of the controller."""

    target: BrokerId
    incarnation: int
    payload: Payload
