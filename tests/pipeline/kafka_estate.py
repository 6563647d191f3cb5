"""What one run of Apache Kafka leaves behind: log directories with their past, to plant faults in.

All of it comes from one cluster of three nodes and one row of kills. A snapshot is a copy of the
log directories at a moment; every test spoils a copy of its own.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from holdfast.ledger import LedgerProducer
from holdfast.model import TopicPartition
from holdfast.storage import RealDisk
from holdfast.storage.checkpoints.checkpoint_file import read_offsets
from holdfast.storage.file_names import (
    HIGH_WATERMARKS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    partition_of,
)
from tests.support.brokers import QUIET
from tests.support.kafka_brokers import KafkaBrokers
from tests.support.waiting import wait_until

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "log.segment.bytes": "1048576",
    "log.index.size.max.bytes": "65536",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
}
CHECKPOINTS = (HIGH_WATERMARKS, RECOVERY_POINTS)
KEPT, UNCLEAN_ALL, UNCLEAN_ONE = "kept", "unclean-all", "unclean-one"
ALONE, RECREATED, EXPIRED = "alone", "recreated", "expired"


class Topic:
    """A topic of one partition, and its acknowledged records."""

    def __init__(self, kafka: KafkaBrokers, ledgers: Path, name: str, replicas: list[int]) -> None:
        self.kafka, self.name, self.replicas = kafka, name, replicas
        self.ledger = ledgers / name

    def create(self, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(self.name, 1, replica_assignment=[self.replicas], config=settings)
        there = KafkaError.TOPIC_ALREADY_EXISTS
        self._do(lambda admin: admin.create_topics([new])[self.name], there)
        wait_until(lambda: self.leader() > 0, f"{self.name} has a leader", 120)

    def delete(self) -> None:
        gone = KafkaError.UNKNOWN_TOPIC_OR_PART
        self._do(lambda admin: admin.delete_topics([self.name])[self.name], gone)

    def configure(self, setting: str, value: str) -> None:
        entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, self.name, incremental_configs=[entry])
        self._do(lambda admin: admin.incremental_alter_configs([resource])[resource])

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.kafka.bootstrap, **QUIET})

    def _do(self, ask: Callable[[AdminClient], Any], done: int | None = None) -> None:
        """A client may take a broker that is down for the controller: the next one asks again."""

        def is_done() -> bool:
            admin = self._admin()  # Without it nobody would fetch the answer.
            try:
                ask(admin).result(20)
            except TimeoutError:
                return False
            except KafkaException as error:
                return bool(error.args[0].code() == done)
            return True

        wait_until(is_done, f"{self.name} is as it should be", 180)

    def _partition(self) -> Any:
        try:
            topic = self._admin().list_topics(timeout=10).topics.get(self.name)
        except KafkaException:
            return None
        return None if topic is None else topic.partitions.get(0)

    def leader(self) -> int:
        known = self._partition()
        return -1 if known is None else int(known.leader)

    def isr(self) -> set[int]:
        known = self._partition()
        return set(known.isrs) if known is not None else set()

    def wait_isr(self, *brokers: int) -> None:
        wanted = set(brokers or self.replicas)
        wait_until(lambda: self.isr() == wanted, f"{self.name} has the ISR {wanted}", 120)

    def producer(self, **config: str) -> LedgerProducer:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        servers = {"bootstrap.servers": self.kafka.bootstrap, "batch.num.messages": "50"}
        return LedgerProducer({**servers, **QUIET, **settings}, ledger=self.ledger)

    def send(
        self, first: int, last: int, producer: LedgerProducer | None = None, *, acks: str = "all"
    ) -> None:
        """Returns when all have their answers."""
        producer = producer or self.producer(acks=acks)
        for number in range(first, last):
            producer.produce(self.name, f"record {number}".encode(), str(number % 7).encode())
        assert producer.flush(120) == 0


class Snapshot:
    """The log directories of all brokers at one moment, with the ledgers of all topics."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def logs(self) -> dict[str, Path]:
        return {f"b{one}": self.root / f"broker-{one}" for one in (1, 2, 3)}

    def ledger(self, topic: str) -> Path:
        return self.root / "ledgers" / topic

    def copy(self, to: Path, topic: str) -> Snapshot:
        """Of one topic, to spoil."""

        def others(folder: str, names: list[str]) -> Iterable[str]:
            is_root = Path(folder).parent == self.root and Path(folder).name != "ledgers"
            found = {name: partition_of(name) for name in names} if is_root else {}
            known = {name for name, one in found.items() if one is not None}
            wanted = (f"{topic}-", "__cluster_metadata-")
            return {name for name in known if not name.startswith(wanted)}

        shutil.copytree(self.root, to, ignore=others)
        return Snapshot(to)

    def folder(self, broker: str, topic: str) -> Path:
        return self.logs[broker] / f"{topic}-0"

    def segment(self, broker: str, topic: str, nth: int = 0) -> Path:
        return sorted(self.folder(broker, topic).glob("*.log"))[nth]

    def high_watermark(self, broker: str, topic: str) -> int:
        offsets = read_offsets(RealDisk(self.logs[broker], read_only=True), HIGH_WATERMARKS)
        return offsets.get(TopicPartition(topic, 0), 0)


