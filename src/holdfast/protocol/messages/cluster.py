"""The cluster as a whole: its brokers, its quorum, its disks."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import (
    ZERO_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uint16,
    Uuid,
)
from holdfast.protocol.message import Request, Response


class DescribeClusterRequest(Request, api_key=60, versions="0-2", flexible=0):
    """Ask for the brokers, or the controllers, of the cluster (KIP-700, KIP-919)."""

    include_cluster_authorized_operations: Bool
    endpoint_type: Int8 = field("1+", default=1)
    """1 brokers, 2 controllers."""
    include_fenced_brokers: Bool = field("2+", default=False)


class DescribeClusterResponse(Response, api_key=60, versions="0-2", flexible=0):
    """The nodes of the cluster and which of them is the controller."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    endpoint_type: Int8 = field("1+", default=1)
    cluster_id: String
    controller_id: Int32 = -1
    brokers: Sequence[DescribeClusterBroker]
    cluster_authorized_operations: Int32 = -2147483648


class DescribeClusterBroker(Struct):
    broker_id: Int32
    host: String
    port: Int32
    rack: String | None = None
    is_fenced: Bool = field("2+", default=False)


class DescribeQuorumRequest(Request, api_key=55, versions="0-2", flexible=0):
    """Ask how far each voter of the metadata quorum is (KIP-595)."""

    topics: Sequence[DescribeQuorumRequestTopicData]


class DescribeQuorumRequestTopicData(Struct):
    topic_name: String
    partitions: Sequence[DescribeQuorumRequestPartitionData]


class DescribeQuorumRequestPartitionData(Struct):
    partition_index: Int32


class DescribeQuorumResponse(Response, api_key=55, versions="0-2", flexible=0):
    """The leader, the voters and the observers of the metadata quorum."""

    error_code: Int16
    error_message: String | None = field("2+", default="", ignorable=True)
    topics: Sequence[DescribeQuorumResponseTopicData]
    nodes: Sequence[DescribeQuorumNode] = field("2+", default=())


class DescribeQuorumResponseTopicData(Struct):
    topic_name: String
    partitions: Sequence[DescribeQuorumResponsePartitionData]


class DescribeQuorumResponsePartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: String | None = field("2+", default="", ignorable=True)
    leader_id: Int32
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: Sequence[DescribeQuorumReplicaState]
    observers: Sequence[DescribeQuorumReplicaState]


class DescribeQuorumReplicaState(Struct):
    replica_id: Int32
    replica_directory_id: Uuid = field("2+", default=ZERO_UUID)
    log_end_offset: Int64
    last_fetch_timestamp: Int64 = field("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: Int64 = field("1+", default=-1, ignorable=True)


class DescribeQuorumNode(Struct):
    node_id: Int32
    listeners: Sequence[DescribeQuorumListener]


class DescribeQuorumListener(Struct):
    name: String
    host: String
    port: Uint16


class DescribeLogDirsRequest(Request, api_key=35, versions="1-5", flexible=2):
    """Ask how much each log takes on a broker's disks. None means all topics."""

    topics: Sequence[DescribableLogDirTopic] | None


class DescribableLogDirTopic(Struct):
    topic: String
    partitions: Sequence[Int32]


class DescribeLogDirsResponse(Response, api_key=35, versions="1-5", flexible=2):
    """Each log directory, its logs, their sizes and lags."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("3+", default=0, ignorable=True)
    results: Sequence[DescribeLogDirsResult]


class DescribeLogDirsResult(Struct):
    error_code: Int16
    log_dir: String
    topics: Sequence[DescribeLogDirsTopic]
    total_bytes: Int64 = field("4+", default=-1, ignorable=True)
    usable_bytes: Int64 = field("4+", default=-1, ignorable=True)
    is_cordoned: Bool = field("5+", default=False, ignorable=True)


class DescribeLogDirsTopic(Struct):
    name: String
    partitions: Sequence[DescribeLogDirsPartition]


class DescribeLogDirsPartition(Struct):
    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: Bool
