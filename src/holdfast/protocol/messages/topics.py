"""Topics: create, delete, add partitions."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import ZERO_UUID, Bool, Int8, Int16, Int32, String, Uuid
from holdfast.protocol.message import Request, Response


class CreateTopicsRequest(Request, api_key=19, versions="2-7", flexible=5):
    """Create topics with a number of partitions and replicas, or with an assignment of them.

    A number of -1 means the broker's default (KIP-464), or that there is an assignment.
    """

    topics: Sequence[CreatableTopic]
    timeout_ms: Int32 = 60000
    validate_only: Bool = False


class CreatableTopic(Struct):
    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: Sequence[CreatableReplicaAssignment]
    configs: Sequence[CreatableTopicConfig]


class CreatableReplicaAssignment(Struct):
    partition_index: Int32
    broker_ids: Sequence[Int32]


class CreatableTopicConfig(Struct):
    name: String
    value: String | None


class CreateTopicsResponse(Response, api_key=19, versions="2-7", flexible=5):
    """Whether each topic was created, and with which settings (KIP-525)."""

    throttle_time_ms: Int32 = 0
    topics: Sequence[CreatableTopicResult]


class CreatableTopicResult(Struct):
    name: String
    topic_id: Uuid = field("7+", default=ZERO_UUID, ignorable=True)
    error_code: Int16
    error_message: String | None
    topic_config_error_code: Int16 = field("5+", tag=0, default=0, ignorable=True)
    num_partitions: Int32 = field("5+", default=-1, ignorable=True)
    replication_factor: Int16 = field("5+", default=-1, ignorable=True)
    configs: Sequence[CreatableTopicConfigs] | None = field("5+", default=(), ignorable=True)


class CreatableTopicConfigs(Struct):
    name: String
    value: String | None
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool


class DeleteTopicsRequest(Request, api_key=20, versions="1-6", flexible=4):
    """Delete topics; since version 6 by name or by id (KIP-516)."""

    topics: Sequence[DeleteTopicState] = field("6+", default=())
    topic_names: Sequence[String] = field("0-5", default=(), ignorable=True)
    timeout_ms: Int32


class DeleteTopicState(Struct):
    name: String | None = None
    topic_id: Uuid


class DeleteTopicsResponse(Response, api_key=20, versions="1-6", flexible=4):
    """Whether each topic is being deleted."""

    throttle_time_ms: Int32 = 0
    responses: Sequence[DeletableTopicResult]


class DeletableTopicResult(Struct):
    name: String | None = field(nullable="6+")
    topic_id: Uuid = field("6+", default=ZERO_UUID, ignorable=True)
    error_code: Int16
    error_message: String | None = field("5+", default=None, ignorable=True)


class CreatePartitionsRequest(Request, api_key=37, versions="0-3", flexible=2):
    """Add partitions to topics: `count` is the new total."""

    topics: Sequence[CreatePartitionsTopic]
    timeout_ms: Int32
    validate_only: Bool


class CreatePartitionsTopic(Struct):
    name: String
    count: Int32
    assignments: Sequence[CreatePartitionsAssignment] | None


class CreatePartitionsAssignment(Struct):
    broker_ids: Sequence[Int32]


class CreatePartitionsResponse(Response, api_key=37, versions="0-3", flexible=2):
    """Whether each topic has its new partitions."""

    throttle_time_ms: Int32 = 0
    results: Sequence[CreatePartitionsTopicResult]


class CreatePartitionsTopicResult(Struct):
    name: String
    error_code: Int16
    error_message: String | None = None
