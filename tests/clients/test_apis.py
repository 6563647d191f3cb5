"""Every served API from a real client: observed on the wire, and by its effect.

Each broker is behind a proxy that records the requests. `apis.txt` names the test in which a
client, or another broker where no client sends it, uses an API.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from holdfast.cluster.processes.ports import HOST
from holdfast.protocol import Request
from holdfast.protocol.messages.api_versions import ApiVersionsRequest
from holdfast.protocol.messages.cluster import DescribeClusterRequest, DescribeLogDirsRequest
from holdfast.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from holdfast.protocol.messages.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from holdfast.protocol.messages.control import (
    AlterPartitionRequest,
    ControlledShutdownRequest,
    GetReplicaLogInfoRequest,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from holdfast.protocol.messages.fetch import FetchRequest
from holdfast.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from holdfast.protocol.messages.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from holdfast.protocol.messages.metadata import DescribeTopicPartitionsRequest, MetadataRequest
from holdfast.protocol.messages.offsets import (
    DeleteRecordsRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from holdfast.protocol.messages.produce import ProduceRequest
from holdfast.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from holdfast.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from holdfast.protocol.messages.transactions import InitProducerIdRequest
from tests.clients import admin_cases, cases, group_cases
from tests.clients.adapters.aio import Aio
from tests.clients.adapters.confluent import Confluent
from tests.clients.adapters.kafka_library import KafkaAdminClient
from tests.clients.adapters.kafka_library import TopicPartition as Place
from tests.clients.adapters.kafka_python import KafkaPython
from tests.clients.conftest import SETTINGS
from tests.clients.world import World
from tests.settings.proxy import Proxy
from tests.settings.servers import Servers
from tests.support.brokers import QUIET
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

BROKER = "holdfast-broker-"
THREE = (1, 2, 3)


class Watched:
    """Three brokers, each behind a proxy: the cluster interface of `World`."""

    def __init__(self, folder: Path) -> None:
        self.servers = Servers(folder, *(SETTINGS,) * len(THREE))
        self.proxies = {number: Proxy(self.servers[number].port) for number in THREE}
        self.ports = {number: proxy.port for number, proxy in self.proxies.items()}
        for number, port in self.ports.items():
            self.servers[number].settings["advertised.listeners"] = f"PLAINTEXT://{HOST}:{port}"

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.ports.values())

    def log_dir(self, broker: int) -> Path:
        return self.servers[broker].log_dir

    def close(self) -> None:
        self.servers.close()
        for proxy in self.proxies.values():
            proxy.close()

    def _sent(self, *, by_brokers: bool) -> set[type[Request]]:
        return {
            type(request)
            for proxy in self.proxies.values()
            for client, request in tuple(proxy.seen)
            if client.startswith(BROKER) is by_brokers
        }

    def clients_sent(self, *kinds: type[Request]) -> None:
        """A client has sent each of these since the test began."""
        assert set(kinds) <= self._sent(by_brokers=False)

    def brokers_sent(self, *kinds: type[Request]) -> None:
        """A broker has sent each of these to another."""
        assert set(kinds) <= self._sent(by_brokers=True)


@pytest.fixture(scope="module")
def all_watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    made = Watched(tmp_path_factory.mktemp("apis"))
    try:
        made.servers.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def watched(all_watched: Watched) -> Watched:
    for proxy in all_watched.proxies.values():
        proxy.seen.clear()
    return all_watched


@pytest.fixture(scope="module")
def world(all_watched: Watched) -> Iterator[World]:
    made = World(all_watched)
    yield made
    made.close()


@pytest.fixture(scope="module")
def confluent(world: World) -> Iterator[Confluent]:
    made = Confluent(world.bootstrap)
    yield made
    made.close()


@pytest.fixture
def kafka_python(world: World) -> Iterator[KafkaPython]:
    """A new one for each test: it keeps metadata that lacks a broker that was away."""
    made = KafkaPython(world.bootstrap)
    yield made
    made.close()


def test_records(watched: Watched, world: World, confluent: Confluent) -> None:
    cases.produce("none", confluent, world)
    cases.list_offsets(confluent, world)
    watched.clients_sent(ApiVersionsRequest, MetadataRequest, InitProducerIdRequest)
    watched.clients_sent(ProduceRequest, FetchRequest, ListOffsetsRequest)


def test_leader_epochs(watched: Watched, world: World, kafka_python: KafkaPython) -> None:
    """A consumer asks where the log of a new leader diverges from what it has read."""
    topic = world.topic("epochs", assignment={0: [1, 2, 3]})
    world.send_values(topic, 0, [b"one"])
    consumer = Consumer({"bootstrap.servers": world.bootstrap, "group.id": topic, **QUIET})
    with closing(consumer):
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert [one.value() for one in consumer.consume(1, 60)] == [b"one"]
        world.reassign(topic, 0, [2, 1, 3])
        kafka_python.elect(topic, 0)
        wait_until(lambda: world.partitions(topic)[0].leader == 2, "broker 2 leads")
        world.send_values(topic, 0, [b"two"])
        assert [one.value() for one in consumer.consume(1, 60)] == [b"two"]
    watched.clients_sent(OffsetForLeaderEpochRequest)


def test_groups(watched: Watched, world: World, kafka_python: KafkaPython) -> None:
    group_cases.group_resumes(kafka_python, world)
    watched.clients_sent(FindCoordinatorRequest, JoinGroupRequest, SyncGroupRequest)
    watched.clients_sent(HeartbeatRequest, LeaveGroupRequest)
    watched.clients_sent(OffsetCommitRequest, OffsetFetchRequest)


def test_administration_of_groups(watched: Watched, world: World, confluent: Confluent) -> None:
    group_cases.group_admin(confluent, world)
    group_cases.delete_group(confluent, world)
    watched.clients_sent(ListGroupsRequest, DescribeGroupsRequest, DeleteGroupsRequest)


def test_single_offsets_are_deleted(watched: Watched, world: World) -> None:
    topic, group = world.topic("committed"), world.name("group")
    config = {"bootstrap.servers": world.bootstrap, "group.id": group, **QUIET}
    with closing(Consumer(config)) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
        admin = KafkaAdminClient(bootstrap_servers=world.bootstrap.split(","))
        with closing(admin):
            admin.delete_group_offsets(group, [Place(topic, 0)])
        [left] = consumer.committed([TopicPartition(topic, 0)], 60)
        assert left.offset < 0
    watched.clients_sent(OffsetDeleteRequest)


def test_topics(watched: Watched, world: World, confluent: Confluent) -> None:
    admin_cases.create_and_delete_topic(confluent, world)
    admin_cases.create_partitions(confluent, world)
    admin_cases.delete_records(confluent, world)
    admin_cases.drop_topic_configs(confluent, world)
    watched.clients_sent(CreateTopicsRequest, DeleteTopicsRequest, CreatePartitionsRequest)
    watched.clients_sent(DeleteRecordsRequest)
    watched.clients_sent(DescribeConfigsRequest, IncrementalAlterConfigsRequest)
    # The controller's requests to brokers.
    watched.brokers_sent(LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest)


def test_settings_changed_by_old_clients(watched: Watched, world: World) -> None:
    with closing(Aio(world.bootstrap)) as aiokafka:
        admin_cases.topic_configs(aiokafka, world)
    watched.clients_sent(AlterConfigsRequest)


def test_replicas(watched: Watched, world: World, kafka_python: KafkaPython) -> None:
    admin_cases.elect_leaders(kafka_python, world)
    admin_cases.reassign_partitions(kafka_python, world)
    admin_cases.describe_log_dirs(kafka_python, world)
    with closing(KafkaAdminClient(bootstrap_servers=world.bootstrap.split(","))) as admin:
        assert not admin.list_partition_reassignments()
        controller = admin.describe_cluster()["controller_id"]
    watched.clients_sent(ElectLeadersRequest, AlterPartitionReassignmentsRequest)
    watched.clients_sent(DescribeLogDirsRequest, ListPartitionReassignmentsRequest)
    # A new replica that has caught up is in the ISR because its leader proposed it. A leader that
    # is the controller itself sends no request.
    leader = next(one for one in THREE if one != controller)
    topic = world.topic("joined", assignment={0: [leader]})
    kafka_python.reassign(topic, 0, [leader, controller])
    world.wait_replicas(topic, 0, [leader, controller])
    watched.brokers_sent(AlterPartitionRequest)


def test_the_cluster(watched: Watched, world: World, kafka_python: KafkaPython) -> None:
    admin_cases.describe_cluster(kafka_python, world)
    watched.clients_sent(DescribeClusterRequest)


def test_topics_page_by_page(watched: Watched, world: World) -> None:
    topic = world.topic("pages", 3)
    with closing(KafkaAdminClient(bootstrap_servers=world.bootstrap.split(","))) as admin:
        response = admin.describe_topic_partitions([topic], response_partition_limit=2)
    assert [len(one["partitions"]) for one in response["topics"]] == [2]
    assert response["next_cursor"]["partition_index"] == 2
    watched.clients_sent(DescribeTopicPartitionsRequest)


def test_a_stopping_broker_moves_its_leaderships(watched: Watched, world: World) -> None:
    controller = watched.servers.controller().number
    leader, other = (number for number in THREE if number != controller)
    topic = world.topic("handed-over", assignment={0: [leader, other]})
    watched.servers[leader].stop()
    wait_until(lambda: world.partitions(topic)[0].leader == other, f"broker {other} leads")
    watched.brokers_sent(ControlledShutdownRequest)
    watched.servers[leader].start()
    wait_until(lambda: len(world.partitions(topic)[0].isr) == 2, "it is back")


def test_brokers_that_were_all_killed_compare_their_logs(watched: Watched, world: World) -> None:
    """No replica is known to be complete: the controller asks each broker for its log end."""
    topic = world.topic("compared", assignment={0: [1, 2, 3]})
    world.send_values(topic, 0, [b"kept"])
    for number in THREE:
        watched.servers[number].kill()
    watched.servers.start()
    world.wait_partitions(topic, 1)
    watched.brokers_sent(GetReplicaLogInfoRequest)
    assert world.kept_by_all(topic, 0, 1).records[0].value == b"kept"
