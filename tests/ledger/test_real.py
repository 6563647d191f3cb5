"""Ledgers of clients of real brokers, some of them killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, Message, TopicPartition
from google_crc32c import value as crc32c

from holdfast.cluster import Cluster
from holdfast.ledger import (
    LedgerConsumer,
    LedgerProducer,
    read_committed,
    read_consumed,
    read_ledger,
)
from tests.ledger.writing import rows_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow
SENDER = Path(__file__).with_name("sender.py")
PARTITIONS = 3
Place = tuple[int, int]
Maker = Callable[..., LedgerConsumer]


@pytest.fixture
def cluster(holdfast_cluster: Cluster) -> Cluster:
    holdfast_cluster.create_topic("t", partitions=PARTITIONS)
    holdfast_cluster.wait_isr("t")
    return holdfast_cluster


def acknowledged(folder: Path) -> int:
    if not folder.is_dir():
        return 0
    batches = read_ledger(folder, columns=["result"])
    return sum(batch["result"].to_pylist().count("acked") for batch in batches)


def kept(cluster: Cluster) -> dict[Place, int]:
    """Checksums of all values that the brokers have."""
    return {
        (partition, offset): crc32c(value or b"")
        for partition in range(PARTITIONS)
        for offset, value in enumerate(cluster.consume("t", partition))
    }


def test_a_killed_producer_leaves_a_true_ledger(cluster: Cluster, tmp_path: Path) -> None:
    for _ in range(3):
        wanted = acknowledged(tmp_path / "ledger") + 5000
        command = [sys.executable, str(SENDER), cluster.bootstrap, str(tmp_path / "ledger"), "t"]
        sender = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            wait_until(
                lambda: acknowledged(tmp_path / "ledger") >= wanted,  # noqa: B023
                f"{wanted} acknowledged records",
            )
        finally:
            sender.kill()
            sender.wait(60)
    rows = rows_of(tmp_path / "ledger")
    found = kept(cluster)
    by_place = {(row["partition"], row["offset"]): row for row in rows if row["result"] == "acked"}
    for place, row in by_place.items():
        assert found[place] == row["value_crc"]
    unknown = [row["value_crc"] for row in rows if row["result"] == "unknown"]
    assert unknown, "at the kill, some records were in flight"
    for place in found.keys() - by_place.keys():
        unknown.remove(found[place])  # ValueError: the broker has a record that is in no ledger


def test_a_record_that_a_broker_refuses_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create_topic("small", config={"max.message.bytes": "1000"})
    made = LedgerProducer({"bootstrap.servers": cluster.bootstrap}, ledger=tmp_path)
    for value in (b"x" * 5000, b"x"):  # In two batches: a batch is refused as a whole.
        made.produce("small", value)
        assert made.flush(60) == 0
    refused, acked = sorted(rows_of(tmp_path), key=lambda row: -row["value_len"])
    assert (refused["result"], refused["error"]) == ("refused", KafkaError.MSG_SIZE_TOO_LARGE)
    assert (refused["partition"], refused["offset"]) == (0, None)
    assert (acked["result"], acked["offset"]) == ("acked", 0)


# Consumers.


@pytest.fixture
def consumer(cluster: Cluster, tmp_path: Path) -> Iterator[Maker]:
    """Creates consumers, and closes them while the brokers run: librdkafka would wait forever."""
    made: list[LedgerConsumer] = []

    def make(**more: Any) -> LedgerConsumer:
        config = {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        made.append(LedgerConsumer(config, ledger=tmp_path, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


def polled(made: LedgerConsumer, count: int) -> list[Message]:
    found: list[Message] = []

    def enough() -> bool:
        message = made.poll(0.1)
        if message is not None:
            assert message.error() is None
            found.append(message)
        return len(found) >= count

    wait_until(enough, f"{count} messages")
    return found


def table(batches: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [row for batch in batches for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: row["sequence"])


def test_what_was_delivered_processed_and_committed(
    cluster: Cluster, tmp_path: Path, consumer: Maker
) -> None:
    cluster.produce("t", [b"v%d" % number for number in range(10)], key=b"k")
    answered: list[Any] = []
    made = consumer(on_commit=lambda error, _: answered.append(error))
    made.subscribe(["t"])
    messages = polled(made, 10)
    rows = table(read_consumed(tmp_path))
    assert [row["result"] for row in rows] == ["processed"] * 9 + ["delivered"]
    assert [row["offset"] for row in rows] == list(range(10))
    assert [row["value_crc"] for row in rows] == [crc32c(b"v%d" % one) for one in range(10)]
    assert {(row["key_len"], row["leader_epoch"], row["group"]) for row in rows} == {(1, 0, "g")}
    assert len({row["assignment"] for row in rows}) == 1
    assert len({row["poll"] for row in rows}) == 10
    made.commit(message=messages[3], asynchronous=False)
    made.commit(offsets=[TopicPartition("t", 0, 7)])
    wait_until(lambda: made.poll(0.1) is None and bool(answered), "the answer to the second commit")
    made.close()
    assert answered == [None]
    commits = [(row["offset"], row["result"]) for row in table(read_committed(tmp_path))]
    assert commits == [(4, "committed"), (7, "committed")]
    assert table(read_consumed(tmp_path))[-1]["result"] == "processed"


def test_processed_can_be_called_explicitly(
    cluster: Cluster, tmp_path: Path, consumer: Maker
) -> None:
    cluster.produce("t", [b"v%d" % number for number in range(4)])
    made = consumer(explicit=True)
    made.assign([TopicPartition("t", 0, 0)])
    messages = polled(made, 2)
    made.processed(messages[1])
    made.seek(TopicPartition("t", 0, 0))
    polled(made, 1)
    made.close()
    rows = table(read_consumed(tmp_path))
    assert [(row["offset"], row["result"]) for row in rows] == [
        (0, "delivered"),
        (1, "processed"),
        (0, "delivered"),
    ]
    assert [row["assignment"] for row in rows] == [1, 1, 2]


def test_a_commit_that_fails_is_refused(cluster: Cluster, tmp_path: Path, consumer: Maker) -> None:
    made = consumer()
    with pytest.raises(Exception, match=r"UNKNOWN_TOPIC_OR_PART|_UNKNOWN_PARTITION"):
        made.commit(offsets=[TopicPartition("missing", 0, 7)], asynchronous=False)
    made.close()
    [row] = table(read_committed(tmp_path))
    assert (row["offset"], row["result"]) == (7, "refused")
    assert row["error"] is not None


def test_messages_consumed_together_share_a_poll(
    cluster: Cluster, tmp_path: Path, consumer: Maker
) -> None:
    cluster.produce("t", [b"v%d" % number for number in range(4)])
    made = consumer()
    made.assign([TopicPartition("t", 0, 0)])
    found: list[Message] = []

    def enough() -> bool:
        found.extend(made.consume(2, 0.1))
        return len(found) == 4

    wait_until(enough, "4 messages")
    made.close()
    polls = pa.array(row["poll"] for row in table(read_consumed(tmp_path)))
    assert len(polls) == 4
    assert len(polls.unique()) <= 3
