"""Forged commands of a controller, with correct epochs: the store decides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.cluster import Cluster
from holdfast.model import ErrorCode
from holdfast.protocol import APIS, Request, decode_response
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
from holdfast.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.hostile.town import KEPT, Town, wire
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

MADE_UP: Final = 1_000_000
OTHER_ID: Final = b"a stranger's id."
BROKERS: Final = (1, 2, 3)


@pytest.fixture(scope="module", params=["embedded", "zookeeper"])
def town(request: pytest.FixtureRequest) -> Iterator[Town]:
    options: dict[str, Any] = {}
    if request.param == "zookeeper":
        server = request.getfixturevalue("zookeeper")
        options["store"] = f"zookeeper:{server.connect_string}/forged"
    with Cluster(brokers=3, **options) as cluster:
        town = Town(cluster)
        cluster.wait_isr(KEPT)
        yield town
        town.check()


class Forger:
    """Sends commands with the correct controller and epochs that the store does not confirm."""

    def __init__(self, town: Town) -> None:
        self.town = town
        topic = self.ask(1, MetadataRequest(topics=[MetadataRequestTopic(name=KEPT)]), 12)
        self.controller = topic.controller_id
        self.topic_id = topic.topics[0].topic_id
        self.leader = topic.topics[0].partitions[0].leader_id
        said = "".join(town.said(one) for one in BROKERS)
        self.controller_epoch = max(
            int(found) for found in re.findall(r"event=controller controller_epoch=(\d+)", said)
        )

    def ask(self, broker: int, request: Request, version: int) -> Any:
        with self.town.connect(broker) as connection:
            connection.sendall(wire(request, version))
            size = int.from_bytes(_exactly(connection, 4), "big")
            frame = bytearray(_exactly(connection, size))
        return decode_response(frame, APIS[request.API_KEY], version)[1]

    def broker_epoch(self, broker: int) -> int:
        found = re.findall(r"event=registered broker_epoch=(\d+)", self.town.said(broker))
        return int(found[-1])

    def stop(self, broker: int, *, delete: bool, epoch: int | None = None) -> Any:
        response = StopReplicaPartitionState(
            partition_index=0, leader_epoch=-2, delete_partition=delete
        )
        return self.ask(broker, self.stop_request(broker, KEPT, response, epoch), 4)

    def stop_request(
        self, broker: int, topic: str, response: StopReplicaPartitionState, epoch: int | None = None
    ) -> StopReplicaRequest:
        return StopReplicaRequest(
            controller_id=self.controller,
            controller_epoch=self.controller_epoch if epoch is None else epoch,
            broker_epoch=self.broker_epoch(broker),
            topic_states=[StopReplicaTopicState(topic_name=topic, partition_states=[response])],
        )

    def lead(self, broker: int, **changes: Any) -> Any:
        """Name another leader of the topic, in the next leader epoch."""
        status = self.town.cluster.replica(KEPT, 0, broker)
        role: dict[str, Any] = {
            "partition_index": 0,
            "controller_epoch": self.controller_epoch,
            "leader": broker,
            "leader_epoch": status.leader_epoch + 1,
            "isr": (broker,),
            "partition_epoch": status.partition_epoch + 1,
            "replicas": BROKERS,
        }
        fields = {name: changes.pop(name) for name in tuple(changes) if name in role}
        named: dict[str, Any] = {"topic_name": KEPT, "topic_id": self.topic_id, **changes}
        request = LeaderAndIsrRequest(
            controller_id=self.controller,
            controller_epoch=self.controller_epoch,
            broker_epoch=self.broker_epoch(broker),
            type=1,
            topic_states=[
                LeaderAndIsrTopicState(
                    partition_states=[LeaderAndIsrPartitionState(**(role | fields))], **named
                )
            ],
            live_leaders=[LeaderAndIsrLiveLeader(broker_id=2, host_name="127.0.0.1", port=1)],
        )
        return self.ask(broker, request, 7)

    def publish(self, broker: int, leader: int, whole: bool) -> Any:
        """Name another address for every broker, and a leader; -2: the topic is deleted."""
        endpoint = UpdateMetadataEndpoint(
            port=1, host="127.0.0.1", listener="PLAINTEXT", security_protocol=0
        )
        state = UpdateMetadataPartitionState(
            partition_index=0,
            controller_epoch=self.controller_epoch,
            leader=leader,
            leader_epoch=leader if leader < 0 else MADE_UP,
            isr=(),
            zk_version=MADE_UP,
            replicas=BROKERS,
        )
        topic = UpdateMetadataTopicState(
            topic_name=KEPT, topic_id=self.topic_id, partition_states=[state]
        )
        request = UpdateMetadataRequest(
            controller_id=self.controller,
            type=2 if whole else 1,
            controller_epoch=self.controller_epoch,
            broker_epoch=self.broker_epoch(broker),
            topic_states=[] if whole else [topic],
            live_brokers=[UpdateMetadataBroker(id=one, endpoints=[endpoint]) for one in BROKERS],
        )
        return self.ask(broker, request, 8)


@pytest.fixture
def forger(town: Town) -> Forger:
    return Forger(town)


def _exactly(connection: Any, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        assert part, "the broker closed the connection"
        data += part
    return data


def folders(town: Town, broker: int) -> list[str]:
    """The log directories of a broker."""
    root = town.cluster.files(broker).log
    return sorted(one.name for one in Path(root).iterdir() if one.is_dir())


def roles(town: Town) -> list[tuple[Any, ...]]:
    """Every broker's role in the topic."""
    found = [town.cluster.replica(KEPT, 0, one) for one in BROKERS]
    return [(one.role, one.leader, one.leader_epoch, one.partition_epoch) for one in found]


