"""The numbers and names every room shares.

Offsets, epochs and ids are all integers on the wire. They are different types here, because a
leader epoch where a broker epoch belongs is exactly the kind of mistake that loses data.
"""

from __future__ import annotations

from typing import NamedTuple, NewType

Offset = NewType("Offset", int)
"""A position in a partition's log. Ends are half-open: the next offset to write."""

LeaderEpoch = NewType("LeaderEpoch", int)
"""Which reign a record or request belongs to. Rises with every election, never falls."""

PartitionEpoch = NewType("PartitionEpoch", int)
"""The version of (leader, ISR) in the agreed store, for compare-and-set."""

BrokerEpoch = NewType("BrokerEpoch", int)
"""Which life of a broker is speaking. A broker gets a new one each time it registers."""

ControllerEpoch = NewType("ControllerEpoch", int)
"""Which controller is speaking. Brokers refuse an older one than they have seen."""

BrokerId = NewType("BrokerId", int)
ProducerId = NewType("ProducerId", int)

NO_BROKER = BrokerId(-1)
NO_EPOCH = LeaderEpoch(-1)
NO_OFFSET = Offset(-1)
NO_BROKER_EPOCH = BrokerEpoch(-1)
NO_PRODUCER = ProducerId(-1)
NO_SEQUENCE = -1


class TopicPartition(NamedTuple):
    """One log of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class EpochEntry(NamedTuple):
    """Where a reign begins in a log."""

    epoch: LeaderEpoch
    start_offset: Offset


class EpochEnd(NamedTuple):
    """The answer to "where does this epoch end in your log?".

    The epoch is the largest one known that is not above the one asked for (KIP-279). Both are -1
    when the log knows nothing at or above it.
    """

    epoch: LeaderEpoch
    end_offset: Offset


UNKNOWN_EPOCH_END = EpochEnd(NO_EPOCH, NO_OFFSET)


class BatchHeader(NamedTuple):
    """What the core needs to know of a record batch. It never sees the records."""

    record_count: int
    leader_epoch: LeaderEpoch = NO_EPOCH
    base_offset: Offset = NO_OFFSET
    producer_id: ProducerId = NO_PRODUCER
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False

    @property
    def end_offset(self) -> Offset:
        """The offset after the last record."""
        return Offset(self.base_offset + self.record_count)


class ReplicaBroker(NamedTuple):
    """A replica as an ISR proposal names it: the broker, and which of its lives (KIP-903)."""

    broker: BrokerId
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH


class PartitionState(NamedTuple):
    """What the agreed store says of one partition."""

    replicas: tuple[BrokerId, ...]
    """The assignment, preferred leader first."""
    isr: tuple[BrokerId, ...]
    """The committed in-sync set. Empty only while the eligible leaders keep the promise."""
    leader: BrokerId = NO_BROKER
    leader_epoch: LeaderEpoch = LeaderEpoch(0)
    partition_epoch: PartitionEpoch = PartitionEpoch(0)
    eligible_leaders: tuple[BrokerId, ...] = ()
    """Out of the ISR, yet known to hold everything below the high watermark (KIP-966)."""
    last_known_eligible: tuple[BrokerId, ...] = ()
    """Were eligible until an unclean restart; candidates of a recovery that compares logs."""
    member_epochs: tuple[ReplicaBroker, ...] = ()
    """In which life each member of the ISR and each eligible leader became one."""
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
