"""Offsets, epochs, ids and partition state, shared by all packages.

Offsets, epochs and ids are all integers on the wire. They are different types here, because a
leader epoch in the place of a broker epoch is the kind of mistake that loses data.
"""

from __future__ import annotations

from typing import NamedTuple, NewType

Offset = NewType("Offset", int)
"""A position in a partition's log. Ends are half-open: the next offset to write."""

LeaderEpoch = NewType("LeaderEpoch", int)
"""The leadership period of a record or request. Rises with every election, never falls."""

PartitionEpoch = NewType("PartitionEpoch", int)
"""The version of (leader, ISR) in the coordination store, for compare-and-set."""

BrokerEpoch = NewType("BrokerEpoch", int)
"""The incarnation of a broker. A broker gets a new epoch each time it registers."""

ControllerEpoch = NewType("ControllerEpoch", int)
"""The period of one controller. Brokers refuse an older epoch than they have received."""

BrokerId = NewType("BrokerId", int)
ProducerId = NewType("ProducerId", int)

NO_BROKER = BrokerId(-1)
NO_EPOCH = LeaderEpoch(-1)
NO_OFFSET = Offset(-1)
NO_BROKER_EPOCH = BrokerEpoch(-1)
NO_PRODUCER = ProducerId(-1)
NO_SEQUENCE = -1
SEQUENCES = 1 << 31
"""Sequence numbers wrap after so many."""
NO_TIMESTAMP = -1


class TopicPartition(NamedTuple):
    """One log of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class EpochEntry(NamedTuple):
    """A leader epoch and its first offset in a log."""

    epoch: LeaderEpoch
    start_offset: Offset


class EpochEnd(NamedTuple):
    """The response to OffsetForLeaderEpoch: where an epoch ends in the leader's log.

    The epoch is the largest one in the log that is not above the requested one (KIP-279). Both are
    -1 when the log has no epoch at or above the requested one.
    """

    epoch: LeaderEpoch
    end_offset: Offset


UNKNOWN_EPOCH_END = EpochEnd(NO_EPOCH, NO_OFFSET)


class BatchHeader(NamedTuple):
    """The fields of a record batch that the core uses. It never sees the records."""

    record_count: int
    leader_epoch: LeaderEpoch = NO_EPOCH
    base_offset: Offset = NO_OFFSET
    producer_id: ProducerId = NO_PRODUCER
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False
    max_timestamp: int = NO_TIMESTAMP

    @property
    def end_offset(self) -> Offset:
        """The offset after the last record."""
        return Offset(self.base_offset + self.record_count)

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, or -1. Sequences wrap from 2^31 - 1 to 0."""
        first = self.base_sequence
        return (first + self.record_count - 1) % SEQUENCES if first >= 0 else NO_SEQUENCE


class EndMarker(NamedTuple):
    """How a transaction ended, and under which coordinator."""

    is_commit: bool
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


class ReplicaBroker(NamedTuple):
    """A replica in an ISR proposal: the broker and its broker epoch (KIP-903)."""

    broker: BrokerId
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH


class PartitionState(NamedTuple):
    """The state of one partition in the coordination store."""

    replicas: tuple[BrokerId, ...]
    """The assignment, preferred leader first."""
    isr: tuple[BrokerId, ...]
    """The committed ISR. Empty only while eligible leaders hold the committed records."""
    leader: BrokerId = NO_BROKER
    leader_epoch: LeaderEpoch = LeaderEpoch(0)
    partition_epoch: PartitionEpoch = PartitionEpoch(0)
    eligible_leaders: tuple[BrokerId, ...] = ()
    """Outside the ISR, but known to hold everything below the high watermark (KIP-966)."""
    last_known_eligible: tuple[BrokerId, ...] = ()
    """Eligible until an unclean restart; the candidates of a recovery that compares logs."""
    member_epochs: tuple[ReplicaBroker, ...] = ()
    """The broker epoch in which each ISR member and each eligible leader joined."""
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
