"""confluent-kafka: librdkafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from typing import Any, ClassVar

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    ElectionType,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from holdfast.model import ErrorCode
from tests.clients.adapters.polling import PollingMember
from tests.clients.client import (
    Client,
    ClusterSeen,
    GroupSeen,
    How,
    Member,
    Placed,
    Read,
    Record,
    RefusedError,
)
from tests.support.brokers import QUIET

WAIT_S = 60.0


class Confluent(Client):
    """Every admin call that librdkafka has."""

    lacks: ClassVar[Mapping[str, str]] = {
        "describe_log_dirs": "librdkafka has no DescribeLogDirs",
        "reassign_partitions": "librdkafka has no AlterPartitionReassignments",
    }

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._common: dict[str, Any] = {"bootstrap.servers": bootstrap, **QUIET}
        self._admin = AdminClient(self._common)

    # Records.

    def produce(
        self, topic: str, partition: int, records: Sequence[Record], how: How
    ) -> list[int] | None:
        offsets: list[int] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            offset = message.offset()
            offsets.append(-1 if offset is None else offset)

        settings = {"acks": how.acks, "compression.type": how.compression, "linger.ms": 20}
        producer = Producer({**self._common, **settings, "enable.idempotence": how.is_idempotent})
        for one in records:
            producer.produce(
                topic,
                one.value,
                one.key,
                partition,
                timestamp=one.timestamp or 0,  # 0 stands for "now"
                headers=list(one.headers),
                on_delivery=delivered,
            )
        assert producer.flush(WAIT_S) == 0
        return offsets

    def consume(self, topic: str, partition: int, start: int, count: int) -> list[Read]:
        got: list[Read] = []
        with closing(self._consumer()) as consumer:
            consumer.assign([TopicPartition(topic, partition, start)])
            while len(got) < count:
                messages = consumer.consume(count - len(got), WAIT_S)
                assert messages, f"only {len(got)} of {count} records came"
                got += [_read(message) for message in messages]
        return got

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        with closing(self._consumer()) as consumer:
            [found] = consumer.offsets_for_times(
                [TopicPartition(topic, partition, timestamp)], WAIT_S
            )
        return found.offset if found.offset >= 0 else None

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        place = TopicPartition(topic, partition)
        specs: Any = OffsetSpec
        ends = [
            _result(self._admin.list_offsets({place: spec})[place]).offset
            for spec in (specs.earliest(), specs.latest())
        ]
        with closing(self._consumer()) as consumer:
            assert consumer.get_watermark_offsets(place, WAIT_S) == tuple(ends)
        return ends[0], ends[1]

    def _consumer(self, group: str | None = None) -> Consumer:
        settings = {"group.id": group or "nobody", "enable.auto.commit": group is not None}
        timing = {"auto.offset.reset": "earliest", "heartbeat.interval.ms": 200}
        return Consumer({**self._common, **settings, **timing})

    # Topics.

    def create_topic(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        new = NewTopic(topic, partitions, replicas, config=dict(configs))
        _result(self._admin.create_topics([new])[topic])

    def delete_topic(self, topic: str) -> None:
        _result(self._admin.delete_topics([topic])[topic])

    def create_partitions(self, topic: str, total: int) -> None:
        _result(self._admin.create_partitions([NewPartitions(topic, total)])[topic])

    def topics(self) -> dict[str, dict[int, Placed]]:
        return {
            name: {
                index: Placed(one.leader, tuple(one.replicas), tuple(one.isrs))
                for index, one in sorted(topic.partitions.items())
            }
            for name, topic in self._admin.list_topics(timeout=WAIT_S).topics.items()
        }

    def topic_configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = _result(self._admin.describe_configs([resource])[resource])
        return {name: entry.value for name, entry in entries.items()}

    def alter_topic_configs(
        self, topic: str, put: Mapping[str, str], drop: Sequence[str] = ()
    ) -> None:
        changes = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in put.items()
        ]
        changes += [
            ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE) for name in drop
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
        _result(self._admin.incremental_alter_configs([resource])[resource])

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        place = TopicPartition(topic, partition, before)
        deleted = _result(self._admin.delete_records([place])[place])
        assert deleted.low_watermark == before

    # The cluster.

    def cluster(self) -> ClusterSeen:
        response = _result(self._admin.describe_cluster())
        brokers = {node.id: node.port for node in response.nodes}
        return ClusterSeen(response.cluster_id, response.controller.id, brokers)

    def elect(self, topic: str, partition: int) -> None:
        place = TopicPartition(topic, partition)
        outcome = _result(self._admin.elect_leaders(ElectionType.PREFERRED, [place]))
        if outcome[place] is not None:
            raise refused(outcome[place])

    # Groups.

    def join(self, group: str, topic: str) -> Member:
        consumer = self._consumer(group)
        consumer.subscribe([topic])

        def poll() -> Iterator[bytes]:
            for message in consumer.consume(100, 0.05):
                value = _read(message).value
                assert value is not None
                yield value

        def owned() -> list[int]:
            return [place.partition for place in consumer.assignment()]

        return PollingMember(poll, owned, consumer.close)

    def groups(self) -> set[str]:
        return {one.group_id for one in _result(self._admin.list_consumer_groups()).valid}

    def group(self, group: str) -> GroupSeen:
        response = _result(self._admin.describe_consumer_groups([group])[group])
        return GroupSeen(response.state.name.lower(), len(response.members))

    def committed(self, group: str, topic: str) -> dict[int, int]:
        asked = [ConsumerGroupTopicPartitions(group)]
        response = _result(self._admin.list_consumer_group_offsets(asked)[group])
        return {
            one.partition: one.offset for one in response.topic_partitions if one.topic == topic
        }

    def delete_group(self, group: str) -> None:
        _result(self._admin.delete_consumer_groups([group])[group])


def _read(message: Message) -> Read:
    assert message.error() is None, message.error()
    offset, (_, timestamp) = message.offset(), message.timestamp()
    assert offset is not None
    response: Any = message
    headers = tuple((name, value) for name, value in response.headers() or ())
    return Read(offset, timestamp, response.key(), response.value(), headers)


def _result(future: Future[Any]) -> Any:
    with _refusals():
        return future.result(WAIT_S)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise refused(error.args[0]) from None


def refused(error: KafkaError) -> RefusedError:
    """A broker's error; librdkafka's own have negative numbers."""
    code = error.code()
    return RefusedError(ErrorCode(code).name if code > 0 else error.name(), error.str())
