"""Common steps of tests with librdkafka."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._group import ConsumerGroupDescription
from confluent_kafka.cimpl import NewTopic

from tests.support.brokers import QUIET, Brokers
from tests.support.waiting import wait_until

ANSWER_S = 60.0


def admin_of(brokers: Brokers) -> AdminClient:
    """An admin client; keep it until it has answered, or the answers are lost."""
    return AdminClient({"bootstrap.servers": brokers.bootstrap, **QUIET})


def make_topic(brokers: Brokers, partitions: int = 4) -> str:
    """A topic of three replicas."""
    name = brokers.new_name("topic")
    admin = admin_of(brokers)
    admin.create_topics([NewTopic(name, partitions, 3)])[name].result(ANSWER_S)
    return name


def produce(brokers: Brokers, topic: str, values: Iterable[int], partitions: int = 4) -> None:
    """One record per value, acknowledged by all in-sync replicas, spread over the partitions."""
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "acks": "all", **QUIET})
    for value in values:
        producer.produce(topic, str(value), partition=value % partitions)
    assert producer.flush(ANSWER_S) == 0


@contextmanager
def member(brokers: Brokers, group: str, **more: object) -> Iterator[Consumer]:
    """A consumer in a group, without automatic commits. Leaves at the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 300,
            **QUIET,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Consumer, wanted: int) -> list[int]:
    """So many values, sorted."""
    values: list[int] = []

    def have_all() -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            value = message.value()
            assert isinstance(value, bytes)
            values.append(int(value))
        return len(values) >= wanted

    wait_until(have_all, f"{wanted} records", ANSWER_S)
    return sorted(values)


def share(consumers: Iterable[Consumer], counts: list[int]) -> None:
    """Poll until every consumer has as many partitions as it should."""
    group = list(consumers)

    def is_shared() -> bool:
        for consumer in group:
            consumer.poll(0.05)
        return sorted(len(one.assignment()) for one in group) == sorted(counts)

    wait_until(is_shared, f"partitions shared as {counts}", ANSWER_S)


def committed(brokers: Brokers, group: str, topic: str, partitions: int = 4) -> list[int]:
    """The group's offsets, read from outside the group; 0 where there is none."""
    consumer = Consumer({"bootstrap.servers": brokers.bootstrap, "group.id": group, **QUIET})
    try:
        wanted = [TopicPartition(topic, index) for index in range(partitions)]
        found = consumer.committed(wanted, timeout=ANSWER_S)
        return [max(one.offset, 0) for one in found]
    finally:
        consumer.close()


def describe(brokers: Brokers, group: str) -> ConsumerGroupDescription:
    """The group from its coordinator, once that has loaded its log."""
    admin = admin_of(brokers)
    found: list[ConsumerGroupDescription] = []

    def is_described() -> bool:
        asked = admin.describe_consumer_groups([group], request_timeout=ANSWER_S)
        try:
            found.append(asked[group].result(ANSWER_S))
        except KafkaException as error:
            # librdkafka leaves this one to its users.
            if error.args[0].name() != "COORDINATOR_LOAD_IN_PROGRESS":
                raise
        return bool(found)

    wait_until(is_described, f"{group} described", ANSWER_S)
    return found[0]
