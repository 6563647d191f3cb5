"""The cluster that all clients share, and helpers that do not use the client under test.

kafka-python creates topics, librdkafka sends records, and our own reader reads a broker's files.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from confluent_kafka import KafkaError, Message, Producer

from holdfast.protocol.records import RecordBatchHeader, batches, read_records
from tests.clients.adapters.kafka_library import (
    KafkaAdminClient,
    NewTopic,
    TopicPartition,
    kafka_errors,
)
from tests.clients.client import Placed, Read, Record
from tests.support.brokers import QUIET
from tests.support.waiting import DEADLINE_S, wait_until

NUMBERS = itertools.count(1)
T = TypeVar("T")
_AWAY = (
    kafka_errors.KafkaConnectionError,
    kafka_errors.NodeNotReadyError,
    kafka_errors.UnknownBrokerIdError,
)


class Cluster(Protocol):
    """Brokers of Holdfast or of Kafka."""

    ports: dict[int, int]

    @property
    def bootstrap(self) -> str: ...

    def log_dir(self, broker: int) -> Path: ...


class Kept(NamedTuple):
    """A partition's log in a broker's files."""

    headers: list[RecordBatchHeader]
    records: list[Read]


class World:
    """A running cluster, and helpers to set up tests."""

    def __init__(self, cluster: Cluster) -> None:
        self.bootstrap = cluster.bootstrap
        self.ports = cluster.ports
        self._log_dir = cluster.log_dir
        self._admin = self._connect()
        self._producer = Producer({"bootstrap.servers": self.bootstrap, **QUIET, "linger.ms": 0})

    def _connect(self) -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=self.bootstrap.split(","))

    def close(self) -> None:
        self._admin.close()

    def _ask(self, question: Callable[[KafkaAdminClient], T]) -> T:
        """Ask the controller; connect again if a broker that kafka-python uses has been away."""
        ends = time.monotonic() + DEADLINE_S
        while True:
            try:
                return question(self._admin)
            except _AWAY:
                assert time.monotonic() < ends, "no broker answers"
                self._admin.close()
                self._admin = self._connect()

    def name(self, hint: str) -> str:
        """A unique name."""
        return f"{hint}-{next(NUMBERS)}"

    def topic(
        self,
        hint: str,
        partitions: int = 1,
        *,
        assignment: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> str:
        """A new topic, with a leader for each partition."""
        name = self.name(hint)
        if assignment is None:
            new = NewTopic(name, partitions, len(self.ports), topic_configs=dict(configs or {}))
        else:
            moves = {index: list(brokers) for index, brokers in assignment.items()}
            new = NewTopic(name, replica_assignments=moves, topic_configs=dict(configs or {}))
        self._ask(lambda admin: admin.create_topics([new], raise_errors=True))
        count = partitions if assignment is None else len(assignment)
        self.wait_partitions(name, count)
        return name

    def wait_partitions(self, topic: str, count: int) -> None:
        """Wait until all have leaders and complete ISRs."""

        def is_ready() -> bool:
            found = self.partitions(topic)
            response = self._producer.list_topics(topic, 30).topics[topic]
            return len(found) == len(response.partitions) == count and all(
                one.leader >= 0 and len(one.isr) == len(one.replicas) for one in found.values()
            )

        wait_until(is_ready, f"{topic} has {count} partitions with leaders")

    def partitions(self, topic: str) -> dict[int, Placed]:
        """From the controller's broker; empty if there is no such topic."""
        [response] = self._ask(lambda admin: admin.describe_topics([topic]))
        return {
            one["partition_index"]: Placed(
                one["leader_id"], tuple(one["replica_nodes"]), tuple(one["isr_nodes"])
            )
            for one in response["partitions"]
        }

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Returns when the replicas are as wanted."""
        place = TopicPartition(topic, partition)
        moves = {place: list(replicas)}
        assert self._ask(lambda admin: admin.alter_partition_reassignments(moves)) == {place: None}
        self.wait_replicas(topic, partition, replicas)

    def wait_replicas(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        def is_moved() -> bool:
            found = self.partitions(topic)[partition]
            return found.replicas == tuple(replicas) and set(found.isr) == set(replicas)

        wait_until(is_moved, f"{topic}-{partition} is on {tuple(replicas)}")

    def send(self, topic: str, partition: int, records: Sequence[Record]) -> None:
        """Returns when all are acknowledged."""
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        for record in records:
            self._producer.produce(
                topic,
                record.value,
                record.key,
                partition,
                timestamp=record.timestamp if record.timestamp is not None else now_ms(),
                headers=list(record.headers),
                on_delivery=delivered,
            )
        assert self._producer.flush(60) == 0
        assert not failed

    def send_values(self, topic: str, partition: int, values: Sequence[bytes]) -> None:
        self.send(topic, partition, [Record(value=value) for value in values])

    def kept(self, broker: int, topic: str, partition: int) -> Kept:
        """The log of a partition in a broker's files."""
        headers, records = [], []
        for file in sorted(self.folder(broker, topic, partition).glob("*.log")):
            for batch in batches(file.read_bytes(), partial_end=True):
                assert batch.crc_matches()
                headers.append(batch.header)
                for one in read_records(batch):
                    pairs = tuple((name, _copied(value)) for name, value in one.headers)
                    key, value = _copied(one.key), _copied(one.value)
                    records.append(Read(one.offset, one.timestamp, key, value, pairs))
        return Kept(headers, records)

    def folder(self, broker: int, topic: str, partition: int) -> Path:
        """The folder of a partition."""
        return self._log_dir(broker) / f"{topic}-{partition}"

    def has_log(self, broker: int, topic: str, partition: int) -> bool:
        return self.folder(broker, topic, partition).exists()

    def kept_by_all(self, topic: str, partition: int, count: int) -> Kept:
        """The same in every broker's files, once all hold so many records."""

        def hold_all() -> bool:
            return all(
                len(self.kept(broker, topic, partition).records) >= count for broker in self.ports
            )

        wait_until(hold_all, f"every replica of {topic}-{partition} holds {count} records")
        first, *others = [self.kept(broker, topic, partition) for broker in self.ports]
        assert all(other == first for other in others)
        assert len(first.records) == count
        return first


def now_ms() -> int:
    """As producers stamp records."""
    return time.time_ns() // 1_000_000


def _copied(view: memoryview | bytes | None) -> bytes | None:
    return None if view is None else bytes(view)
