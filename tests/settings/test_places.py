"""The effects of the settings of a broker's names, addresses, folders and topics."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cluster import KafkaError
from holdfast.cluster.client.admin import create_topic, delete_topic
from holdfast.cluster.processes.ports import HOST
from holdfast.model import ErrorCode
from holdfast.protocol.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsTopicRequest,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.settings.servers import NAMES, UNSET, Server, Servers
from tests.support.ports import held_port
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

ODD = {
    "node.id": UNSET,
    "broker.id": "1",
    "broker.rack": "cellar",
    "advertised.listeners": "PLAINTEXT://localhost:{port}",
    "log.dirs": UNSET,
    "log.dir": "{folder}/elsewhere",
    "holdfast.trace": "{folder}/trace.jsonl",
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "false",
    "num.partitions": "5",
    "default.replication.factor": "2",
    "max.request.partition.size.limit": "3",
}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Broker 1 has the settings and is the controller; broker 2 has the defaults."""
    servers = Servers(tmp_path_factory.mktemp("places"), ODD, {})
    try:
        servers.start(controller=1)
        yield servers
    finally:
        servers.close()


def test_names_and_addresses(two: Servers) -> None:
    """node.id or broker.id, broker.rack, and advertised.listeners or listeners, in Metadata."""
    known = {one.node_id: one for one in two.metadata(two[2]).brokers}
    assert {number: (one.host, one.rack) for number, one in known.items()} == {
        1: ("localhost", "cellar"),
        2: (HOST, None),
    }
    assert [one.port for one in known.values()] == [two[1].port, two[2].port]


def test_controller_listener_names(tmp_path: Path) -> None:
    """controller.listener.names: the listener of a controller is not opened."""
    with held_port() as other:
        file = {"listeners": f"PLAINTEXT://{HOST}:{{port}},CONTROLLER://{HOST}:{other}"}
        refused = Servers(tmp_path / "refused", file)[1]
        refused.begin()
        wait_until(lambda: not refused.is_running, "two listeners are refused")
        refused.close()
        served = Servers(tmp_path / "served", file | {"controller.listener.names": "CONTROLLER"})
        try:
            served.start()
            with socket.socket() as connection:
                assert connection.connect_ex((HOST, other)) != 0
        finally:
            served.close()


def test_log_dir_and_log_dirs(two: Servers) -> None:
    """log.dir at broker 1, log.dirs at broker 2."""
    topics = {number: two.topic(number) for number in (1, 2)}
    assert (two[1].folder / "elsewhere" / f"{topics[1]}-0").is_dir()
    assert not two[1].log_dir.exists()
    assert (two[2].log_dir / f"{topics[2]}-0").is_dir()


def test_our_own_files(two: Servers) -> None:
    """holdfast.store, holdfast.control and holdfast.trace."""
    folder = two[1].folder
    assert (folder / "store.sqlite").read_bytes().startswith(b"SQLite")
    assert two[1].order("ping") == "pong"
    two[1].order("flush-trace")
    assert "registered" in (folder / "trace.jsonl").read_text(encoding="utf-8")


def test_auto_create_topics_enable(two: Servers) -> None:
    """auto.create.topics.enable=false at broker 1."""

    def error_of(server: Server, name: str) -> ErrorCode:
        asked = [MetadataRequestTopic(name=name)]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=True)
        [response] = server.ask(request, MetadataResponse).topics
        return ErrorCode(response.error_code)

    created = f"created-{next(NAMES)}"
    for _ in range(3):
        assert error_of(two[1], f"{created}-not") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        wait_until(lambda: error_of(two[2], created) is ErrorCode.NONE, "broker 2 creates it")


def test_num_partitions_and_default_replication_factor(two: Servers, pair: Servers) -> None:
    """num.partitions=5 and default.replication.factor=2 against 1 and 1."""
    shapes = []
    for servers in (two, pair):
        name = f"made-{next(NAMES)}"
        with servers.client() as client:
            create_topic(client, name, -1, -1)

            def is_known(servers: Servers = servers, name: str = name) -> bool:
                [found] = servers.metadata(servers[1], name).topics
                return not found.error_code

            wait_until(is_known, "the topic is known")
        [topic] = servers.metadata(servers[1], name).topics
        shapes.append((len(topic.partitions), len(topic.partitions[0].replica_nodes)))
    assert shapes == [(5, 2), (1, 1)]


def test_delete_topic_enable(two: Servers, pair: Servers) -> None:
    """delete.topic.enable=false at the broker that is the controller."""
    kept, gone = two.topic(1), pair.topic(1)
    with two.client() as client, pytest.raises(KafkaError) as refused:
        delete_topic(client, kept)
    assert refused.value.code is ErrorCode.TOPIC_DELETION_DISABLED
    with pair.client() as client:
        delete_topic(client, gone)


def test_max_request_partition_size_limit(two: Servers, pair: Servers) -> None:
    """max.request.partition.size.limit=3: an answer of five partitions has two pages."""
    pages = []
    for servers in (two, pair):
        name = servers.topic(1, partitions=5)
        asked = DescribeTopicPartitionsTopicRequest(name=name)
        request = DescribeTopicPartitionsRequest(topics=[asked])
        answer = servers[1].ask(request, DescribeTopicPartitionsResponse)
        pages.append((len(answer.topics[0].partitions), answer.next_cursor is not None))
    assert pages == [(3, True), (5, False)]
