"""Measures three brokers as a client sees them, and their processor time.

The client is confluent-kafka for both rivals. Replication factor 3, min.insync.replicas 2, six
partitions. A measure creates its own topic, unless it reads what another has written.
"""

from __future__ import annotations

import random
import statistics
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.rivals import Cpu, Rival, cpu_of, memory_mb

PARTITIONS: Final = 6
KIB: Final = 1024
QUIET: Final = {"log_level": 0}
PATIENCE_S: Final = 120.0
READINGS: Final = 5

Figures = dict[str, float]


class Stage:
    """A running rival, and how much load it gets."""

    def __init__(self, rival: Rival, records: int) -> None:
        self.rival = rival
        self.records = records
        self.started_s = 0.0
        """When its processes were started."""
        self.admin = AdminClient(
            {
                "bootstrap.servers": rival.bootstrap,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 50,
                **QUIET,
            }
        )
        self.to_consume = ""
        """A topic with `records` records of 1 KiB."""
        rng = random.Random(1)
        self.values = {size: [rng.randbytes(size) for _ in range(2000)] for size in (100, KIB)}

    def cpu(self) -> Cpu:
        """Processor time of all brokers so far."""
        return cpu_of(self.rival.pids.values())

    def new_topic(self, partitions: int = PARTITIONS) -> str:
        """Create a topic; returns when every partition has a leader and a full ISR."""
        topic = f"t-{uuid.uuid4().hex[:8]}"
        wanted = NewTopic(topic, partitions, 3, config={"min.insync.replicas": "2"})
        self.admin.create_topics([wanted], operation_timeout=30)[topic].result(60)
        self.wait_leaders(topic, partitions)
        return topic

    def delete(self, topic: str) -> None:
        """Delete a topic that no other measure reads, so that the disk does not fill up."""
        self.admin.delete_topics([topic], operation_timeout=30)[topic].result(60)

    def wait_leaders(self, topic: str, partitions: int) -> None:
        deadline = time.perf_counter() + PATIENCE_S
        while time.perf_counter() < deadline:
            found = self.admin.list_topics(topic, timeout=10).topics.get(topic)
            if found is not None and found.error is None and len(found.partitions) == partitions:
                all_there = found.partitions.values()
                if all(one.leader >= 0 and len(one.isrs) == 3 for one in all_there):
                    return
            time.sleep(0.001)
        raise TimeoutError(f"{topic} has no full ISR")

    def producer(self, **settings: Any) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.rival.bootstrap,
                "acks": "all",
                "enable.idempotence": False,
                "queue.buffering.max.messages": 500_000,
                **QUIET,
                **settings,
            }
        )


def start(stage: Stage) -> Figures:
    """From the start of the processes until a topic of replication factor 3 can be used."""
    while True:
        topic = f"start-{uuid.uuid4().hex[:6]}"
        wanted = NewTopic(topic, 1, 3)
        try:
            stage.admin.create_topics([wanted], request_timeout=3, operation_timeout=3)[
                topic
            ].result(5)
            break
        except KafkaException:
            if time.perf_counter() - stage.started_s > PATIENCE_S:
                raise
            time.sleep(0.02)
    stage.wait_leaders(topic, 1)
    return {"start_s": time.perf_counter() - stage.started_s, "start_cpu_s": stage.cpu().total}


def create_topics(stage: Stage) -> Figures:
    """A topic of six partitions, until its leaders are known and its replicas in sync."""
    times = []
    for _ in range(20):
        began = time.perf_counter()
        stage.new_topic()
        times.append((time.perf_counter() - began) * 1000)
    return {"create_topic_ms": statistics.median(times)}


