"""A producer's first batch is refused for a moment, and the next one is already on its way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from holdfast.cluster import Client, Cluster
from holdfast.cluster.client.client import Address, Connection
from holdfast.model import ErrorCode
from holdfast.protocol.records import BatchOptions
from tests.real import wire

pytestmark = pytest.mark.slow

MISSING = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
ALL = -1

Send = Callable[[int], tuple[ErrorCode, int]]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, config={"min.insync.replicas": "2"}) as cluster:
        yield cluster


def sender(connection: Connection, topic: str) -> Send:
    """Of one record each, with the sequence number that is asked for."""
    producer_id, epoch = wire.producer_id(connection)

    def send(sequence: int) -> tuple[ErrorCode, int]:
        options = BatchOptions(
            producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )
        records = wire.batch([f"number {sequence}"], options)
        return wire.produce(connection, topic, records, ALL, 10_000)

    return send


def connected(client: Client, cluster: Cluster, broker: int) -> Connection:
    entry = cluster.entry(broker)
    return client.connection(Address(entry.host, entry.port))


def test_while_replicas_are_missing(cluster: Cluster) -> None:
    cluster.create_topic("t", replication_factor=2)
    leader = cluster.leader("t")
    other = next(one for one in cluster.brokers if one != leader)
    cluster.wait_isr("t")
    cluster.kill(other)
    cluster.wait_isr("t", isr=[leader])
    with cluster.client() as client:
        send = sender(connected(client, cluster, leader), "t")
        assert send(0)[0] is ErrorCode.NOT_ENOUGH_REPLICAS
        cluster.restart(other)
        cluster.wait_isr("t")
        assert send(1)[0] is MISSING
        assert [send(0), send(1), send(2)] == [(ErrorCode.NONE, place) for place in range(3)]
    assert cluster.consume("t") == [b"number 0", b"number 1", b"number 2"]


def test_before_the_broker_has_heard_of_the_topic(cluster: Cluster) -> None:
    with cluster.client() as client:
        send = sender(connected(client, cluster, 1), "t")
        assert send(0)[0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        cluster.create_topic("t", assignment={0: [1, 2]})
        cluster.wait_isr("t")
        assert send(1)[0] is MISSING
        assert [send(0), send(1)] == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 1)]
