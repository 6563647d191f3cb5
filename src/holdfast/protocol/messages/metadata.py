"""Metadata: brokers, topics, partitions and their leaders."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import ZERO_UUID, Bool, Int16, Int32, String, Uuid
from holdfast.protocol.message import Request, Response


class MetadataRequest(Request, api_key=3, versions="0-13", flexible=9):
    """Ask about some topics, or all: `topics` is then None, or empty in version 0."""

    topics: Sequence[MetadataRequestTopic] | None = field(nullable="1+")
    allow_auto_topic_creation: Bool = field("4+", default=True)
    include_cluster_authorized_operations: Bool = field("8-10", default=False)
    include_topic_authorized_operations: Bool = field("8+", default=False)


class MetadataRequestTopic(Struct):
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    name: String | None = field(nullable="10+")


class MetadataResponse(Response, api_key=3, versions="0-13", flexible=9):
    """Every live broker, and the leader and replicas of each partition."""

    throttle_time_ms: Int32 = field("3+", default=0, ignorable=True)
    brokers: Sequence[MetadataResponseBroker]
    cluster_id: String | None = field("2+", default=None, ignorable=True)
    controller_id: Int32 = field("1+", default=-1, ignorable=True)
    topics: Sequence[MetadataResponseTopic]
    cluster_authorized_operations: Int32 = field("8-10", default=-2147483648)
    error_code: Int16 = field("13+", default=0, ignorable=True)


class MetadataResponseBroker(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: String | None = field("1+", default=None, ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: Int16
    name: String | None = field(nullable="12+")
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    is_internal: Bool = field("1+", default=False, ignorable=True)
    partitions: Sequence[MetadataResponsePartition]
    topic_authorized_operations: Int32 = field("8+", default=-2147483648)
    """A bit for each operation; the lowest int32 if the client did not ask."""


class MetadataResponsePartition(Struct):
    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = field("7+", default=-1, ignorable=True)
    replica_nodes: Sequence[Int32]
    isr_nodes: Sequence[Int32]
    offline_replicas: Sequence[Int32] = field("5+", default=(), ignorable=True)


class DescribeTopicPartitionsRequest(Request, api_key=75, versions="0", flexible=0):
    """Ask about topics page by page, where one answer would be too large (KIP-966)."""

    topics: Sequence[DescribeTopicPartitionsTopicRequest]
    response_partition_limit: Int32 = 2000
    cursor: DescribeTopicPartitionsCursor | None = None


class DescribeTopicPartitionsTopicRequest(Struct):
    name: String


class DescribeTopicPartitionsCursor(Struct):
    topic_name: String
    partition_index: Int32


class DescribeTopicPartitionsResponse(Response, api_key=75, versions="0", flexible=0):
    """One page of partitions, and where the next one begins."""

    throttle_time_ms: Int32 = 0
    topics: Sequence[DescribeTopicPartitionsResponseTopic]
    next_cursor: DescribeTopicPartitionsCursor | None = None


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: Int16
    name: String | None
    topic_id: Uuid
    is_internal: Bool = False
    partitions: Sequence[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: Int32 = -2147483648


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = -1
    replica_nodes: Sequence[Int32]
    isr_nodes: Sequence[Int32]
    eligible_leader_replicas: Sequence[Int32] | None = None
    last_known_elr: Sequence[Int32] | None = None
    offline_replicas: Sequence[Int32]
