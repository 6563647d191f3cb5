"""Producers and consumers of a simulated cluster, and the history of their requests.

A producer never gives up: it sends a batch until it is acknowledged. An idempotent producer always
uses the same sequence number, so at the end each of its records must be there once and in order;
records of a plain producer must be there at least once. A lane (one producer and one partition)
pipelines batches as Kafka's clients do: after a failure it sends every unanswered batch again,
oldest first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from holdfast.core import ACKS_ALL
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.messages.fetch import (
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from holdfast.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from holdfast.protocol.records import (
    BatchOptions,
    NewRecord,
    batches,
    build_batch,
    check_batch,
    read_records,
)
from holdfast.simulation.clients.connection import ANSWER_S, FAILURES, Client, RefusedError, check
from holdfast.simulation.traffic_pace import Pace

BY_NAME: Final = 12
"""The newest version of Produce and Fetch that carries topic names, not topic ids."""
INIT_VERSION: Final = 4
BACKOFF_S: Final = 0.1
WINDOW: Final = 5
"""Batches in flight at the same time: the most that an idempotent producer may have."""


class Acknowledged(NamedTuple):
    """An acknowledged record."""

    producer: str
    partition: TopicPartition
    offset: int
    value: bytes


@dataclass(slots=True)
class Ledger:
    """What clients sent, what was acknowledged to them, and what they read."""

    sent: dict[bytes, TopicPartition] = field(default_factory=dict)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    consumed: dict[tuple[TopicPartition, int], bytes] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    """Responses that no correct broker sends."""


class _Batch(NamedTuple):
    values: tuple[bytes, ...]
    data: bytes


class Lane:
    """One producer's batches for one partition."""

    def __init__(self, producer: Producer, partition: TopicPartition) -> None:
        self._producer = producer
        self._partition = partition
        self._waiting: deque[_Batch] = deque()
        """Unanswered batches, oldest first."""
        self._sequence = 0
        self._has_work = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= 2 * WINDOW

    def add(self, values: tuple[bytes, ...]) -> None:
        """Add one batch with these values."""
        producer = self._producer
        options = BatchOptions()
        if producer.is_idempotent:
            options = BatchOptions(
                producer_id=producer.producer_id, producer_epoch=0, base_sequence=self._sequence
            )
            self._sequence += len(values)
        data = build_batch([NewRecord(value) for value in values], options)
        self._waiting.append(_Batch(values, bytes(data)))
        self._has_work.set()

    async def run(self) -> None:
        """Send until every batch is acknowledged; never returns."""
        while True:
            if not self._waiting:
                self._has_work.clear()
                await self._has_work.wait()
            try:
                await self._send_some()
            except FAILURES:
                self._producer.client.forget_leader(self._partition)
                await asyncio.sleep(BACKOFF_S * (0.5 + self._producer.client.rng.random()))

    async def _send_some(self) -> None:
        """Send over one connection until a request fails or no batch is left."""
        client = self._producer.client
        leader = await client.leader(self._partition)
        wire = await client.wire(leader.broker, str(self._partition))
        under_way: deque[asyncio.Future[ProduceResponse]] = deque()
        window = WINDOW if self._producer.is_idempotent else 1
        try:
            while self._waiting:
                while len(under_way) < min(window, len(self._waiting)):
                    batch = self._waiting[len(under_way)]
                    under_way.append(wire.send(self._request(batch), BY_NAME))
                answer = await asyncio.wait_for(under_way[0], ANSWER_S)
                self._answered(answer.responses[0].partition_responses[0])
                under_way.popleft()
                self._waiting.popleft()
        except FAILURES:
            # The leader may or may not handle the other batches in flight: send them again.
            wire.close()
            raise

    def _request(self, batch: _Batch) -> ProduceRequest:
        data = PartitionProduceData(index=self._partition.partition, records=bytearray(batch.data))
        topic = TopicProduceData(name=self._partition.topic, partition_data=[data])
        return ProduceRequest(acks=self._producer.acks, timeout_ms=1_500, topic_data=[topic])

    def _answered(self, response: PartitionProduceResponse) -> None:
        producer, batch = self._producer, self._waiting[0]
        if not response.error_code:
            for place, value in enumerate(batch.values):
                offset = response.base_offset + place
                kept = Acknowledged(producer.name, self._partition, offset, value)
                producer.ledger.acknowledged.append(kept)
            return
        error = ErrorCode(response.error_code)
        if not error.retriable:
            # The oldest batch of a lane is never out of order, nor is its producer unknown.
            what = f"{producer.name} got {error.name} for {batch.values[0]!r}"
            producer.ledger.wrong.append(what)
        raise RefusedError(error)


