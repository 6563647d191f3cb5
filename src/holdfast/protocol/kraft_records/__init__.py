"""KRaft's topic `__cluster_metadata`: its records about topics and partitions.

Kafka's controllers write them. We only read them, for the audit of Apache Kafka's files.
"""

from holdfast.protocol.kraft_records.codec import decode_record
from holdfast.protocol.kraft_records.definitions import (
    NO_LEADER_CHANGE,
    RECOVERING,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

__all__ = [
    "NO_LEADER_CHANGE",
    "RECOVERING",
    "MetadataRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "RemoveTopicRecord",
    "TopicRecord",
    "decode_record",
]
