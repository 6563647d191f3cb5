"""The messages of the simulated network. An envelope has the sender and the cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from holdfast.core import FetchAnswer, LogEnd, NextFetch, ProposeIsr, Settings
from holdfast.model import (
    BatchHeader,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    ErrorCode,
    LeaderEpoch,
    Offset,
    PartitionEpoch,
    PartitionState,
)


class Record(NamedTuple):
    """A record in a simulated log. `key` is unique per append of a client, to find duplicates."""

    label: str
    key: int


class Batch(NamedTuple):
    """Records that were appended together."""

    header: BatchHeader
    records: tuple[Record, ...]


class FetchRequest(NamedTuple):
    """A follower asks its leader for records."""

    follower: BrokerId
    asked: NextFetch
    broker_epoch: BrokerEpoch
    number: int
    """Which request of this follower's connection it is; a newer one supersedes it."""
    max_records: int = 0
    """The most records in the answer (replica.fetch.max.bytes); 0: no limit."""


class FetchResponse(NamedTuple):
    """The leader's answer."""

    leader: BrokerId
    asked: NextFetch
    number: int
    answer: FetchAnswer
    batches: tuple[Batch, ...]


class BoundsRequest(NamedTuple):
    """A follower out of range asks where the leader's log starts and ends (ListOffsets)."""

    follower: BrokerId
    asked: NextFetch


class BoundsResponse(NamedTuple):
    """The leader's log start and end at the time of answering."""

    leader: BrokerId
    asked: NextFetch
    start: Offset
    end: Offset


class StateMessage(NamedTuple):
    """LeaderAndIsr: the controller sends the leader and the ISR to a replica."""

    controller_epoch: ControllerEpoch
    broker_epoch: BrokerEpoch
    state: PartitionState


class StateAnswer(NamedTuple):
    """A replica confirms a LeaderAndIsr; the controller repeats it until then."""

    broker: BrokerId
    controller_epoch: ControllerEpoch
    partition_epoch: PartitionEpoch


class AlterRequest(NamedTuple):
    """AlterPartition: a leader proposes an ISR."""

    leader: BrokerId
    broker_epoch: BrokerEpoch
    proposal: ProposeIsr


class AlterResponse(NamedTuple):
    """The controller's answer to it."""

    proposal: ProposeIsr
    error: ErrorCode
    state: PartitionState | None


class LogEndRequest(NamedTuple):
    """The controller asks for the end of a log."""

    controller_epoch: ControllerEpoch
    leader_epoch: LeaderEpoch


class LogEndResponse(NamedTuple):
    """The end of the log."""

    broker: BrokerId
    leader_epoch: LeaderEpoch
    end: LogEnd


class RegisterRequest(NamedTuple):
    """A broker asks the store for a session and a broker epoch."""

    broker: BrokerId
    incarnation: int
    intact_since: BrokerEpoch


class RegisterResponse(NamedTuple):
    """The broker epoch of the new session."""

    incarnation: int
    broker_epoch: BrokerEpoch


class SettingsMessage(NamedTuple):
    """The store notifies a broker of changed settings of the topic."""

    settings: Settings


class ProduceRequest(NamedTuple):
    """A producer sends one batch."""

    producer: str
    number: int
    acks: int
    header: BatchHeader
    records: tuple[Record, ...]


class ProduceResponse(NamedTuple):
    """The acknowledgement, or the error."""

    broker: BrokerId
    producer: str
    number: int
    error: ErrorCode
    base_offset: Offset


class ReadRequest(NamedTuple):
    """A consumer asks for records."""

    consumer: str
    fetch_offset: Offset
    current_leader_epoch: LeaderEpoch
    last_fetched_epoch: LeaderEpoch


class ReadResponse(NamedTuple):
    """The broker's answer to a consumer."""

    broker: BrokerId
    consumer: str
    fetch_offset: Offset
    answer: FetchAnswer
    batches: tuple[Batch, ...]


class ShutdownRequest(NamedTuple):
    """ControlledShutdown: a broker asks the controller to take over its leaderships."""

    broker: BrokerId
    broker_epoch: BrokerEpoch


Payload = (
    FetchRequest
    | FetchResponse
    | BoundsRequest
    | BoundsResponse
    | StateMessage
    | StateAnswer
    | AlterRequest
    | AlterResponse
    | LogEndRequest
    | LogEndResponse
    | RegisterRequest
    | RegisterResponse
    | SettingsMessage
    | ProduceRequest
    | ProduceResponse
    | ReadRequest
    | ReadResponse
    | ShutdownRequest
)


_WIRE_NAMES: dict[type, str] = {
    FetchRequest: "Fetch",
    BoundsRequest: "ListOffsets",
    BoundsResponse: "ListOffsetsResponse",
    StateMessage: "LeaderAndIsr",
    StateAnswer: "LeaderAndIsrResponse",
    AlterRequest: "AlterPartition",
    AlterResponse: "AlterPartitionResponse",
    ProduceRequest: "Produce",
    ReadRequest: "Fetch",
    ReadResponse: "FetchResponse",
    ShutdownRequest: "ControlledShutdown",
}


@dataclass(slots=True)
class Envelope:
    """A message on its way."""

    source: str
    target: str
    payload: Payload
    cause: int | None
    number: int

    @property
    def name(self) -> str:
        """What kind of message it is, for people."""
        return type(self.payload).__name__

    @property
    def wire_name(self) -> str:
        """What Kafka calls it."""
        return _WIRE_NAMES.get(type(self.payload), self.name)
