"""The console against Apache Kafka: what its APIs tell, and nothing that they do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from holdfast.cluster.client.client import addresses
from holdfast.web.console.hub import Hub
from holdfast.web.console.watcher import Watcher
from tests.support.brokers import QUIET
from tests.support.kafka_brokers import KafkaBrokers
from tests.support.waiting import wait_until
from tests.unit.storage import kafka

pytestmark = pytest.mark.slow
RECORDS = 20


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBrokers]:
    """Three nodes and a topic with one partition, led by 2 in epoch 0 with 20 records."""
    kafka.libraries()
    settings = {"min.insync.replicas": "2", "offsets.topic.num.partitions": "1"}
    cluster = KafkaBrokers(tmp_path_factory.mktemp("kafka"), settings)
    try:
        cluster.start()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
        topic = NewTopic("flights", 1, replica_assignment=[[2, 3, 1]])
        admin.create_topics([topic])["flights"].result(120)
        send(cluster)
        yield cluster
    finally:
        cluster.close()


def send(cluster: KafkaBrokers) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **QUIET})
    for number in range(RECORDS):
        producer.produce("flights", str(number).encode())
    assert producer.flush(120) == 0


@pytest.fixture
def watcher(brokers: KafkaBrokers) -> Iterator[Watcher]:
    one = Watcher(addresses(brokers.bootstrap), None, Hub())
    yield one
    one.close()


def test_leaders_isr_sizes_and_settings_are_read(watcher: Watcher) -> None:
    watcher.observe()
    seen = watcher.seen
    partition = seen.partitions["flights-0"]
    assert not seen.is_holdfast
    assert (partition.leader, partition.isr, partition.eligible) == (2, (2, 3, 1), ())
    assert (partition.start, partition.end) == (0, RECORDS)
    assert seen.topics["flights"].min_insync == 2
    assert all(copy.bytes for copy in partition.copies.values())
    copy = partition.copies[1]
    assert (copy.log_end, copy.at_least, copy.flushed) == (RECORDS, True, None)


def test_epochs_of_records_come_from_the_leader_after_an_election(
    brokers: KafkaBrokers, watcher: Watcher
) -> None:
    watcher.observe()
    watcher.lanes("flights-0", 0)
    brokers.kill(2)

    def led() -> bool:
        watcher.observe()
        return watcher.seen.partitions["flights-0"].leader == 3

    wait_until(led, "3 leads")
    send(brokers)

    pictures: list[dict[str, Any]] = []

    def shows(words: str) -> bool:
        watcher.observe()
        _, picture = watcher.lanes("flights-0", 0)
        if picture is None:
            return False
        pictures.append(picture)
        return words in "".join(picture["wide"]["parts"])

    last = 2 * RECORDS - 1
    wait_until(lambda: shows(f"{last}: offset {last}, epoch 1, committed<"), "all is drawn")
    picture = pictures[-1]
    wide = "".join(picture["wide"]["parts"])
    assert f"<title>{RECORDS - 1}: offset {RECORDS - 1}, epoch 0, committed</title>" in wide
    assert "on disk" not in wide, "Kafka's APIs do not tell what is flushed"
    rows = {row["broker"]: row for row in picture["table"]}
    assert (rows[2]["state"], rows[2]["in_isr"]) == ("offline", False)
    assert (rows[1]["hw"], rows[1]["flushed"], rows[1]["epoch"]) == (None, None, None)
