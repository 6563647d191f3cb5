"""One cluster for all clients: three broker processes a test run.

HOLDFAST_CLIENTS_AGAINST=kafka runs the same checklist against Apache Kafka, to tell a wrong
expectation from a wrong broker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.clients.world import World
from tests.support.brokers import Brokers
from tests.support.kafka_brokers import KafkaBrokers

SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "auto.create.topics.enable": "false",
    # A test says when the preferred leader is elected; nobody waits for more members of a group.
    "auto.leader.rebalance.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "3",
    "log.segment.delete.delay.ms": "100",
}
COMPLAINTS = ("Traceback", " error ")


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The shared cluster; brokers that complained of themselves fail the run."""
    folder = tmp_path_factory.mktemp("clients")
    if os.environ.get("HOLDFAST_CLIENTS_AGAINST") == "kafka":
        kafka = KafkaBrokers(folder, SETTINGS)
        try:
            kafka.start()
            yield from _world(kafka)
        finally:
            kafka.stop()
        return
    brokers = Brokers(folder, SETTINGS)
    try:
        brokers.start()
        yield from _world(brokers)
    finally:
        brokers.stop()
    said = brokers.said()
    assert not any(word in said for word in COMPLAINTS), said


def _world(cluster: Brokers | KafkaBrokers) -> Iterator[World]:
    world = World(cluster)
    yield world
    world.close()
