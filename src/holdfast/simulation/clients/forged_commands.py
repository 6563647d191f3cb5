"""Forged controller commands: a client sends them to a broker, with guessed epochs.

The stranger has all public information: topics, ids, leaders, the controller. Broker epochs and
controller epochs are small numbers, so about half of its guesses are right. The coordination store
confirms none of its commands, so a broker must carry out none of them.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from holdfast.broker.metadata.store_nodes import decode_controller_epoch, decode_topic
from holdfast.coordination import paths
from holdfast.model import TopicPartition
from holdfast.protocol import Request, Response
from holdfast.protocol.messages.control import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
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
from holdfast.simulation.clients.connection import FAILURES
from holdfast.simulation.cluster import SimulatedCluster
from holdfast.simulation.machine import Machine

FAR: Final = 1_000_000
NOWHERE: Final = "nowhere"
DELETED: Final = -2
LEADER_AND_ISR: Final = 7
STOP_REPLICA: Final = 4
UPDATE_METADATA: Final = 8
MANY: Final = 2_500
"""Invented partitions in a large command: more than a broker looks up in one step."""


def forge(cluster: SimulatedCluster, machine: Machine, partition: TopicPartition) -> None:
    """Send one command to a broker, and ignore the response."""
    forger = _Forger(cluster, machine, partition)
    request, version = cluster.rng.choice((forger.stop, forger.roles, forger.metadata))()
    kind = type(request).__name__.removesuffix("Request")
    cluster.recording.emit("said", text=f"a client sends a forged {kind} to {machine.host}")

    async def send() -> None:
        client = cluster.client("stranger")
        try:
            await client.ask(machine.number, request, version, Response)
        except FAILURES:
            return

    cluster.spawn(send())


class _Forger:
    """The stranger's information and guesses."""

    def __init__(
        self, cluster: SimulatedCluster, machine: Machine, partition: TopicPartition
    ) -> None:
        self._rng: Random = cluster.rng
        self._partition = partition
        self._machines = list(cluster.machines)
        nodes = cluster.server.tree.nodes
        epoch = nodes.get(paths.CONTROLLER_EPOCH)
        known = 0
        if epoch is not None:
            known = decode_controller_epoch(paths.CONTROLLER_EPOCH, epoch.data)
        self._controller_epoch = self._rng.choice((known, known + 1, FAR))
        controller = self._rng.choice(self._machines)
        registered = nodes.get(paths.broker_id(machine.number))
        right = registered.created if registered is not None else 0
        self._sender: dict[str, Any] = {
            "controller_id": controller,
            "controller_epoch": self._controller_epoch,
            "broker_epoch": self._rng.choice((right, right, right + 1)),
        }
        topic = nodes[paths.topic(partition.topic)]
        self._topic_id = decode_topic(paths.topic(partition.topic), topic.data).topic_id
        state = cluster.state(partition)
        assert state is not None
        later = self._rng.choice((0, 1, FAR))
        self._leader_epoch = state.leader_epoch + later
        self._partition_epoch = state.partition_epoch + self._rng.choice((0, 1, FAR))
        self._leader = self._rng.choice(self._machines)

    def stop(self) -> tuple[Request, int]:
        """StopReplica: the replica must be removed."""
        replica_state = StopReplicaPartitionState(
            partition_index=self._partition.partition,
            leader_epoch=self._rng.choice((DELETED, self._leader_epoch)),
            delete_partition=self._rng.random() < 0.7,
        )
        topic = StopReplicaTopicState(
            topic_name=self._partition.topic, partition_states=[replica_state]
        )
        request = StopReplicaRequest(
            **self._sender,
            topic_states=[topic],
        )
        return request, STOP_REPLICA

    def roles(self) -> tuple[Request, int]:
        """LeaderAndIsr: a leader that was never elected, or another topic id."""
        replica_state = LeaderAndIsrPartitionState(
            partition_index=self._partition.partition,
            controller_epoch=self._controller_epoch,
            leader=self._leader,
            leader_epoch=self._leader_epoch,
            isr=(self._leader,),
            partition_epoch=self._partition_epoch,
            replicas=tuple(self._machines),
        )
        other = self._rng.getrandbits(128).to_bytes(16, "big")
        topic = LeaderAndIsrTopicState(
            topic_name=self._partition.topic,
            topic_id=self._rng.choice((self._topic_id, self._topic_id, other)),
            partition_states=[replica_state],
        )
        leader = LeaderAndIsrLiveLeader(broker_id=self._leader, host_name=NOWHERE, port=1)
        request = LeaderAndIsrRequest(
            **self._sender,
            type=1,
            topic_states=[topic],
            live_leaders=[leader],
        )
        return request, LEADER_AND_ISR

    def metadata(self) -> tuple[Request, int]:
        """UpdateMetadata: other broker addresses; the topic has another leader or is gone."""
        leader = self._rng.choice((DELETED, self._leader))
        topic = UpdateMetadataTopicState(
            topic_name=self._partition.topic,
            topic_id=self._topic_id,
            partition_states=[self._published(self._partition.partition, leader)],
        )
        many = UpdateMetadataTopicState(
            topic_name="made-up",
            topic_id=self._topic_id,
            partition_states=[self._published(index, self._leader) for index in range(MANY)],
        )
        endpoint = UpdateMetadataEndpoint(
            port=1, host=NOWHERE, listener="PLAINTEXT", security_protocol=0
        )
        request = UpdateMetadataRequest(
            **self._sender,
            type=self._rng.choice((1, 2)),
            topic_states=self._rng.choices(([], [topic], [many, topic]), (5, 5, 1))[0],
            live_brokers=[
                UpdateMetadataBroker(id=one, endpoints=[endpoint]) for one in self._machines
            ],
        )
        return request, UPDATE_METADATA

    def _published(self, index: int, leader: int) -> UpdateMetadataPartitionState:
        return UpdateMetadataPartitionState(
            partition_index=index,
            controller_epoch=self._controller_epoch,
            leader=leader,
            leader_epoch=leader if leader == DELETED else self._leader_epoch,
            isr=(self._leader,),
            zk_version=self._partition_epoch,
            replicas=tuple(self._machines),
        )
