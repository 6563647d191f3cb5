"""Requests between the controller and the brokers.

The first four are the controller's commands from Kafka 3.9, the last release that used them. With
`AlterPartition` a leader proposes another ISR (KIP-497). With `GetReplicaLogInfo` the controller
compares logs to elect a leader (KIP-966). No release of Kafka has it; its key is far above Kafka's
keys, which grow with each release.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import ZERO_UUID, Bool, Int8, Int16, Int32, Int64, String, Uuid
from holdfast.protocol.message import Request, Response


class LeaderAndIsrRequest(Request, api_key=4, versions="0-7", flexible=4):
    """The controller sends a broker the partitions to lead and to follow.

    A stale command has an older `controller_epoch`; one to an earlier incarnation of the broker
    has an older `broker_epoch`.
    """

    controller_id: Int32
    is_kraft_controller: Bool = field("7+", default=False)
    controller_epoch: Int32
    broker_epoch: Int64 = field("2+", default=-1, ignorable=True)
    type: Int8 = field("5+", default=0)
    """1 some partitions, 2 all that the broker should have; 0 does not say."""
    ungrouped_partition_states: Sequence[LeaderAndIsrPartitionState] = field("0-1", default=())
    topic_states: Sequence[LeaderAndIsrTopicState] = field("2+", default=())
    live_leaders: Sequence[LeaderAndIsrLiveLeader]


class LeaderAndIsrPartitionState(Struct):
    topic_name: String = field("0-1", default="", ignorable=True)
    partition_index: Int32
    controller_epoch: Int32
    leader: Int32
    leader_epoch: Int32
    isr: Sequence[Int32]
    partition_epoch: Int32
    replicas: Sequence[Int32]
    adding_replicas: Sequence[Int32] = field("3+", default=(), ignorable=True)
    removing_replicas: Sequence[Int32] = field("3+", default=(), ignorable=True)
    is_new: Bool = field("1+", default=False, ignorable=True)
    leader_recovery_state: Int8 = field("6+", default=0)
    """1 while the leader recovers from an unclean election (KIP-704), else 0."""


class LeaderAndIsrTopicState(Struct):
    topic_name: String
    topic_id: Uuid = field("5+", default=ZERO_UUID, ignorable=True)
    partition_states: Sequence[LeaderAndIsrPartitionState]


class LeaderAndIsrLiveLeader(Struct):
    broker_id: Int32
    host_name: String
    port: Int32


class LeaderAndIsrResponse(Response, api_key=4, versions="0-7", flexible=4):
    """Whether each partition has its new role."""

    error_code: Int16
    partition_errors: Sequence[LeaderAndIsrPartitionError] = field("0-4", default=())
    topics: Sequence[LeaderAndIsrTopicError] = field("5+", default=())


class LeaderAndIsrPartitionError(Struct):
    topic_name: String = field("0-4", default="", ignorable=True)
    partition_index: Int32
    error_code: Int16


class LeaderAndIsrTopicError(Struct):
    topic_id: Uuid
    partition_errors: Sequence[LeaderAndIsrPartitionError]


class StopReplicaRequest(Request, api_key=5, versions="0-4", flexible=2):
    """The controller stops replicas on a broker, and may have them deleted."""

    controller_id: Int32
    is_kraft_controller: Bool = field("4+", default=False)
    controller_epoch: Int32
    broker_epoch: Int64 = field("1+", default=-1, ignorable=True)
    delete_partitions: Bool = field("0-2", default=False)
    ungrouped_partitions: Sequence[StopReplicaPartitionV0] = field("0", default=())
    topics: Sequence[StopReplicaTopicV1] = field("1-2", default=())
    topic_states: Sequence[StopReplicaTopicState] = field("3+", default=())


class StopReplicaPartitionV0(Struct):
    topic_name: String
    partition_index: Int32


class StopReplicaTopicV1(Struct):
    name: String
    partition_indexes: Sequence[Int32]


class StopReplicaTopicState(Struct):
    topic_name: String
    partition_states: Sequence[StopReplicaPartitionState]


class StopReplicaPartitionState(Struct):
    partition_index: Int32
    leader_epoch: Int32 = -1
    delete_partition: Bool


class StopReplicaResponse(Response, api_key=5, versions="0-4", flexible=2):
    """Whether each replica has stopped."""

    error_code: Int16
    partition_errors: Sequence[StopReplicaPartitionError]


class StopReplicaPartitionError(Struct):
    topic_name: String
    partition_index: Int32
    error_code: Int16


class UpdateMetadataRequest(Request, api_key=6, versions="0-8", flexible=6):
    """The controller sends every broker the state for its Metadata responses."""

    controller_id: Int32
    is_kraft_controller: Bool = field("8+", default=False)
    type: Int8 = field("8+", tag=0, default=0)
    controller_epoch: Int32
    broker_epoch: Int64 = field("5+", default=-1, ignorable=True)
    ungrouped_partition_states: Sequence[UpdateMetadataPartitionState] = field("0-4", default=())
    topic_states: Sequence[UpdateMetadataTopicState] = field("5+", default=())
    live_brokers: Sequence[UpdateMetadataBroker]


class UpdateMetadataPartitionState(Struct):
    topic_name: String = field("0-4", default="", ignorable=True)
    partition_index: Int32
    controller_epoch: Int32
    leader: Int32
    """-1 for none, -2 while the topic is being deleted."""
    leader_epoch: Int32
    isr: Sequence[Int32]
    zk_version: Int32
    replicas: Sequence[Int32]
    offline_replicas: Sequence[Int32] = field("4+", default=(), ignorable=True)


class UpdateMetadataTopicState(Struct):
    topic_name: String
    topic_id: Uuid = field("7+", default=ZERO_UUID, ignorable=True)
    partition_states: Sequence[UpdateMetadataPartitionState]


class UpdateMetadataBroker(Struct):
    id: Int32
    v0_host: String = field("0", default="", ignorable=True)
    v0_port: Int32 = field("0", default=0, ignorable=True)
    endpoints: Sequence[UpdateMetadataEndpoint] = field("1+", default=(), ignorable=True)
    rack: String | None = field("2+", default="", ignorable=True)


class UpdateMetadataEndpoint(Struct):
    port: Int32
    host: String
    listener: String = field("3+", default="", ignorable=True)
    security_protocol: Int16
    """0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""