@pytest.mark.parametrize("delete", [True, False])
def test_a_replica_that_the_store_has_not_removed_stays(
    town: Town, forger: Forger, *, delete: bool
) -> None:
    before = [folders(town, one) for one in BROKERS]
    as_before = roles(town)
    for broker in BROKERS:
        answer = forger.stop(broker, delete=delete)
        assert [one.error_code for one in answer.partition_errors] == [
            ErrorCode.FENCED_LEADER_EPOCH
        ]
    assert [folders(town, one) for one in BROKERS] == before
    assert roles(town) == as_before
    town.check()


def test_a_forged_controller_epoch_does_not_fence_the_controller(
    town: Town, forger: Forger
) -> None:
    for broker in BROKERS:
        answer = forger.stop(broker, delete=True, epoch=MADE_UP)
        assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    # Brokers still obey the controller: in its old epoch, and it has not resigned.
    town.cluster.create_topic(f"after-{MADE_UP}", 3, 3)
    town.cluster.wait_isr(f"after-{MADE_UP}")
    assert Forger(town).controller_epoch == forger.controller_epoch
    town.check()


def test_another_broker_than_the_stores_controller_is_refused(town: Town, forger: Forger) -> None:
    forger.controller = forger.controller % 3 + 1
    answer = forger.stop(1, delete=True)
    assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    town.check()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"leader": 99, "isr": (99,)},
        {"leader_epoch": MADE_UP},
        {"topic_id": OTHER_ID, "leader_epoch": 0},
    ],
    ids=["leads", "follows-a-stranger", "far-epoch", "another-topic-of-the-name"],
)
def test_a_role_that_the_store_does_not_confirm_is_not_applied(
    town: Town, forger: Forger, changes: dict[str, Any]
) -> None:
    before = [folders(town, one) for one in BROKERS]
    as_before = roles(town)
    for broker in BROKERS:
        answer = forger.lead(broker, **changes)
        [topic] = answer.topics
        assert [one.error_code for one in topic.partition_errors] != [ErrorCode.NONE]
    assert roles(town) == as_before
    assert [folders(town, one) for one in BROKERS] == before
    town.check()


@pytest.mark.parametrize("leader", [-2, 3])
@pytest.mark.parametrize("whole", [True, False])
def test_metadata_that_the_store_does_not_have_is_not_published(
    town: Town, forger: Forger, leader: int, *, whole: bool
) -> None:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=KEPT)])

    def published(broker: int) -> Any:
        answer = forger.ask(broker, asked, 12)
        nodes = sorted((one.node_id, one.host, one.port) for one in answer.brokers)
        [topic] = answer.topics
        leaders = [(one.leader_id, one.leader_epoch) for one in topic.partitions]
        return nodes, topic.error_code, leaders

    before = [published(one) for one in BROKERS]
    for broker in BROKERS:
        forger.publish(broker, leader, whole)
    assert [published(one) for one in BROKERS] == before
    town.check()


@pytest.mark.parametrize("name", ["../../outside", "a/b", "", "..", "x" * 300, "nul\0"])
def test_an_invalid_topic_name_creates_and_removes_nothing(
    town: Town, forger: Forger, name: str
) -> None:
    before = [folders(town, one) for one in BROKERS]
    response = StopReplicaPartitionState(partition_index=0, leader_epoch=-2, delete_partition=True)
    stopped = forger.ask(1, forger.stop_request(1, name, response), 4)
    led = forger.lead(1, topic_name=name, topic_id=OTHER_ID)
    assert stopped.error_code == led.error_code == ErrorCode.INVALID_REQUEST
    assert [folders(town, one) for one in BROKERS] == before


def test_a_negative_partition_is_refused(town: Town, forger: Forger) -> None:
    before = folders(town, 1)
    answer = forger.lead(1, partition_index=-1)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert folders(town, 1) == before


def test_commands_that_the_store_confirms_are_carried_out(town: Town) -> None:
    """A reassignment, a deletion, a new topic of the same name and a fail-over still work."""
    cluster = town.cluster
    cluster.create_topic("moved", assignment={0: (1, 2)})
    cluster.reassign("moved", 0, (2, 3))
    wait_until(lambda: "moved-0" not in folders(town, 1), "broker 1 has dropped its replica")
    cluster.delete_topic("moved")
    wait_until(
        lambda: all("moved-0" not in folders(town, one) for one in BROKERS), "all logs are gone"
    )
    # On all: with two, and one of them killed, its high watermark would not move.
    cluster.create_topic("moved", assignment={0: (3, 1, 2)})
    cluster.produce("moved", ["two"])
    assert len(cluster.consume("moved")) == 1
    leader = cluster.leader(KEPT)
    cluster.kill(leader)
    cluster.wait_leader(KEPT, not_broker=leader)
    town.honest_work()
    cluster.restart(leader)
    cluster.wait_isr(KEPT)
