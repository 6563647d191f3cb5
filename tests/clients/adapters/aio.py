"""aiokafka, on an event loop in a separate thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import BrokerResponseError

from holdfast.model import ErrorCode
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
Result = TypeVar("Result")


class Aio(Client):
    """The maintained client with the oldest protocol versions."""

    limits: ClassVar = Limits(null_headers=False)
    lacks: ClassVar[Mapping[str, str]] = {
        "drop_topic_configs": "aiokafka has no IncrementalAlterConfigs",
        "describe_log_dirs": "aiokafka has no DescribeLogDirs",
        "elect_leaders": "aiokafka has no ElectLeaders",
        "reassign_partitions": "aiokafka has no AlterPartitionReassignments",
        "delete_group": "aiokafka has no DeleteGroups",
    }

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._admin = self._run(self._started_admin())

    def close(self) -> None:
        self._run(self._admin.close())
        self._run(_end_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)

    def _ask(self, call: Callable[[], Awaitable[Any]]) -> Any:
        async def ask() -> Any:
            return await call()

        try:
            return self._run(ask())
        except BrokerResponseError as error:
            raise RefusedError(ErrorCode(error.errno).name, str(error)) from None

    async def _started_admin(self) -> Any:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        return admin

    # Records.

    def produce(
        self, topic: str, partition: int, records: Sequence[Record], how: How
    ) -> list[int] | None:
        return self._run(self._produce(topic, partition, records, how))

    async def _produce(
        self, topic: str, partition: int, records: Sequence[Record], how: How
    ) -> list[int] | None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            acks="all" if how.acks == -1 else how.acks,
            compression_type=None if how.compression == "none" else how.compression,
            enable_idempotence=how.is_idempotent,
            linger_ms=20,
        )
        await producer.start()
        try:
            futures = [
                await producer.send(
                    topic,
                    one.value,
                    one.key,
                    partition,
                    timestamp_ms=one.timestamp,
                    headers=list(one.headers),
                )
                for one in records
            ]
            done = await asyncio.gather(*futures)
        finally:
            await producer.stop()
        return [one.offset for one in done] if how.acks else None

    @asynccontextmanager
    async def _consumer(self, *topics: str, **settings: Any) -> Any:
        consumer = AIOKafkaConsumer(*topics, bootstrap_servers=self.bootstrap, **settings)
        await consumer.start()
        try:
            yield consumer
        finally:
            await consumer.stop()

    def consume(self, topic: str, partition: int, start: int, count: int) -> list[Read]:
        return self._run(self._consume(TopicPartition(topic, partition), start, count))

    async def _consume(self, place: Any, start: int, count: int) -> list[Read]:
        got: list[Read] = []
        async with self._consumer() as consumer:
            consumer.assign([place])
            consumer.seek(place, start)
            while len(got) < count:
                one = await consumer.getone()
                got.append(Read(one.offset, one.timestamp, one.key, one.value, tuple(one.headers)))
        return got

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        async def ask() -> Any:
            async with self._consumer() as consumer:
                return await consumer.offsets_for_times({place: timestamp})

        place = TopicPartition(topic, partition)
        found = self._run(ask())[place]
        return None if found is None else int(found.offset)

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        async def ask() -> tuple[int, int]:
            async with self._consumer() as consumer:
                first = await consumer.beginning_offsets([place])
                end = await consumer.end_offsets([place])
                return first[place], end[place]

        place = TopicPartition(topic, partition)
        return self._run(ask())

    # Topics.

    def create_topic(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        new = NewTopic(topic, partitions, replicas, topic_configs=dict(configs))
        response = self._ask(lambda: self._admin.create_topics([new]))
        _check(response.topic_errors[0][1], response.topic_errors[0][2])

    def delete_topic(self, topic: str) -> None:
        response = self._ask(lambda: self._admin.delete_topics([topic]))
        _check(response.topic_error_codes[0][1])

    def create_partitions(self, topic: str, total: int) -> None:
        self._ask(lambda: self._admin.create_partitions({topic: NewPartitions(total)}))

    def topics(self) -> dict[str, dict[int, Placed]]:
        return {
            topic["topic"]: {
                one["partition"]: Placed(one["leader"], tuple(one["replicas"]), tuple(one["isr"]))
                for one in sorted(topic["partitions"], key=lambda one: one["partition"])
            }
            for topic in self._ask(self._admin.describe_topics)
        }

    def topic_configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        [response] = self._ask(lambda: self._admin.describe_configs([resource]))
        [(error, message, _, _, entries)] = response.resources
        _check(error, message)
        return {name: value for name, value, *_ in entries}

    def alter_topic_configs(
        self, topic: str, put: Mapping[str, str], drop: Sequence[str] = ()
    ) -> None:
        assert not drop
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(put))
        [response] = self._ask(lambda: self._admin.alter_configs([resource]))
        _check(*response.resources[0][:2])

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        wanted = {TopicPartition(topic, partition): RecordsToDelete(before)}
        response = self._ask(lambda: self._admin.delete_records(wanted))
        assert list(response.values()) == [before]

    # The cluster.

    def cluster(self) -> ClusterSeen:
        response = self._ask(self._admin.describe_cluster)
        brokers = {one["node_id"]: one["port"] for one in response["brokers"]}
        return ClusterSeen(response["cluster_id"], response["controller_id"], brokers)

    # Groups.

    def join(self, group: str, topic: str) -> Member:
        return _AioMember(self._loop, self._consumer, group, topic)

    def groups(self) -> set[str]:
        return {name for name, _ in self._ask(self._admin.list_consumer_groups)}

    def group(self, group: str) -> GroupSeen:
        [response] = self._ask(lambda: self._admin.describe_consumer_groups([group]))
        [(error, _, state, _, _, members, *_)] = response.groups
        _check(error)
        return GroupSeen(state.lower(), len(members))

    def committed(self, group: str, topic: str) -> dict[int, int]:
        response = self._ask(lambda: self._admin.list_consumer_group_offsets(group))
        return {
            place.partition: one.offset for place, one in response.items() if place.topic == topic
        }


class _AioMember(Member):
    """A task that reads until it is stopped."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, consumer: Any, group: str, topic: str
    ) -> None:
        self._loop = loop
        self._values: list[bytes] = []
        self._owned: set[int] = set()
        self._is_over = threading.Event()
        work = self._run(consumer, group, topic)
        self._done = asyncio.run_coroutine_threadsafe(work, loop)

    async def _run(self, consumer: Any, group: str, topic: str) -> None:
        settings = {"group_id": group, "auto_offset_reset": "earliest"}
        async with consumer(topic, **settings, heartbeat_interval_ms=200) as reading:
            while not self._is_over.is_set():
                for records in (await reading.getmany(timeout_ms=50)).values():
                    self._values += [one.value for one in records]
                self._owned = {place.partition for place in reading.assignment()}

    def assignment(self) -> set[int]:
        return set(self._owned)

    def values(self) -> list[bytes]:
        return list(self._values)

    def close(self) -> None:
        self._is_over.set()
        self._done.result(WAIT_S)
        self._owned = set()


async def _end_all() -> None:
    """End what aiokafka leaves: a transport that nobody closes fails a later test."""
    loop: Any = asyncio.get_running_loop()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.sleep(0)
    for transport in tuple(loop._transports.values()):
        transport.abort()
    await asyncio.sleep(0)


def _check(error: int, message: str | None = None) -> None:
    if error:
        raise RefusedError(ErrorCode(error).name, message or "")
