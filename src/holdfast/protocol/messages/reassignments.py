"""Elections and reassignments that an operator requests."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import Bool, Int8, Int16, Int32, String
from holdfast.protocol.message import Request, Response


class ElectLeadersRequest(Request, api_key=43, versions="0-2", flexible=2):
    """Elect the preferred leader (0), or any replica even if unclean (1) (KIP-460)."""

    election_type: Int8 = field("1+", default=0)
    topic_partitions: Sequence[ElectLeadersTopicPartitions] | None
    timeout_ms: Int32 = 60000


class ElectLeadersTopicPartitions(Struct):
    topic: String
    partitions: Sequence[Int32]


class ElectLeadersResponse(Response, api_key=43, versions="0-2", flexible=2):
    """Whether each election succeeded."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("1+", default=0)
    replica_election_results: Sequence[ReplicaElectionResult]


class ReplicaElectionResult(Struct):
    topic: String
    partition_result: Sequence[ElectLeadersPartitionResult]


class ElectLeadersPartitionResult(Struct):
    partition_id: Int32
    error_code: Int16
    error_message: String | None


class AlterPartitionReassignmentsRequest(Request, api_key=45, versions="0-1", flexible=0):
    """Move partitions to other brokers; None instead of brokers cancels (KIP-455)."""

    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Bool = field("1+", default=True)
    topics: Sequence[ReassignableTopic]


class ReassignableTopic(Struct):
    name: String
    partitions: Sequence[ReassignablePartition]


class ReassignablePartition(Struct):
    partition_index: Int32
    replicas: Sequence[Int32] | None = None


class AlterPartitionReassignmentsResponse(Response, api_key=45, versions="0-1", flexible=0):
    """Whether each reassignment has begun."""

    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Bool = field("1+", default=True, ignorable=True)
    error_code: Int16
    error_message: String | None
    responses: Sequence[ReassignableTopicResponse]


class ReassignableTopicResponse(Struct):
    name: String
    partitions: Sequence[ReassignablePartitionResponse]


class ReassignablePartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: String | None


class ListPartitionReassignmentsRequest(Request, api_key=46, versions="0", flexible=0):
    """List the reassignments in progress. None means all topics."""

    timeout_ms: Int32 = 60000
    topics: Sequence[ListPartitionReassignmentsTopics] | None = None


class ListPartitionReassignmentsTopics(Struct):
    name: String
    partition_indexes: Sequence[Int32]


class ListPartitionReassignmentsResponse(Response, api_key=46, versions="0", flexible=0):
    """The replicas of each partition in reassignment, and those being added and removed."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
    topics: Sequence[OngoingTopicReassignment]


class OngoingTopicReassignment(Struct):
    name: String
    partitions: Sequence[OngoingPartitionReassignment]


class OngoingPartitionReassignment(Struct):
    partition_index: Int32
    replicas: Sequence[Int32]
    adding_replicas: Sequence[Int32]
    removing_replicas: Sequence[Int32]
