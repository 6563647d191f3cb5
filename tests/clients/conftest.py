"""One cluster for the checklist of all clients.

Tests use their own topics and groups. HOLDFAST_CLIENTS_AGAINST=kafka runs the checklist against
Apache Kafka, to distinguish a wrong expectation from a wrong broker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.clients.world import Cluster, World
from tests.support.brokers import Brokers
from tests.support.kafka_brokers import KafkaBrokers

SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "auto.create.topics.enable": "false",
    # Tests elect preferred leaders themselves, and groups do not wait for more members.
    "auto.leader.rebalance.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "3",
    "log.segment.delete.delay.ms": "100",
}
COMPLAINTS = ("Traceback", " error ")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers for the checklist; their warnings and errors fail the run."""
    folder = tmp_path_factory.mktemp("clients")
    is_kafka = os.environ.get("HOLDFAST_CLIENTS_AGAINST") == "kafka"
    cluster = KafkaBrokers(folder, SETTINGS) if is_kafka else Brokers(folder, SETTINGS)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
    if isinstance(cluster, Brokers):
        said = "".join(cluster.log(number) for number in cluster.ports)
        assert not any(word in said for word in COMPLAINTS), said


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[World]:
    """Per file: kafka-python's thread uses global randomness, which Hypothesis forbids."""
    made = World(cluster)
    yield made
    made.close()
