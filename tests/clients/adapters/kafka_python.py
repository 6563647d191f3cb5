"""kafka-python."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, ClassVar

from holdfast.model import ErrorCode
from tests.clients.adapters.kafka_library import (
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaError,
    KafkaProducer,
    NewTopic,
    TopicPartition,
)
from tests.clients.adapters.polling import PollingMember
from tests.clients.client import (
    Client,
    ClusterSeen,
    GroupSeen,
    How,
    Limits,
    Member,
    Placed,
    Read,
    Record,
    RefusedError,
)

WAIT_S = 60.0
WAIT_MS = 30_000
ERROR = re.compile(r"\[Error (\d+)\]")


class KafkaPython(Client):
    """Uses everything that the library can do."""

    limits: ClassVar = Limits(null_headers=False)

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._servers = {"bootstrap_servers": bootstrap.split(",")}
        self._admin = KafkaAdminClient(**self._servers)

    def close(self) -> None:
        self._admin.close()

    # Records.

    def produce(
        self, topic: str, partition: int, records: Sequence[Record], how: How
    ) -> list[int] | None:
        producer = KafkaProducer(
            **self._servers,
            acks=how.acks,
            compression_type=None if how.compression == "none" else how.compression,
            enable_idempotence=how.is_idempotent,
            linger_ms=20,
            # Without idempotence, only one request in flight keeps the order.
            max_in_flight_requests_per_connection=5 if how.is_idempotent else 1,
        )
        with closing(producer):
            futures = [
                producer.send(
                    topic,
                    value=one.value,
                    key=one.key,
                    headers=list(one.headers),
                    partition=partition,
                    timestamp_ms=one.timestamp,
                )
                for one in records
            ]
            producer.flush(WAIT_S)
            return [future.get(WAIT_S).offset for future in futures]

    def consume(self, topic: str, partition: int, start: int, count: int) -> list[Read]:
        got: list[Read] = []
        place = TopicPartition(topic, partition)
        with closing(KafkaConsumer(**self._servers, group_id=None)) as consumer:
            consumer.assign([place])
            consumer.seek(place, start)
            while len(got) < count:
                polled = consumer.poll(WAIT_MS, max_records=count - len(got))
                assert polled, f"only {len(got)} of {count} records came"
                got += [
                    Read(one.offset, one.timestamp, one.key, one.value, tuple(one.headers))
                    for one in polled[place]
                ]
        return got

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        place = TopicPartition(topic, partition)
        with closing(KafkaConsumer(**self._servers, group_id=None)) as consumer:
            found = consumer.offsets_for_times({place: timestamp})[place]
        return None if found is None else int(found.offset)

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        place = TopicPartition(topic, partition)
        with closing(KafkaConsumer(**self._servers, group_id=None)) as consumer:
            return (
                consumer.beginning_offsets([place])[place],
                consumer.end_offsets([place])[place],
            )

    # Topics.

    def create_topic(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        new = NewTopic(topic, partitions, replicas, topic_configs=dict(configs))
        _ask(lambda: self._admin.create_topics([new]))

    def delete_topic(self, topic: str) -> None:
        _ask(lambda: self._admin.delete_topics([topic]))

    def create_partitions(self, topic: str, total: int) -> None:
        _ask(lambda: self._admin.create_partitions({topic: total}))

    def topics(self) -> dict[str, dict[int, Placed]]:
        return {
            topic["name"]: {
                one["partition_index"]: Placed(
                    one["leader_id"], tuple(one["replica_nodes"]), tuple(one["isr_nodes"])
                )
                for one in sorted(topic["partitions"], key=lambda one: one["partition_index"])
            }
            for topic in self._admin.describe_topics()
        }

    def topic_configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        response = self._admin.describe_configs([resource], config_filter="all")
        return {name: entry["value"] for name, entry in response["topic"][topic].items()}

    def alter_topic_configs(
        self, topic: str, put: Mapping[str, str], drop: Sequence[str] = ()
    ) -> None:
        changes: dict[str, Any] = {name: ("SET", value) for name, value in put.items()}
        changes |= dict.fromkeys(drop, ("DELETE", None))
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, changes)
        outcome = _ask(lambda: self._admin.alter_configs([resource]))["topic"][topic]
        if number := ERROR.match(outcome):
            _check(int(number[1]), outcome)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        place = TopicPartition(topic, partition)
        deleted = _ask(lambda: self._admin.delete_records({place: before}))[place]
        assert deleted["low_watermark"] == before

    # The cluster.

    def cluster(self) -> ClusterSeen:
        response = self._admin.describe_cluster()
        brokers = {one["broker_id"]: one["port"] for one in response["brokers"]}
        return ClusterSeen(response["cluster_id"], response["controller_id"], brokers)

    def log_sizes(self, topic: str) -> dict[tuple[int, int], int]:
        return {
            (response["broker"], one["partition_index"]): one["partition_size"]
            for response in self._admin.describe_log_dirs([topic])
            for folder in response["log_dirs"]
            for found in folder["topics"]
            if found["name"] == topic
            for one in found["partitions"]
        }

    def elect(self, topic: str, partition: int) -> None:
        outcome = _ask(
            lambda: self._admin.elect_leaders(
                ElectionType.PREFERRED, {topic: [partition]}, raise_errors=False
            )
        )
        _check(outcome.replica_election_results[0].partition_result[0].error_code)

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        place = TopicPartition(topic, partition)
        wanted = {place: list(replicas)}
        error = _ask(lambda: self._admin.alter_partition_reassignments(wanted))[place]
        _check(0 if error is None else error.errno)

    # Groups.

    def join(self, group: str, topic: str) -> Member:
        consumer = KafkaConsumer(
            topic,
            **self._servers,
            group_id=group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
        )

        def poll() -> Iterator[bytes]:
            # A poll that ends while SyncGroup is in flight loses the assignment: 50 ms stalls here.
            for records in consumer.poll(1000).values():
                yield from (one.value for one in records)

        def owned() -> list[int]:
            return [place.partition for place in consumer.assignment()]

        return PollingMember(poll, owned, consumer.close)

    def groups(self) -> set[str]:
        return {one["group_id"] for one in self._admin.list_groups()}

    def group(self, group: str) -> GroupSeen:
        response = self._admin.describe_groups([group])[group]
        return GroupSeen(response["group_state"].lower(), len(response["members"]))

    def committed(self, group: str, topic: str) -> dict[int, int]:
        response = self._admin.list_group_offsets({group: None})[group]
        return {
            place.partition: one.offset for place, one in response.items() if place.topic == topic
        }

    def delete_group(self, group: str) -> None:
        outcome = self._admin.delete_groups([group])[group]
        if outcome != "OK":
            raise RefusedError(outcome)


def _ask(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except KafkaError as error:
        _check(getattr(error, "errno", None), str(error))
        raise


def _check(error: Any, message: str = "") -> None:
    if isinstance(error, int) and error:
        raise RefusedError(ErrorCode(error).name, message)