def warm_up(stage: Stage, records: int) -> None:
    """Let the JVM compile every path that is measured: it needs minutes of load for that."""
    topic = stage.new_topic()
    _send(stage, topic, records // 2, KIB)
    _send(stage, topic, records // 2, 100, **{"enable.idempotence": True})
    _one_by_one(stage, topic, max(1000, records // 50))
    latency(stage)
    _read(stage, topic, records)
    stage.delete(topic)


def settle(stage: Stage) -> None:
    """Return when the cluster serves again after it was suspended.

    Its brokers' sessions may have ended meanwhile, so leaders may move until all are back.
    """
    topic = stage.new_topic()
    _send(stage, topic, stage.records // 20, KIB)
    stage.wait_leaders(topic, PARTITIONS)
    stage.delete(topic)


# Producing.


def produce(stage: Stage) -> Figures:
    """1 KiB, acks=all, large batches."""
    if stage.to_consume:
        stage.delete(stage.to_consume)
    stage.to_consume = stage.new_topic()
    seconds, cpu = _send(stage, stage.to_consume, stage.records, KIB)
    return {"produce_per_s": stage.records / seconds, **_per_gb("produce", cpu, stage.records)}


def produce_small(stage: Stage) -> Figures:
    """100 bytes, acks=all, large batches."""
    records = 3 * stage.records
    topic = stage.new_topic()
    seconds, cpu = _send(stage, topic, records, 100)
    stage.delete(topic)
    return {"produce_100_per_s": records / seconds, **_per_record("produce_100", cpu, records)}


def produce_idempotent(stage: Stage) -> Figures:
    """1 KiB by a producer with sequence numbers."""
    topic = stage.new_topic()
    seconds, cpu = _send(stage, topic, stage.records, KIB, **{"enable.idempotence": True})
    stage.delete(topic)
    return {
        "idempotent_per_s": stage.records / seconds,
        **_per_gb("idempotent", cpu, stage.records),
    }


def _per_gb(name: str, cpu: Cpu, records: int) -> Figures:
    """Processor seconds of the brokers for a GB of 1 KiB records."""
    size_gb = records * KIB / 1e9
    return {
        f"{name}_cpu_s_per_gb": cpu.total / size_gb,
        f"{name}_system_s_per_gb": cpu.system / size_gb,
    }


def _per_record(name: str, cpu: Cpu, count: int) -> Figures:
    """Processor microseconds of the brokers for one record or request."""
    return {
        f"{name}_cpu_us": cpu.total / count * 1e6,
        f"{name}_system_us": cpu.system / count * 1e6,
    }


def _send(stage: Stage, topic: str, records: int, size: int, **settings: Any) -> tuple[float, Cpu]:
    """Seconds until the last acknowledgement, and processor time of the brokers."""
    failures = _Failures()
    producer = stage.producer(
        **{"linger.ms": 5, "batch.size": 1_000_000, "delivery.report.only.error": True, **settings}
    )
    values = stage.values[size]
    for partition in range(PARTITIONS):  # connections, and a producer id
        producer.produce(topic, values[0], partition=partition)
    producer.flush(30)
    cpu, began = stage.cpu(), time.perf_counter()
    for number in range(records):
        value = values[number % len(values)]
        try:
            producer.produce(topic, value, on_delivery=failures.reported)
        except BufferError:
            producer.poll(0.05)
            producer.produce(topic, value, on_delivery=failures.reported)
        if not number & 1023:
            producer.poll(0)
    left = producer.flush(180)
    seconds = time.perf_counter() - began
    assert not left, f"{left} records were not acknowledged in time"
    failures.check()
    return seconds, stage.cpu().since(cpu)


class _Failures:
    """Counts refused records, which would make a figure meaningless."""

    def __init__(self) -> None:
        self.count = 0
        self.last: KafkaError | None = None

    def reported(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.count += 1
            self.last = error

    def check(self) -> None:
        assert not self.count, f"{self.count} records were refused, one because: {self.last}"


def one_record_requests(stage: Stage) -> Figures:
    """100 bytes per request, five requests in flight per connection."""
    requests = stage.records // 10
    topic = stage.new_topic()
    seconds, cpu = _one_by_one(stage, topic, requests)
    stage.delete(topic)
    return {"requests_per_s": requests / seconds, **_per_record("request", cpu, requests)}


def _one_by_one(stage: Stage, topic: str, requests: int) -> tuple[float, Cpu]:
    failures = _Failures()
    producer = stage.producer(
        **{
            "linger.ms": 0,
            "batch.num.messages": 1,
            "max.in.flight.requests.per.connection": 5,
        }
    )
    producer.list_topics(topic, timeout=10)
    values = stage.values[100]
    cpu, began = stage.cpu(), time.perf_counter()
    for number in range(requests):
        producer.produce(
            topic,
            values[number % len(values)],
            partition=number % PARTITIONS,
            on_delivery=failures.reported,
        )
    left = producer.flush(300)
    seconds = time.perf_counter() - began
    assert not left, f"{left} records were not acknowledged in time"
    failures.check()
    return seconds, stage.cpu().since(cpu)


def latency(stage: Stage) -> Figures:
    """One record of 1 KiB at a time, until it is acknowledged."""
    topic = stage.new_topic()
    producer = stage.producer(**{"linger.ms": 0})
    failures = _Failures()
    done: list[int] = []
    times: list[float] = []

    def reported(error: KafkaError | None, message: Message) -> None:
        failures.reported(error, message)
        done.append(1)

    count, warming = max(1000, stage.records // 60), 200
    for number in range(count + warming):
        began = time.perf_counter()
        producer.produce(
            topic,
            stage.values[KIB][number % 2000],
            partition=number % PARTITIONS,
            on_delivery=reported,
        )
        while len(done) <= number:
            producer.poll(5)
        if number >= warming:
            times.append((time.perf_counter() - began) * 1000)
    failures.check()
    stage.delete(topic)
    times.sort()
    return {
        "latency_p50_ms": times[len(times) // 2],
        "latency_p99_ms": times[int(len(times) * 0.99)],
    }


# Consuming.


def consume(stage: Stage) -> Figures:
    """Read all that `produce` has written; the median of several reads of about a second."""
    if not stage.to_consume:
        produce(stage)
    taken = [_read(stage, stage.to_consume, stage.records) for _ in range(READINGS)]
    seconds, cpu = sorted(taken)[READINGS // 2]
    return {"consume_per_s": stage.records / seconds, **_per_gb("consume", cpu, stage.records)}


def _read(stage: Stage, topic: str, records: int) -> tuple[float, Cpu]:
    consumer = Consumer(
        {
            "bootstrap.servers": stage.rival.bootstrap,
            "group.id": f"bench-{uuid.uuid4().hex[:6]}",
            "enable.auto.commit": False,
            # With the default limits librdkafka waits for itself.
            "queued.min.messages": 2_000_000,
            "queued.max.messages.kbytes": 1_048_576,
            **QUIET,
        }
    )
    cpu, began = stage.cpu(), time.perf_counter()
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    got = 0
    while got < records:
        assert time.perf_counter() - began < PATIENCE_S, f"{got} of {records} records came"
        got += sum(one.error() is None for one in consumer.consume(10_000, 0.2))
    seconds, spent = time.perf_counter() - began, stage.cpu().since(cpu)
    consumer.close()
    return seconds, spent


# Afterwards.


def memory(stage: Stage) -> Figures:
    """Of the largest broker, after everything before."""
    return {"memory_mb": max(map(memory_mb, stage.rival.pids.values()))}


def idle(stage: Stage) -> Figures:
    """Processor time of a broker without requests, of one core."""
    cpu = stage.cpu()
    time.sleep(5)
    return {"idle_percent": stage.cpu().since(cpu).total / 5 / 3 * 100}


def fail_over(stage: Stage) -> Figures:
    """From kill -9 of a leader until a record that the same producer sent later is acknowledged.

    Afterwards the killed broker is started again and joins the ISR.
    """
    topic = stage.new_topic()
    leader = stage.admin.list_topics(topic, timeout=10).topics[topic].partitions[0].leader
    producer = stage.producer(**{"linger.ms": 1, "message.timeout.ms": 120_000})
    first: list[float] = []
    killed_s = 0.0

    def sent(partition: int) -> None:
        at_s = time.perf_counter()

        def reported(error: KafkaError | None, _: Message) -> None:
            if error is None and partition == 0 and 0 < killed_s < at_s and not first:
                first.append(time.perf_counter())

        producer.produce(topic, stage.values[100][0], partition=partition, on_delivery=reported)

    began = time.perf_counter()
    while not first:
        for partition in range(PARTITIONS):
            sent(partition)
        producer.poll(0.005)
        if not killed_s and time.perf_counter() - began > 2:
            stage.rival.kill(leader)
            killed_s = time.perf_counter()
        assert time.perf_counter() - began < PATIENCE_S, "no new leader"
    producer.flush(60)
    stage.rival.run(leader)
    stage.wait_leaders(topic, PARTITIONS)
    stage.delete(topic)
    return {"fail_over_s": first[0] - killed_s}


MEASURES: Final[dict[str, Callable[[Stage], Figures]]] = {
    "create": create_topics,
    "produce": produce,
    "produce-100": produce_small,
    "idempotent": produce_idempotent,
    "requests": one_record_requests,
    "latency": latency,
    "consume": consume,
    "memory": memory,
    "idle": idle,
}
"""The measures of warm clusters. `start` and `fail_over` need new processes."""
