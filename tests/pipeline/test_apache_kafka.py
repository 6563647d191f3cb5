"""Ledger, ingest, logs, audit and advice with Apache Kafka in the place of our brokers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from holdfast.ledger import LedgerProducer
from holdfast.pipeline.audit.causes.kinds import UNKNOWN_CAUSE
from holdfast.pipeline.audit.findings import Exit
from tests.support.brokers import QUIET
from tests.support.kafka_brokers import KafkaBrokers
from tests.support.spark import SMALL_OPTIONS
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "log.segment.bytes": "1048576",
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBrokers]:
    brokers = KafkaBrokers(tmp_path_factory.mktemp("kafka"), SETTINGS)
    try:
        brokers.start()
        yield brokers
    finally:
        brokers.close()


def holdfast(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


class Place:
    """A topic of one partition, and what producers were promised."""

    def __init__(
        self, kafka: KafkaBrokers, folder: Path, topic: str, replicas: list[int], **config: str
    ) -> None:
        self.kafka = kafka
        self.folder = folder
        self.topic = topic
        self.replicas = replicas
        self.admin = AdminClient({"bootstrap.servers": kafka.bootstrap, **QUIET})
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(topic, 1, replica_assignment=[replicas], config=settings)
        self.admin.create_topics([new])[topic].result(60)
        self.wait_in_sync()

    def wait_in_sync(self) -> None:
        wait_until(lambda: self.isr() == set(self.replicas), "all are in sync", 120)

    def _partition(self) -> Any:
        return self.admin.list_topics(self.topic, 30).topics[self.topic].partitions.get(0)

    def leader(self) -> int:
        return int(self._partition().leader)

    def isr(self) -> set[int]:
        known = self._partition()
        return set(known.isrs) if known is not None else set()

    def producer(self, **config: str) -> LedgerProducer:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        servers = {"bootstrap.servers": self.kafka.bootstrap}
        return LedgerProducer({**servers, **QUIET, **settings}, ledger=self.folder / "ledger")

    def send(self, producer: LedgerProducer, first: int, last: int) -> None:
        """Returns when all have their answers."""
        for number in range(first, last):
            producer.produce(self.topic, f"record {number}".encode(), str(number % 7).encode())
        assert producer.flush(120) == 0

    def ingest(self) -> None:
        done = holdfast(
            *("ingest", "-b", self.kafka.bootstrap, "--topic", self.topic),
            *("--table", str(self.folder / "table"), "--master", "local[2]", *SMALL_OPTIONS),
        )
        assert done.returncode == 0, done.stderr

    def audit(self, *more: str) -> tuple[int, dict[str, Any]]:
        logs = ",".join(f"b{one}={self.kafka.log_dir(one)}" for one in self.kafka.ports)
        done = holdfast(
            *("audit", "run", "--ledger", str(self.folder / "ledger"), "--logs", logs),
            *("--json", "--master", "local[2]", *SMALL_OPTIONS, *more),
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


def test_advice_is_asked_of_its_settings(kafka: KafkaBrokers, tmp_path: Path) -> None:
    Place(kafka, tmp_path, "asked", [1, 2], min_insync_replicas="2", flush_messages="1")
    words = ("--topic", "asked", "--failures", "1", "--json")
    done = holdfast("advise", "-b", kafka.bootstrap.split(",", maxsplit=1)[0], *words)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["replicas"] == 2
    assert told["settings"]["min_insync_replicas"] == "2"
    assert told["settings"]["flush"] == "every-append"
    assert told["settings"]["unclean"] == "off"


def test_a_killed_broker_costs_nothing(kafka: KafkaBrokers, tmp_path: Path) -> None:
    place = Place(kafka, tmp_path, "kept", [1, 2, 3], min_insync_replicas="2")
    producer = place.producer(enable_idempotence="true")
    place.send(producer, 0, 20_000)
    leader = place.leader()
    for number in range(20_000, 30_000):
        producer.produce("kept", f"record {number}".encode(), str(number % 7).encode())
    kafka.kill(leader)
    place.send(producer, 30_000, 40_000)
    kafka.run(leader)
    place.wait_in_sync()
    place.ingest()
    code, told = place.audit("--table", str(tmp_path / "table"))
    verdict = told["verdict"]
    assert (code, told["findings"], told["missing"]) == (Exit.GOOD, [], [])
    assert verdict["acked"] == verdict["in_table"] == 40_000
    assert verdict["found"] == {"b1": 40_000, "b2": 40_000, "b3": 40_000}


def test_an_unclean_election_is_reported_to_the_record(kafka: KafkaBrokers, tmp_path: Path) -> None:
    # Broker 3 has no copy: it votes for the controller while one of the others is down.
    place = Place(
        kafka,
        tmp_path,
        "lost",
        [1, 2],
        min_insync_replicas="1",
        unclean_leader_election_enable="true",
    )
    producer = place.producer(acks="all")
    place.send(producer, 0, 1_000)
    leader = place.leader()
    [follower] = {1, 2} - {leader}
    kafka.kill(follower)
    wait_until(lambda: place.isr() == {leader}, "the follower is out of sync", 120)
    place.send(producer, 1_000, 1_300)
    kafka.kill(leader)
    kafka.run(follower)
    wait_until(lambda: place.leader() == follower, "the follower leads", 120)
    place.send(producer, 1_300, 1_400)
    kafka.run(leader)
    place.wait_in_sync()
    code, told = place.audit()
    assert code == Exit.LOSS
    assert told["verdict"]["lost"] == 300
    lost = [one for one in told["findings"] if one["kind"] == "lost"]
    # Where the new leader has written since, other records stand; behind that its log ends.
    spans = sorted((one["offset"], one["last_offset"]) for one in lost)
    assert spans == [(1_000, 1_099), (1_100, 1_299)]
    written_over, tail = sorted(lost, key=lambda one: int(one["offset"]))
    assert "unclean" in written_over["cause"]["sentence"].lower()
    remedy = {"setting": "unclean.leader.election.enable", "value": "false"}
    assert written_over["remedy"] == remedy
    # Nothing stands there now, and the files do not tell an election from a lost flush: no guess.
    assert tail["cause"]["kind"] == UNKNOWN_CAUSE
    assert tail["remedy"] is None