class Producer:
    """Sends batches to all partitions."""

    def __init__(
        self,
        client: Client,
        ledger: Ledger,
        partitions: tuple[TopicPartition, ...],
        *,
        acks: int = ACKS_ALL,
        is_idempotent: bool = False,
        batch_sizes: tuple[int, ...] = (1, 1, 1, 3),
    ) -> None:
        self.client = client
        self.name = client.name
        self.ledger = ledger
        self.acks = acks
        self.is_idempotent = is_idempotent
        self._batch_sizes = batch_sizes
        self.producer_id = -1
        self.is_paused = False
        self._partitions = partitions
        self._lanes: dict[TopicPartition, Lane] = {}
        self._count = 0

    @property
    def is_idle(self) -> bool:
        """Whether every batch is acknowledged."""
        return all(lane.is_idle for lane in self._lanes.values())

    async def run(self, every_s: float, pace: Pace | None = None) -> None:
        """Send a batch about every `every_s`, except while `is_paused`."""
        while self.is_idempotent and self.producer_id < 0:
            try:
                await self._init()
            except FAILURES:
                await asyncio.sleep(BACKOFF_S)
        for partition in self._partitions:
            lane = self._lanes[partition] = Lane(self, partition)
            self.client.loop.create_task(lane.run())
        while True:
            wait_s = every_s * (0.5 + self.client.rng.random())
            now_s = self.client.loop.time()
            await asyncio.sleep(wait_s if pace is None else pace.request_s(now_s, wait_s))
            if not self.is_paused:
                self.send()

    def send(self) -> None:
        """Add a batch to a random lane, unless that lane is full."""
        lane = self._lanes[self.client.rng.choice(self._partitions)]
        if not lane.is_full:
            count = self.client.rng.choice(self._batch_sizes)
            values = tuple(f"{self.name}-{self._count + i}".encode() for i in range(count))
            self._count += count
            self.ledger.sent.update(dict.fromkeys(values, lane._partition))
            lane.add(values)

    async def _init(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        broker = self.client.any_broker()
        answer = await self.client.ask(broker, request, INIT_VERSION, InitProducerIdResponse)
        check(answer.error_code)
        self.producer_id = answer.producer_id


class Consumer:
    """Reads one partition from its beginning; never stops."""

    def __init__(self, client: Client, ledger: Ledger, partition: TopicPartition) -> None:
        self._client = client
        self._ledger = ledger
        self._partition = partition
        self.position = 0

    async def run(self) -> None:
        while True:
            try:
                await self._read()
            except FAILURES as error:
                if isinstance(error, RefusedError):
                    self._look_at(error.code)
                self._client.forget_leader(self._partition)
                await asyncio.sleep(BACKOFF_S)

    def _look_at(self, error: ErrorCode) -> None:
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            what = f"{self._client.name} had read {self._partition} up to {self.position}"
            self._ledger.wrong.append(f"{what}; then the leader answered OFFSET_OUT_OF_RANGE")

    async def _read(self) -> None:
        leader = await self._client.leader(self._partition)
        asked = FetchPartition(
            partition=self._partition.partition,
            current_leader_epoch=leader.epoch,
            fetch_offset=self.position,
            partition_max_bytes=65_536,
        )
        topic = FetchTopic(topic=self._partition.topic, partitions=[asked])
        request = FetchRequest(max_wait_ms=2_000, min_bytes=1, topics=[topic])
        purpose = str(self._partition)
        client = self._client
        answer = await client.ask(leader.broker, request, BY_NAME, FetchResponse, purpose)
        check(answer.error_code)
        [data] = answer.responses[0].partitions
        check(data.error_code)
        self._take(data)

    def _take(self, data: FetchPartitionData) -> None:
        for batch in batches(data.records or b"", partial_end=True):
            check_batch(batch)
            for record in read_records(batch):
                if record.offset < self.position:
                    continue
                if record.offset > self.position:
                    where = f"{self._partition} from {self.position} to {record.offset}"
                    self._ledger.wrong.append(f"{self._client.name} skipped offsets: {where}")
                value = bytes(record.value or b"")
                self._ledger.consumed[self._partition, record.offset] = value
                self.position = record.offset + 1
