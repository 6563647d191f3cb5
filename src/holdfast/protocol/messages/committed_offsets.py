"""Committed offsets of groups: commit, fetch, delete."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import ZERO_UUID, Bool, Int16, Int32, Int64, String, Uuid
from holdfast.protocol.message import Request, Response


class OffsetCommitRequest(Request, api_key=8, versions="2-10", flexible=8):
    """Commit a group's offsets. Generation -1 is a commit from outside the group."""

    group_id: String
    generation_id_or_member_epoch: Int32 = -1
    member_id: String
    group_instance_id: String | None = field("7+", default=None)
    retention_time_ms: Int64 = field("2-4", default=-1, ignorable=True)
    topics: Sequence[OffsetCommitRequestTopic]


class OffsetCommitRequestTopic(Struct):
    name: String = field("0-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partitions: Sequence[OffsetCommitRequestPartition]


class OffsetCommitRequestPartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = field("6+", default=-1, ignorable=True)
    committed_metadata: String | None


class OffsetCommitResponse(Response, api_key=8, versions="2-10", flexible=8):
    """Whether each offset was committed."""

    throttle_time_ms: Int32 = field("3+", default=0, ignorable=True)
    topics: Sequence[OffsetCommitResponseTopic]


class OffsetCommitResponseTopic(Struct):
    name: String = field("0-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partitions: Sequence[OffsetCommitResponsePartition]


class OffsetCommitResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16


class OffsetFetchRequest(Request, api_key=9, versions="1-10", flexible=6):
    """Fetch a group's committed offsets.

    Version 8 names several groups in one request and leaves the old fields empty (KIP-709).
    """

    group_id: String = field("0-7", default="")
    topics: Sequence[OffsetFetchRequestTopic] | None = field("0-7", nullable="2-7", default=())
    groups: Sequence[OffsetFetchRequestGroup] = field("8+", default=())
    require_stable: Bool = field("7+", default=False)


class OffsetFetchRequestTopic(Struct):
    name: String = field("0-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partition_indexes: Sequence[Int32]


class OffsetFetchRequestGroup(Struct):
    group_id: String
    member_id: String | None = field("9+", default=None, ignorable=True)
    member_epoch: Int32 = field("9+", default=-1, ignorable=True)
    topics: Sequence[OffsetFetchRequestTopic] | None


class OffsetFetchResponse(Response, api_key=9, versions="1-10", flexible=6):
    """Committed offsets; -1 where there is none."""

    throttle_time_ms: Int32 = field("3+", default=0, ignorable=True)
    topics: Sequence[OffsetFetchResponseTopic] = field("0-7", default=())
    error_code: Int16 = field("2-7", default=0, ignorable=True)
    groups: Sequence[OffsetFetchResponseGroup] = field("8+", default=())


class OffsetFetchResponseTopic(Struct):
    name: String = field("0-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partitions: Sequence[OffsetFetchResponsePartition]


class OffsetFetchResponsePartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = field("5+", default=-1, ignorable=True)
    metadata: String | None
    error_code: Int16


class OffsetFetchResponseGroup(Struct):
    group_id: String
    topics: Sequence[OffsetFetchResponseTopic]
    error_code: Int16 = 0


class OffsetDeleteRequest(Request, api_key=47, versions="0"):
    """Delete a group's committed offsets for some partitions (KIP-496)."""

    group_id: String
    topics: Sequence[OffsetDeleteRequestTopic]


class OffsetDeleteRequestTopic(Struct):
    name: String
    partitions: Sequence[OffsetDeleteRequestPartition]


class OffsetDeleteRequestPartition(Struct):
    partition_index: Int32


class OffsetDeleteResponse(Response, api_key=47, versions="0"):
    """Whether each was deleted; a topic in use is refused."""

    error_code: Int16
    throttle_time_ms: Int32 = 0
    topics: Sequence[OffsetDeleteResponseTopic]


class OffsetDeleteResponseTopic(Struct):
    name: String
    partitions: Sequence[OffsetDeleteResponsePartition]


class OffsetDeleteResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16
