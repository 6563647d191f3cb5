"""Share groups: several consumers read one partition and acknowledge each record (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import Bool, Int8, Int16, Int32, Int64, Records, String, Uuid
from holdfast.protocol.message import Request, Response
from holdfast.protocol.messages.consumer_groups import HeartbeatAssignment, TopicIdPartitions
from holdfast.protocol.messages.leader_hints import NodeEndpoint


class ShareGroupHeartbeatRequest(Request, api_key=76, versions="1", flexible=0):
    """Join, stay in or leave a share group."""

    group_id: String
    member_id: String
    member_epoch: Int32
    rack_id: String | None = None
    subscribed_topic_names: Sequence[String] | None = None


class ShareGroupHeartbeatResponse(Response, api_key=76, versions="1", flexible=0):
    """The member's epoch, and its assignment if that has changed."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: HeartbeatAssignment | None = None


class ShareFetchRequest(Request, api_key=78, versions="1-2", flexible=0):
    """Acquire records, and acknowledge records acquired before."""

    group_id: String | None = None
    member_id: String | None
    share_session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2**31 - 1
    max_records: Int32
    batch_size: Int32
    share_acquire_mode: Int8 = field("2+", default=0, ignorable=True)
    is_renew_ack: Bool = field("2+", default=False)
    topics: Sequence[AcknowledgeTopic]
    forgotten_topics_data: Sequence[TopicIdPartitions]


class AcknowledgementBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    acknowledge_types: Sequence[Int8]


class ShareFetchResponse(Response, api_key=78, versions="1-2", flexible=0):
    """Records, and which of them this consumer has acquired."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32
    responses: Sequence[ShareFetchableTopicResponse]
    node_endpoints: Sequence[NodeEndpoint]


class ShareFetchableTopicResponse(Struct):
    topic_id: Uuid
    partitions: Sequence[ShareFetchPartitionData]


class ShareFetchPartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: String | None = None
    acknowledge_error_code: Int16
    acknowledge_error_message: String | None = None
    current_leader: ShareLeaderIdAndEpoch
    records: Records
    acquired_records: Sequence[AcquiredRecords]


class ShareLeaderIdAndEpoch(Struct):
    leader_id: Int32
    leader_epoch: Int32


class AcquiredRecords(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_count: Int16


class ShareAcknowledgeRequest(Request, api_key=79, versions="1-2", flexible=0):
    """Acknowledge acquired records: accept, release, reject or renew."""

    group_id: String | None = None
    member_id: String | None
    share_session_epoch: Int32
    is_renew_ack: Bool = field("2+", default=False)
    topics: Sequence[AcknowledgeTopic]


class AcknowledgeTopic(Struct):
    topic_id: Uuid
    partitions: Sequence[AcknowledgePartition]


class AcknowledgePartition(Struct):
    partition_index: Int32
    acknowledgement_batches: Sequence[AcknowledgementBatch]


class ShareAcknowledgeResponse(Response, api_key=79, versions="1-2", flexible=0):
    """Whether each acknowledgement was accepted."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32 = field("2+", default=0, ignorable=True)
    responses: Sequence[ShareAcknowledgeTopicResponse]
    node_endpoints: Sequence[NodeEndpoint]


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: Uuid
    partitions: Sequence[ShareAcknowledgePartitionData]


class ShareAcknowledgePartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: String | None = None
    current_leader: ShareLeaderIdAndEpoch
