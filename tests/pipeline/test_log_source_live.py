"""Logs of running brokers: Holdfast's, and Apache Kafka's with every codec and transactions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from holdfast.cluster import Cluster
from tests.pipeline import log_files as files
from tests.support.waiting import wait_until
from tests.unit.storage import kafka

pytestmark = pytest.mark.slow
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COLUMNS = ("offset", "value", "is_control", "is_transactional", "producer_id", "error")
COUNT = 200


def produce(bootstrap: str) -> None:
    for codec in CODECS:
        settings = {"bootstrap.servers": bootstrap, "compression.type": codec}
        producer = Producer({**settings, "enable.idempotence": True})
        for number in range(COUNT):
            producer.produce("mixed", f"{codec} {number} ".encode() * 5, b"key", partition=0)
        assert producer.flush(60) == 0


def transact(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
    producer.init_transactions(60)
    for number in range(4):
        producer.begin_transaction()
        producer.produce("ended", f"{number}".encode(), partition=0)
        producer.flush(60)
        producer.commit_transaction(60) if number % 2 else producer.abort_transaction(60)


def wait_for_markers(root: Path, count: int) -> None:
    """Kafka answers the end of a transaction before it has written the marker."""

    def markers() -> int:
        return sum(row["is_control"] for row in files.rows(root, "is_control", topics="ended"))

    wait_until(lambda: markers() == count, f"{count} markers")


def check_mixed(root: Path) -> None:
    found = files.rows(root, *COLUMNS, topics="mixed", splitBytes="5000")
    assert [row["value"] for row in found] == [
        f"{codec} {number} ".encode() * 5 for codec in CODECS for number in range(COUNT)
    ]
    assert [row["offset"] for row in found] == list(range(len(CODECS) * COUNT))
    assert len({row["producer_id"] for row in found}) == len(CODECS)


@pytest.fixture(scope="module")
def kafka_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a Kafka that runs."""
    folder = tmp_path_factory.mktemp("kafka")
    with kafka.node(folder) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        topics = [NewTopic("mixed", 1, 1), NewTopic("ended", 1, 1)]
        for future in admin.create_topics(topics).values():
            future.result(60)
        produce(node.bootstrap)
        transact(node.bootstrap)
        wait_for_markers(folder / "data", 4)
        yield folder / "data"


def test_every_codec_of_a_running_kafka(kafka_root: Path) -> None:
    check_mixed(kafka_root)


def test_transactions_of_a_running_kafka(kafka_root: Path) -> None:
    found = files.rows(kafka_root, *COLUMNS, topics="ended")
    assert all(row["is_transactional"] for row in found)
    assert [row["value"] for row in found if not row["is_control"]] == [b"0", b"1", b"2", b"3"]
    assert [row["offset"] for row in found if row["is_control"]] == [1, 3, 5, 7]


def test_nothing_of_a_running_kafka_is_taken_for_damage(kafka_root: Path) -> None:
    """Its own topics too: offsets, transactions, and the metadata log with its odd batches."""
    found = files.rows(kafka_root, "topic", "error")
    assert {row["topic"] for row in found} >= {"__cluster_metadata", "__transaction_state"}
    assert files.errors(found) == []


def test_the_watermark_of_a_running_kafka_is_seen(kafka_root: Path) -> None:
    def is_committed() -> bool:
        found = files.rows(kafka_root, "below_high_watermark", topics="mixed")
        return all(row["below_high_watermark"] for row in found)

    wait_until(is_committed, "the checkpoint, which is written every five seconds")


def test_our_brokers_are_read_while_they_write() -> None:
    with Cluster(brokers=1) as cluster:
        cluster.create_topic("mixed")
        writing = threading.Thread(target=produce, args=(cluster.bootstrap,))
        writing.start()
        try:
            while writing.is_alive():  # Until all is written; whatever is seen is a beginning.
                found = files.rows(cluster.files(1).log, *COLUMNS, topics="mixed")
                assert files.errors(found) == []
                assert files.offsets(found) == list(range(len(found)))
        finally:
            writing.join()
        check_mixed(cluster.files(1).log)
