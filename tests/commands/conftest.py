"""One Holdfast and one Apache Kafka for all tests of commands: they use their own topics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.cluster import Cluster
from tests.commands.shell import Shell
from tests.support.kafka_brokers import KafkaBrokers

KAFKA = {
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "default.replication.factor": "2",
    "broker.rack": "r1",
}


@pytest.fixture(scope="session")
def holdfast() -> Iterator[Shell]:
    """Three brokers."""
    with Cluster(brokers=3, config={"broker.rack": "r1"}) as cluster:
        yield Shell(cluster.bootstrap, cluster.brokers, "holdfast")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Two brokers of Apache Kafka."""
    brokers = KafkaBrokers(tmp_path_factory.mktemp("kafka"), KAFKA, count=2)
    try:
        brokers.start()
        yield Shell(brokers.bootstrap, tuple(brokers.ports), "kafka")
    finally:
        brokers.close()


@pytest.fixture(params=["holdfast", "kafka"])
def shell(request: pytest.FixtureRequest) -> Shell:
    """Each of them."""
    found: Shell = request.getfixturevalue(request.param)
    return found
