"""Consumer groups whose coordinator assigns the partitions (KIP-848)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import Bool, Int8, Int16, Int32, String, Uuid
from holdfast.protocol.message import Request, Response


class ConsumerGroupHeartbeatRequest(Request, api_key=68, versions="0-1", flexible=0):
    """Join, stay, leave, and report the owned partitions, all in one request.

    A field that did not change since the last heartbeat is None or -1. Member epoch 0 joins, -1
    leaves, -2 leaves for a moment.
    """

    group_id: String
    member_id: String
    member_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: Sequence[String] | None = None
    subscribed_topic_regex: String | None = field("1+", default=None)
    server_assignor: String | None = None
    topic_partitions: Sequence[TopicIdPartitions] | None = None


class TopicIdPartitions(Struct):
    topic_id: Uuid
    partitions: Sequence[Int32]


class ConsumerGroupHeartbeatResponse(Response, api_key=68, versions="0-1", flexible=0):
    """The member's epoch, and its assignment if that has changed."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: HeartbeatAssignment | None = None


class HeartbeatAssignment(Struct):
    topic_partitions: Sequence[TopicIdPartitions]


class ConsumerGroupDescribeRequest(Request, api_key=69, versions="0-1", flexible=0):
    """Ask for the state and members of groups of the new kind."""

    group_ids: Sequence[String]
    include_authorized_operations: Bool


class ConsumerGroupDescribeResponse(Response, api_key=69, versions="0-1", flexible=0):
    """The state of groups, with the current and the target assignment of each member."""

    throttle_time_ms: Int32 = 0
    groups: Sequence[DescribedConsumerGroup]


class DescribedConsumerGroup(Struct):
    error_code: Int16
    error_message: String | None = None
    group_id: String
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: String
    members: Sequence[ConsumerGroupDescribeMember]
    authorized_operations: Int32 = -2147483648


class ConsumerGroupDescribeMember(Struct):
    member_id: String
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: Sequence[String]
    subscribed_topic_regex: String | None = None
    assignment: ConsumerGroupDescribeAssignment
    target_assignment: ConsumerGroupDescribeAssignment
    member_type: Int8 = field("1+", default=-1, ignorable=True)


class ConsumerGroupDescribeAssignment(Struct):
    topic_partitions: Sequence[ConsumerGroupDescribeTopicPartitions]


class ConsumerGroupDescribeTopicPartitions(Struct):
    topic_id: Uuid
    topic_name: String
    partitions: Sequence[Int32]