class Estate:
    """Runs the cluster through its kills, and keeps the snapshots."""

    def __init__(self, kafka: KafkaBrokers, folder: Path) -> None:
        self.kafka, self.folder = kafka, folder
        self.ledgers = folder / "ledgers"
        self.topics: dict[str, Topic] = {}

    def topic(self, name: str, replicas: list[int], **config: str) -> Topic:
        topic = Topic(self.kafka, self.ledgers, name, replicas)
        topic.create(**config)
        topic.wait_isr()
        self.topics[name] = topic
        return topic

    def snapshot(self, name: str) -> Snapshot:
        """Brokers run: checkpoints first, or a log that grows would end before its own."""
        root = self.folder / name
        ignored = shutil.ignore_patterns(".lock", "__consumer_offsets-*", *CHECKPOINTS)
        for broker in self.kafka.ports:
            source, copy = self.kafka.log_dir(broker), root / f"broker-{broker}"
            copy.mkdir(parents=True)
            for checkpoint in CHECKPOINTS:
                shutil.copy2(source / checkpoint, copy)
            shutil.copytree(source, copy, ignore=ignored, dirs_exist_ok=True)
        shutil.copytree(self.ledgers, root / "ledgers")
        return Snapshot(root)

    def wait_checkpointed(self, topic: str, end: int, *brokers: int) -> None:
        """Until the high watermark is in the checkpoints, which are written every five seconds."""
        live = Snapshot(self.kafka.folder)
        for broker in brokers:
            what = f"{broker} checkpoints {topic} at {end}"
            wait_until(partial(self._is_at, live, broker, topic, end), what, 60)

    def _is_at(self, live: Snapshot, broker: int, topic: str, end: int) -> bool:
        return live.high_watermark(f"b{broker}", topic) == end


def expire(topic: Topic, end: int) -> None:
    """Have retention take everything there is, and keep what comes later."""
    topic.configure("retention.ms", "1")
    folder = topic.kafka.log_dir(topic.replicas[0]) / f"{topic.name}-0"
    wait_until((folder / f"{end:020}.log").exists, "retention takes all", 60)
    wait_until(lambda: not (folder / f"{0:020}.log").exists(), "the segment is gone", 60)
    topic.configure("retention.ms", "-1")


def recreate(topic: Topic) -> None:
    """Returns when the leader has the new one."""
    path = topic.kafka.log_dir(topic.replicas[0]) / f"{topic.name}-0" / PARTITION_METADATA
    before = path.read_bytes()
    topic.delete()
    topic.create()
    wait_until(lambda: path.exists() and path.read_bytes() not in (b"", before), "a new id", 60)


def make(kafka: KafkaBrokers, folder: Path) -> dict[str, Snapshot]:
    """Everything that the planted tests need, from one row of kills. Broker 3 is never killed."""
    estate = Estate(kafka, folder)
    kept = estate.topic(KEPT, [1, 2, 3], min_insync_replicas="2")
    lost = [
        estate.topic(name, [1, 2], unclean_leader_election_enable="true")
        for name in (UNCLEAN_ALL, UNCLEAN_ONE)
    ]
    alone = estate.topic(ALONE, [1, 3])
    again = estate.topic(RECREATED, [1, 2, 3])
    expired = estate.topic(EXPIRED, [1, 2, 3])
    kept.send(0, 1_000)
    for topic in (*lost, alone, again):
        topic.send(0, 1_000)
    expired.send(0, 500)
    expire(expired, 500)
    expired.send(500, 900)

    kafka.kill(2)
    for topic in lost:
        topic.wait_isr(1)
    kept.wait_isr(1, 3)
    kept.send(1_000, 2_000)
    recreate(again)
    again.send(5_000, 5_400)
    lost[0].send(1_000, 1_300)
    lost[1].send(1_000, 1_300, acks="1")
    estate.wait_checkpointed(KEPT, 2_000, 1, 3)
    made = {"down": estate.snapshot("down")}

    kafka.signal(3, signal.SIGSTOP)
    alone.send(1_000, 1_300, acks="1")
    kafka.kill(1)
    kafka.signal(3, signal.SIGCONT)
    kafka.run(2)
    for topic in lost:
        wait_until(lambda: topic.leader() == 2, "the follower leads", 120)  # noqa: B023
    wait_until(lambda: alone.leader() == 3, "the other one leads", 120)
    made["before"] = estate.snapshot("before")

    for topic in lost:
        topic.send(1_300, 1_400)
    kafka.run(1)
    for topic in estate.topics.values():
        topic.wait_isr()
    kept.send(2_000, 2_500)
    estate.wait_checkpointed(KEPT, 2_500, 1, 2, 3)
    made["after"] = estate.snapshot("after")
    return made
