"""Consumer groups on three real brokers, with kafka-python and aiokafka."""

from __future__ import annotations

import asyncio
import threading
import warnings
from typing import Any

import aiokafka
import pytest

from tests.groups.confluent import ANSWER_S, committed, describe, make_topic, produce
from tests.support.brokers import Brokers
from tests.support.waiting import wait_until

with warnings.catch_warnings():
    # It reads its schemas by a function that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.admin import KafkaAdminClient

pytestmark = pytest.mark.slow


def _kafka_python(brokers: Brokers, group: str, topic: str) -> Any:
    return kafka.KafkaConsumer(
        topic,
        bootstrap_servers=brokers.bootstrap.split(","),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=300,
    )


class _Member(threading.Thread):
    """A member that polls without a pause, as applications do.

    With short polls kafka-python 3.0.12 loses its assignment and its heartbeats if a poll's time
    is over between JoinGroup and SyncGroup.
    """

    def __init__(self, consumer: Any) -> None:
        super().__init__(daemon=True)
        self._consumer = consumer
        self.positions: dict[int, int] = {}
        self.is_over = threading.Event()

    def run(self) -> None:
        consumer = self._consumer
        while not self.is_over.is_set():
            consumer.poll(timeout_ms=3000)
            self.positions = {
                each.partition: consumer.position(each) for each in consumer.assignment()
            }
        consumer.commit()
        consumer.close()


def test_kafka_python_shares_reads_and_commits(brokers: Brokers) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    produce(brokers, topic, range(20))
    members = [_Member(_kafka_python(brokers, group, topic)) for _ in range(2)]
    for one in members:
        one.start()
    # A partition that moves to another member is read again: nothing is committed.
    wait_until(
        lambda: [list(one.positions.values()) for one in members] == [[5, 5], [5, 5]],
        "all records read by two members",
        ANSWER_S,
    )
    for one in members:
        one.is_over.set()
    for one in members:
        one.join(ANSWER_S)
    assert committed(brokers, group, topic) == [5, 5, 5, 5]


def test_kafka_pythons_administrator_deletes_offsets_and_groups(brokers: Brokers) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    # This administrator gives up if there is no coordinator yet; librdkafka waits for one.
    describe(brokers, group)
    admin = KafkaAdminClient(bootstrap_servers=brokers.bootstrap.split(","))
    partition = kafka.TopicPartition(topic, 2)
    try:
        offset = kafka.structs.OffsetAndMetadata(11, "a note", -1)
        admin.alter_group_offsets(group, {partition: offset})
        assert committed(brokers, group, topic) == [0, 0, 11, 0]
        admin.delete_group_offsets(group, [partition])
        assert committed(brokers, group, topic) == [0, 0, 0, 0]
    finally:
        admin.close()


def test_aiokafka_shares_reads_and_commits(brokers: Brokers) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    produce(brokers, topic, range(20))
    asyncio.run(_read_with_aiokafka(brokers, group, topic))
    assert committed(brokers, group, topic) == [5, 5, 5, 5]


async def _read_with_aiokafka(brokers: Brokers, group: str, topic: str) -> None:
    members = [
        aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=brokers.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=300,
        )
        for _ in range(2)
    ]
    try:
        for consumer in members:
            await consumer.start()
        ends = asyncio.get_running_loop().time() + ANSWER_S
        while not await _have_read_all(members):
            assert asyncio.get_running_loop().time() < ends, "not all records read by two members"
            for consumer in members:
                await consumer.getmany(timeout_ms=100)
        for consumer in members:
            await consumer.commit()
    finally:
        for consumer in members:
            await consumer.stop()


async def _have_read_all(members: list[Any]) -> bool:
    if [len(one.assignment()) for one in members] != [2, 2]:
        return False
    ends = [await one.position(each) for one in members for each in one.assignment()]
    return ends == [5, 5, 5, 5]
