"""Reading a topic into Spark: `holdfast-log` from the broker's files, against Spark's own Kafka
connector from the broker itself, which runs on the same two cores.

    python bench/log_source.py [--records 2000000] [--rounds 5] [--json]

The same rows on both sides, 100 bytes of value and a key each, counted by a sink that discards
them. Sides are alternated; the ratio is the median over the rounds of their times, and above 1 says
that the files are faster. A first round is not counted: Java has to warm up. `cpu` is the ratio of
processor time, of Spark, its Python workers and the broker together: it holds on a busy machine.

    same       topic, partition, offset, timestamp, key, value: what the connector gives
    audit      offset, leader epoch, checksums and lengths of key and value, no bytes
    all        all columns, the checksum of every value among them
    batches    holdfast-batches: one row per batch
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from holdfast.cluster import Cluster
from holdfast.pipeline import logs
from holdfast.pipeline.spark import running

SCHEMA = "holdfast-bench-log-source/1"
TOPIC = "bench"
PARTITIONS = 4
VALUE_BYTES = 100
SAME = "topic,partition,offset,timestamp,key,value"
AUDIT = "offset,leader_epoch,key_crc,key_len,value_crc,value_len"


class Result(NamedTuple):
    """One way of reading: records per second, best round, and the ratio to the connector."""

    case: str
    records_a_second: float
    ratio: float
    worst_ratio: float
    cpu_us: float
    """Of all processes, a record."""
    cpu_ratio: float


def fill(bootstrap: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000})
    rng = random.Random(7)
    values = [rng.randbytes(VALUE_BYTES) for _ in range(1_000)]
    for nth in range(records):
        value, key = values[nth % len(values)], b"key-%08d" % nth
        while True:  # Until there is room in the queue.
            try:
                producer.produce(TOPIC, value, key, nth % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if nth % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


def cost(read: Callable[[], DataFrame]) -> tuple[float, float]:
    """Seconds that passed, and seconds of processor time."""
    start, used = time.perf_counter(), cpu_seconds()
    read().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start, cpu_seconds() - used


def cpu_seconds() -> float:
    """Of this process and all below it, those that have ended included."""
    stats: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text(encoding="ascii", errors="replace")
        except OSError:  # It has ended.
            continue
        fields = text[text.rindex(")") + 2 :].split()
        stats[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while more := {pid for pid, (parent, _) in stats.items() if parent in ours} - ours:
        ours |= more  # At most as many rounds as processes are deep.
    return sum(stats[pid][1] for pid in ours) / os.sysconf("SC_CLK_TCK")


def from_broker(spark: SparkSession, bootstrap: str) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    return reader.option("subscribe", TOPIC).load().selectExpr(*SAME.split(","))


def from_files(spark: SparkSession, path: str, source: str, columns: str | None) -> DataFrame:
    reader = spark.read.format(source).option("topics", TOPIC)
    return (reader.option("columns", columns) if columns else reader).load(path)


def measure(spark: SparkSession, cluster: Cluster, records: int, rounds: int) -> list[Result]:
    path = f"b1={cluster.files(1).log}"
    rival = partial(from_broker, spark, cluster.bootstrap)
    cases = {
        "same": partial(from_files, spark, path, "holdfast-log", SAME),
        "audit": partial(from_files, spark, path, "holdfast-log", AUDIT),
        "all": partial(from_files, spark, path, "holdfast-log", None),
        "batches": partial(from_files, spark, path, "holdfast-batches", None),
    }
    assert rival().count() == cases["same"]().count() == records
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ("connector", *cases)}
    for nth in range(rounds + 1):
        turns = [("connector", rival), *cases.items()]
        for name, read in turns if nth % 2 else reversed(turns):
            spent = cost(read)
            if nth:
                times[name].append(spent)
    return [compared(name, own, times["connector"], records) for name, own in times.items()]


def compared(
    name: str, own: list[tuple[float, float]], rival: list[tuple[float, float]], records: int
) -> Result:
    pairs = list(zip(rival, own, strict=True))
    ratios = [theirs[0] / ours[0] for theirs, ours in pairs]
    return Result(
        name,
        records / min(one[0] for one in own),
        statistics.median(ratios),
        min(ratios),
        1e6 * statistics.median(one[1] for one in own) / records,
        statistics.median(theirs[1] / ours[1] for theirs, ours in pairs),
    )


def main() -> int:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with Cluster(brokers=1) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        fill(cluster.bootstrap, options.records)
        with running("bench", master="local[2]") as spark:
            logs.register(spark)
            results = measure(spark, cluster, options.records, options.rounds)
    if options.json:
        rows = [result._asdict() for result in results]
        print(json.dumps({"schema": SCHEMA, "load": os.getloadavg(), "results": rows}, indent=1))
        return 0
    print(f"{'case':10} {'records/s':>11} ratio worst  CPU µs   cpu  load {os.getloadavg()[0]:.1f}")
    for one in results:
        print(
            f"{one.case:10} {one.records_a_second:11,.0f} {one.ratio:5.2f} {one.worst_ratio:5.2f} "
            f"{one.cpu_us:7.2f} {one.cpu_ratio:5.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
