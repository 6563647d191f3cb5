"""acks=0: a closed connection is the only answer that a client can notice."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from holdfast.cluster import Cluster
from holdfast.protocol import encode_request
from holdfast.protocol.messages.api_versions import ApiVersionsRequest
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.real import wire
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2) as cluster:
        yield cluster


def frame(topic: str, label: str) -> bytes:
    data = PartitionProduceData(index=0, records=wire.batch([label]))
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    request = ProduceRequest(acks=0, timeout_ms=1000, topic_data=topics)
    return b"".join(encode_request(request, wire.BY_NAME, correlation_id=1, client_id="test"))


def asked() -> bytes:
    return b"".join(encode_request(ApiVersionsRequest(), 0, correlation_id=2, client_id="test"))


def answered(cluster: Cluster, *frames: bytes) -> bytes:
    """All that a broker sends before it closes the connection."""
    entry = cluster.entry(1)
    with socket.create_connection((entry.host, entry.port), 60.0) as connection:
        connection.sendall(b"".join(frames))
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_an_error_closes_the_connection_after_the_answers_before_it(cluster: Cluster) -> None:
    cluster.create_topic("here", assignment={0: [1, 2]})
    cluster.produce("here", ["first"])
    before = frame("here", "before")
    got = answered(cluster, before, asked(), frame("unknown", "lost"), asked(), frame("here", "x"))
    assert int.from_bytes(got[:4], "big") == len(got) - 4, "one answer, whole"
    assert cluster.consume("here") == [b"first", b"before"]


def test_a_write_that_fails_closes_the_connection(cluster: Cluster) -> None:
    """The client sends nothing after it, and must notice all the same."""
    cluster.create_topic("failing", assignment={0: [1]})
    cluster.io_error(1, "failing-0")
    assert answered(cluster, frame("failing", "lost")) == b""
    cluster.heal(1)


def test_a_producer_finds_the_new_leader(cluster: Cluster) -> None:
    cluster.create_topic("moved", assignment={0: [1, 2]})
    cluster.wait_isr("moved")
    config = {
        "bootstrap.servers": cluster.bootstrap,
        "acks": "0",
        "linger.ms": 0,
        "topic.metadata.refresh.interval.ms": -1,
        "log_level": 0,
    }
    producer = Producer(config)
    producer.produce("moved", b"before", partition=0)
    wait_until(lambda: cluster.consume("moved") == [b"before"], "the first record")
    cluster.reassign("moved", 0, [2, 1])
    cluster.elect_leader("moved", 0)
    cluster.wait_leader("moved", broker=2)

    def one_more_arrives() -> bool:
        producer.produce("moved", b"after", partition=0)
        producer.flush(1.0)
        return b"after" in cluster.consume("moved")

    wait_until(one_more_arrives, "records at the new leader")
    count = len(cluster.consume("moved"))
    for _ in range(100):
        producer.produce("moved", b"at the new leader", partition=0)
    producer.flush(60.0)
    wait_until(lambda: len(cluster.consume("moved")) >= count + 100, "all hundred")
