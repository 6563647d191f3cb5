"""Builds the controller's requests to brokers from the current state of the service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.broker.metadata.store_nodes import BrokerNode
from holdfast.core import DURING_DELETION, FIRST_PARTITION_EPOCH
from holdfast.model import (
    BrokerEpoch,
    ErrorCode,
    LeaderEpoch,
    PartitionState,
    TopicPartition,
)
from holdfast.protocol.messages.control import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoTopicPartitions,
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

if TYPE_CHECKING:
    from holdfast.broker.controller.broker_channel import Stop
    from holdfast.broker.controller.service import ControllerService

LEADER_AND_ISR_VERSION: Final = 7
STOP_REPLICA_VERSION: Final = 4
UPDATE_METADATA_VERSION: Final = 8
GET_REPLICA_LOG_INFO_VERSION: Final = 0

SOME_PARTITIONS: Final = 1
SOME_METADATA: Final = 1
WHOLE_METADATA: Final = 2
LISTENER: Final = "PLAINTEXT"


class GoneTopic(NamedTuple):
    """A topic that was deleted."""

    name: str
    topic_id: bytes


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    topics: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition)
    return topics


def leader_and_isr(
    service: ControllerService,
    broker_epoch: BrokerEpoch,
    states: Mapping[TopicPartition, PartitionState],
) -> LeaderAndIsrRequest:
    """Roles, with the addresses of the leaders to follow."""
    topics = [
        LeaderAndIsrTopicState(
            topic_name=name,
            topic_id=service.topics[name].topic_id,
            partition_states=[_role(service, one, states[one]) for one in partitions],
        )
        for name, partitions in _by_topic(states).items()
        if name in service.topics
    ]
    leaders = dict.fromkeys(state.leader for state in states.values())
    nodes = [service.broker_nodes[one] for one in leaders if one in service.broker_nodes]
    return LeaderAndIsrRequest(
        controller_id=service.host.id,
        controller_epoch=service.controller_epoch,
        broker_epoch=broker_epoch,
        type=SOME_PARTITIONS,
        topic_states=topics,
        live_leaders=[
            LeaderAndIsrLiveLeader(broker_id=one.broker, host_name=one.host, port=one.port)
            for one in nodes
        ],
    )


def _role(
    service: ControllerService, partition: TopicPartition, state: PartitionState
) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        partition_index=partition.partition,
        controller_epoch=service.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=state.partition_epoch,
        replicas=state.replicas,
        adding_replicas=state.adding,
        removing_replicas=state.removing,
        is_new=state.partition_epoch == FIRST_PARTITION_EPOCH,
    )


def leader_and_isr_errors(
    service: ControllerService, response: LeaderAndIsrResponse
) -> dict[TopicPartition, ErrorCode]:
    """The error of each partition in a broker's answer, by name."""
    return {
        TopicPartition(name, one.partition_index): ErrorCode(one.error_code)
        for topic in response.topics
        if (name := service.topic_names.get(topic.topic_id)) is not None
        for one in topic.partition_errors
    }


def stop_replica(
    service: ControllerService, broker_epoch: BrokerEpoch, stops: Mapping[TopicPartition, Stop]
) -> StopReplicaRequest:
    """Replicas to stop."""
    topics = [
        StopReplicaTopicState(
            topic_name=name,
            partition_states=[
                StopReplicaPartitionState(
                    partition_index=one.partition,
                    leader_epoch=stops[one].leader_epoch,
                    delete_partition=stops[one].delete,
                )
                for one in partitions
            ],
        )
        for name, partitions in _by_topic(stops).items()
    ]
    return StopReplicaRequest(
        controller_id=service.host.id,
        controller_epoch=service.controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=topics,
    )


def update_metadata(
    service: ControllerService,
    broker_epoch: BrokerEpoch,
    partitions: Iterable[TopicPartition],
    gone: Iterable[GoneTopic],
    *,
    is_whole: bool,
) -> UpdateMetadataRequest:
    """All live brokers, the current state of some partitions, and deleted topics.

    In a whole update, a topic that is not named does not exist: a broker that returns from a lost
    session has not received the deletions that happened meanwhile.
    """
    ended = [
        UpdateMetadataTopicState(
            topic_name=topic.name,
            topic_id=topic.topic_id,
            partition_states=[_ended(service, 0)],  # one names the whole topic
        )
        for topic in gone
    ]
    present = [
        UpdateMetadataTopicState(
            topic_name=name,
            topic_id=service.topics[name].topic_id,
            partition_states=[_metadata(service, one) for one in named if service.knows(one)],
        )
        for name, named in _by_topic(partitions).items()
        if name in service.topics
    ]
    return UpdateMetadataRequest(
        controller_id=service.host.id,
        type=WHOLE_METADATA if is_whole else SOME_METADATA,
        controller_epoch=service.controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=ended + present,
        live_brokers=[_broker(one) for one in service.broker_nodes.values()],
    )


def _metadata(
    service: ControllerService, partition: TopicPartition
) -> UpdateMetadataPartitionState:
    state = service.core.partitions[partition]
    return UpdateMetadataPartitionState(
        partition_index=partition.partition,
        controller_epoch=service.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        zk_version=state.partition_epoch,
        replicas=state.replicas,
        offline_replicas=service.offline_replicas(partition),
    )


def _ended(service: ControllerService, index: int) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        partition_index=index,
        controller_epoch=service.controller_epoch,
        leader=DURING_DELETION,
        leader_epoch=DURING_DELETION,
        isr=(),
        zk_version=0,
        replicas=(),
    )


def _broker(node: BrokerNode) -> UpdateMetadataBroker:
    endpoint = UpdateMetadataEndpoint(
        port=node.port, host=node.host, listener=LISTENER, security_protocol=0
    )
    return UpdateMetadataBroker(id=node.broker, endpoints=[endpoint], rack=node.rack)


def get_replica_log_info(
    service: ControllerService, asked: Mapping[TopicPartition, LeaderEpoch]
) -> GetReplicaLogInfoRequest:
    """Ask for the ends of these logs."""
    return GetReplicaLogInfoRequest(
        topic_partitions=[
            GetReplicaLogInfoTopicPartitions(
                topic_id=service.topics[name].topic_id,
                partitions=[one.partition for one in partitions],
            )
            for name, partitions in _by_topic(asked).items()
            if name in service.topics
        ]
    )
