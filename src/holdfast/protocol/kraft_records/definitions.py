"""The records of `__cluster_metadata` about topics and partitions, as Kafka defines them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from holdfast.protocol.codec.structs import field
from holdfast.protocol.codec.types import Int8, Int32, String, Uuid
from holdfast.protocol.message import Message

NO_LEADER_CHANGE: Final = -2
RECOVERING: Final = 1
"""LeaderRecoveryState: the leader recovers from an unclean election."""


class TopicRecord(Message, versions="0", flexible=0):
    """A topic was created."""

    name: String
    topic_id: Uuid


class PartitionRecord(Message, versions="0-2", flexible=0):
    """The whole state of a partition: at its creation, and in snapshots."""

    partition_id: Int32
    topic_id: Uuid
    replicas: Sequence[Int32]
    isr: Sequence[Int32]
    removing_replicas: Sequence[Int32]
    adding_replicas: Sequence[Int32]
    leader: Int32
    leader_recovery_state: Int8 = field(tag=0, default=0)
    leader_epoch: Int32
    partition_epoch: Int32
    directories: Sequence[Uuid] = field("1+", default=())
    eligible_leader_replicas: Sequence[Int32] | None = field("2+", tag=1, default=None)
    last_known_elr: Sequence[Int32] | None = field("2+", tag=2, default=None)


class PartitionChangeRecord(Message, versions="0-2", flexible=0):
    """A change of a partition. None, or a negative number, means unchanged."""

    partition_id: Int32
    topic_id: Uuid
    isr: Sequence[Int32] | None = field(tag=0, default=None)
    leader: Int32 = field(tag=1, default=NO_LEADER_CHANGE)
    replicas: Sequence[Int32] | None = field(tag=2, default=None)
    removing_replicas: Sequence[Int32] | None = field(tag=3, default=None)
    adding_replicas: Sequence[Int32] | None = field(tag=4, default=None)
    leader_recovery_state: Int8 = field(tag=5, default=-1)
    eligible_leader_replicas: Sequence[Int32] | None = field("2+", tag=6, default=None)
    last_known_elr: Sequence[Int32] | None = field("2+", tag=7, default=None)
    directories: Sequence[Uuid] | None = field("1+", tag=8, default=None)


class RemoveTopicRecord(Message, versions="0", flexible=0):
    """A topic was deleted, with all its partitions."""

    topic_id: Uuid


MetadataRecord: TypeAlias = (
    TopicRecord | PartitionRecord | PartitionChangeRecord | RemoveTopicRecord
)
KINDS: Final[dict[int, type[MetadataRecord]]] = {
    2: TopicRecord,
    3: PartitionRecord,
    5: PartitionChangeRecord,
    9: RemoveTopicRecord,
}
"""By the API key that the record's value opens with."""
