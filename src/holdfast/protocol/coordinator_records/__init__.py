"""The topic `__consumer_offsets` in Kafka's own bytes: its records, and which group goes where.

Kafka's tools read what is written here, and a coordinator takes over what Kafka wrote.
"""

from holdfast.protocol.coordinator_records.codec import Skipped, decode_record, encode_record
from holdfast.protocol.coordinator_records.consumer_protocol import (
    AssignedPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OwnedPartitions,
    read_assignment,
    read_subscription,
    subscribed_topics,
)
from holdfast.protocol.coordinator_records.definitions import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    StoredMember,
)
from holdfast.protocol.coordinator_records.placement import java_hash, partition_for

__all__ = [
    "AssignedPartitions",
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "GroupMetadataKey",
    "GroupMetadataValue",
    "OffsetCommitKey",
    "OffsetCommitValue",
    "OwnedPartitions",
    "Skipped",
    "StoredMember",
    "decode_record",
    "encode_record",
    "java_hash",
    "partition_for",
    "read_assignment",
    "read_subscription",
    "subscribed_topics",
]
