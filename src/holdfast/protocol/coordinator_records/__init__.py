"""The topic `__consumer_offsets` in Kafka's format: its records, and the partition of each group.

Kafka's tools can read these records, and a coordinator can load the records that Kafka wrote.
"""

from holdfast.protocol.coordinator_records.codec import Skipped, decode_record, encode_record
from holdfast.protocol.coordinator_records.consumer_protocol import (
    ConsumerProtocolSubscription,
    subscribed_topics,
)
from holdfast.protocol.coordinator_records.definitions import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from holdfast.protocol.coordinator_records.placement import java_hash, partition_for

__all__ = [
    "ConsumerProtocolSubscription",
    "GroupMetadataKey",
    "GroupMetadataValue",
    "OffsetCommitKey",
    "OffsetCommitValue",
    "Skipped",
    "decode_record",
    "encode_record",
    "java_hash",
    "partition_for",
    "subscribed_topics",
]
