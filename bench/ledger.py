"""The cost of the ledger for a producer: LedgerProducer against the plain class it replaces.

Both have the same counting callback and take turns in one run, so that the noise of a shared
machine affects both. `rate`: three Holdfast brokers on this machine, replication factor 3,
acks=all, from the first send to the last answer. `client`: against the mock brokers inside
librdkafka, so that no Holdfast broker runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from holdfast.cluster import Cluster
from holdfast.ledger import LedgerProducer

SIZES: Final = (100, 1024)
CONFIG: Final = {"log_level": 0}
"""Otherwise librdkafka's defaults."""
PARTITIONS: Final = 6
WARM_UP: Final = 120_000
"""In records: more than librdkafka's queue holds, so that the queue is full."""
Make = Callable[[dict[str, Any]], Producer]


class Counter:
    """The least that an application does: count answers, and notice errors."""

    def __init__(self) -> None:
        self.answers = 0

    def delivered(self, error: Any, _: Any) -> None:
        assert error is None, error
        self.answers += 1


def send(producer: Producer, topic: str, size: int, records: int) -> tuple[float, float]:
    """Microseconds per record: wall time, and CPU time of this thread."""
    values = [os.urandom(size) for _ in range(1000)]
    counter = Counter()
    on_delivery = counter.delivered
    _send_all(
        producer, topic, values, WARM_UP, on_delivery
    )  # connections, memory, the first blocks
    began, cpu = time.perf_counter(), time.thread_time()
    _send_all(producer, topic, values, records, on_delivery)
    took, used = time.perf_counter() - began, time.thread_time() - cpu
    asked = WARM_UP + records
    assert counter.answers == asked, f"{counter.answers} answers to {asked} records"
    return took / records * 1e6, used / records * 1e6


def _send_all(
    producer: Producer,
    topic: str,
    values: list[bytes],
    records: int,
    on_delivery: Callable[..., None],
) -> None:
    for number in range(records):
        while True:
            try:
                producer.produce(topic, values[number % 1000], on_delivery=on_delivery)
            except BufferError:
                producer.poll(0.01)
            else:
                break
        if not number & 127:
            producer.poll(0)
    producer.flush(180)


def alternate(
    config: dict[str, Any], folder: Path, topic: Callable[[], str], size: int, options: Any
) -> dict[str, float]:
    """Medians of both, and of the ratio of adjacent rounds."""
    makers: dict[str, Make] = {
        "plain": Producer,
        "ledger": lambda config: LedgerProducer(config, ledger=folder),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in makers}
    for turn in range(options.rounds):
        for name in sorted(makers, reverse=turn % 2 == 0):
            producer = makers[name](config)
            taken[name].append(send(producer, topic(), size, options.records))
            del producer
    pairs = list(zip(taken["plain"], taken["ledger"], strict=True))
    ratios = sorted(plain[0] / ledger[0] for plain, ledger in pairs)
    return {
        "plain_us": statistics.median(plain[0] for plain in taken["plain"]),
        "ledger_us": statistics.median(ledger[0] for ledger in taken["ledger"]),
        "rate_ratio": statistics.median(ratios),
        "rate_ratio_least": ratios[0],
        "rate_ratio_greatest": ratios[-1],
        "plain_cpu_us": statistics.median(plain[1] for plain in taken["plain"]),
        "cpu_us_added": statistics.median(ledger[1] - plain[1] for plain, ledger in pairs),
    }


def measure(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mock = {"bootstrap.servers": "mock", "test.mock.num.brokers": 3, **CONFIG}
        for size in SIZES:
            figures[f"client, {size} B"] = alternate(mock, folder, lambda: "t", size, options)
        with Cluster(brokers=3) as cluster:
            numbers = iter(range(1_000_000))

            def new_topic() -> str:
                topic = f"t{next(numbers)}"
                cluster.create_topic(topic, partitions=PARTITIONS)
                return topic

            real = {"bootstrap.servers": cluster.bootstrap, "acks": "all", **CONFIG}
            send(Producer(real), new_topic(), SIZES[0], options.records)  # everything is warm
            for size in SIZES:
                figures[f"rate, {size} B"] = alternate(real, folder, new_topic, size, options)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(options)
    if options.json:
        print(json.dumps({"load": os.getloadavg()[0], **figures}))
        return
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, one in figures.items():
        print(
            f"{name:15} plain {one['plain_us']:6.2f} µs a record, ledger {one['ledger_us']:6.2f}: "
            f"ratio of rates {one['rate_ratio']:.2f} "
            f"({one['rate_ratio_least']:.2f}–{one['rate_ratio_greatest']:.2f}); CPU of the thread "
            f"{one['plain_cpu_us']:.2f} + {one['cpu_us_added']:.2f} µs"
        )


if __name__ == "__main__":
    main()
