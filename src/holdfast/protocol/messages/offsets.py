"""Offsets of a log: ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import Int8, Int16, Int32, Int64, String
from holdfast.protocol.message import Request, Response


class ListOffsetsRequest(Request, api_key=2, versions="1-11", flexible=6):
    """Ask for the first offset at or after a timestamp, or for one of the special offsets.

    Those are negative timestamps: -1 latest, -2 earliest, -3 that of the highest timestamp,
    -4 earliest on local disk, -5 latest in remote storage, -6 earliest not yet uploaded.
    """

    replica_id: Int32
    isolation_level: Int8 = field("2+", default=0)
    """0 counts up to the high watermark, 1 up to the last stable offset."""
    topics: Sequence[ListOffsetsTopic]
    timeout_ms: Int32 = field("10+", default=0, ignorable=True)


class ListOffsetsTopic(Struct):
    name: String
    partitions: Sequence[ListOffsetsPartition]


class ListOffsetsPartition(Struct):
    partition_index: Int32
    current_leader_epoch: Int32 = field("4+", default=-1, ignorable=True)
    timestamp: Int64


class ListOffsetsResponse(Response, api_key=2, versions="1-11", flexible=6):
    """An offset, its timestamp and its leader epoch for each partition."""

    throttle_time_ms: Int32 = field("2+", default=0, ignorable=True)
    topics: Sequence[ListOffsetsTopicResponse]


class ListOffsetsTopicResponse(Struct):
    name: String
    partitions: Sequence[ListOffsetsPartitionResponse]


class ListOffsetsPartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Int32 = field("4+", default=-1)


class OffsetForLeaderEpochRequest(Request, api_key=23, versions="2-4", flexible=4):
    """Ask where a leader epoch ends, to check whether a position still exists (KIP-320)."""

    replica_id: Int32 = field("3+", default=-2, ignorable=True)
    topics: Sequence[OffsetForLeaderTopic]


class OffsetForLeaderTopic(Struct):
    topic: String
    partitions: Sequence[OffsetForLeaderPartition]


class OffsetForLeaderPartition(Struct):
    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


class OffsetForLeaderEpochResponse(Response, api_key=23, versions="2-4", flexible=4):
    """The largest epoch not above the one asked for, and its end offset (KIP-279)."""

    throttle_time_ms: Int32 = 0
    topics: Sequence[OffsetForLeaderTopicResult]


class OffsetForLeaderTopicResult(Struct):
    topic: String
    partitions: Sequence[OffsetForLeaderEpochEndOffset]


class OffsetForLeaderEpochEndOffset(Struct):
    error_code: Int16
    partition: Int32
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class DeleteRecordsRequest(Request, api_key=21, versions="0-2", flexible=2):
    """Delete the records below an offset. -1 means up to the high watermark."""

    topics: Sequence[DeleteRecordsTopic]
    timeout_ms: Int32


class DeleteRecordsTopic(Struct):
    name: String
    partitions: Sequence[DeleteRecordsPartition]


class DeleteRecordsPartition(Struct):
    partition_index: Int32
    offset: Int64


class DeleteRecordsResponse(Response, api_key=21, versions="0-2", flexible=2):
    """Each log's start as it is now."""

    throttle_time_ms: Int32 = 0
    topics: Sequence[DeleteRecordsTopicResult]


class DeleteRecordsTopicResult(Struct):
    name: String
    partitions: Sequence[DeleteRecordsPartitionResult]


class DeleteRecordsPartitionResult(Struct):
    partition_index: Int32
    low_watermark: Int64
    error_code: Int16