class UpdateMetadataResponse(Response, api_key=6, versions="0-8", flexible=6):
    """Whether the broker applied the update."""

    error_code: Int16


class ControlledShutdownRequest(Request, api_key=7, versions="0-3", flexible=3):
    """A broker asks the controller to move leadership away before it stops.

    Version 0 has a header without a client id.
    """

    broker_id: Int32
    broker_epoch: Int64 = field("2+", default=-1, ignorable=True)


class ControlledShutdownResponse(Response, api_key=7, versions="0-3", flexible=3):
    """The partitions that the broker still leads."""

    error_code: Int16
    remaining_partitions: Sequence[RemainingPartition]


class RemainingPartition(Struct):
    topic_name: String
    partition_index: Int32


class AlterPartitionRequest(Request, api_key=56, versions="2-3", flexible=0):
    """A leader asks the controller for another ISR; the partition epoch makes it compare-and-set.

    Version 3 has each replica's broker epoch, so that one that restarted meanwhile is refused
    (KIP-903).
    """

    broker_id: Int32
    broker_epoch: Int64 = -1
    topics: Sequence[AlterPartitionRequestTopicData]


class AlterPartitionRequestTopicData(Struct):
    topic_id: Uuid
    partitions: Sequence[AlterPartitionRequestPartitionData]


class AlterPartitionRequestPartitionData(Struct):
    partition_index: Int32
    leader_epoch: Int32
    new_isr: Sequence[Int32] = field("0-2", default=())
    new_isr_with_epochs: Sequence[BrokerState] = field("3+", default=())
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32


class BrokerState(Struct):
    broker_id: Int32
    broker_epoch: Int64 = -1


class AlterPartitionResponse(Response, api_key=56, versions="2-3", flexible=0):
    """The partition's state as the controller has it now."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    topics: Sequence[AlterPartitionResponseTopicData]


class AlterPartitionResponseTopicData(Struct):
    topic_id: Uuid
    partitions: Sequence[AlterPartitionResponsePartitionData]


class AlterPartitionResponsePartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    leader_id: Int32
    leader_epoch: Int32
    isr: Sequence[Int32]
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32


class GetReplicaLogInfoRequest(Request, api_key=30_093, versions="0", flexible=0):
    """The controller asks a broker for the ends of its logs."""

    topic_partitions: Sequence[GetReplicaLogInfoTopicPartitions] | None


class GetReplicaLogInfoTopicPartitions(Struct):
    topic_id: Uuid = field(default=ZERO_UUID, ignorable=True)
    partitions: Sequence[Int32]


class GetReplicaLogInfoResponse(Response, api_key=30_093, versions="0", flexible=0):
    """The end of each log, and the `broker_epoch` of the incarnation that answers."""

    throttle_time_ms: Int32 = 0
    broker_epoch: Int64
    truncated: Bool = False
    """Whether some requested logs are not in this response."""
    topic_partition_log_info_list: Sequence[TopicPartitionLogInfo]


class TopicPartitionLogInfo(Struct):
    topic_id: Uuid
    partition_log_info: Sequence[PartitionLogInfo]


class PartitionLogInfo(Struct):
    partition: Int32
    last_written_leader_epoch: Int32
    current_leader_epoch: Int32
    log_end_offset: Int64
    error_code: Int16
