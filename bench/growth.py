"""The cost of idle partitions: CPU of requests to others, start, idling, memory.

    python -m bench.growth [--idle 1000] [--many 5000] [--requests 20000] [--json]

Three Holdfast brokers, replication factor 3, so every broker has a replica of every partition. Wall
time means little on a shared machine; CPU seconds of the brokers, from /proc, are more stable.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import KafkaException

from bench import load
from bench.against_kafka import say
from bench.rivals import Holdfast, cpu_of, memory_mb, sync_disks

SCHEMA: Final = "holdfast-bench-growth/1"
A_TOPIC: Final = 500
"""Partitions of one topic."""
IDLE_S: Final = 10.0
PAUSE_S: Final = 0.05


class Row(NamedTuple):
    """One line of the table."""

    figure: str
    title: str
    digits: int
    target: str = ""


ROWS: Final = (
    Row("request_cpu_us", "one-record request among 6 partitions, CPU of the brokers, µs", 0),
    Row("request_idle_cpu_us", "the same with {idle} idle partitions beside them", 0),
    Row("request_ratio", "  ratio", 2, "≤ 1.3"),
    Row("create_s", "create {many} partitions, in topics of 500, s", 1),
    Row("create_cpu_s", "  CPU of the three brokers, s", 1),
    Row("memory_kib", "memory a partition, KiB a broker", 1, "< 20"),
    Row("idle_percent", "{many} idle partitions, CPU of a broker, % of a core", 1, "< 10"),
    Row("start_s", "start of all three with them, until every partition is led, s", 1, "< 20"),
    Row("start_cpu_s", "  CPU of the three brokers, s", 1),
    Row("start_whole_s", "  until every ISR is whole, s", 1),
    Row("restart_idle_percent", "idle after that, CPU of a broker, % of a core", 1, "< 10"),
)


@contextmanager
def brokers(requests: int) -> Iterator[load.Stage]:
    """Three, with a topic of one partition."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", ignore_cleanup_errors=True) as made:
        rival = Holdfast(Path(made))
        rival.prepare()
        stage = load.Stage(rival, 10 * requests)
        try:
            stage.started_s = time.perf_counter()
            rival.start()
            load.start(stage)
            yield stage
        finally:
            rival.stop()


def grow(stage: load.Stage, partitions: int) -> None:
    """So many idle partitions more; returns when all of them are in sync."""
    for first in range(0, partitions, A_TOPIC):
        stage.new_topic(min(A_TOPIC, partitions - first))


def requests_beside(idle: int, requests: int) -> load.Figures:
    """CPU of one-record requests, before and after there are idle partitions."""
    with brokers(requests) as stage:
        load.one_record_requests(stage)  # warms up
        before = load.one_record_requests(stage)["request_cpu_us"]
        grow(stage, idle)
        sync_disks()
        after = load.one_record_requests(stage)["request_cpu_us"]
    return {
        "request_cpu_us": before,
        "request_idle_cpu_us": after,
        "request_ratio": after / before,
    }


def many(partitions: int) -> load.Figures:
    """Create them, let them idle, and start with them."""
    with brokers(1000) as stage:
        pids = stage.rival.pids.values()
        small = sum(map(memory_mb, pids))
        cpu, began = stage.cpu(), time.perf_counter()
        grow(stage, partitions)
        figures = {
            "create_s": time.perf_counter() - began,
            "create_cpu_s": stage.cpu().since(cpu).total,
            "memory_kib": (sum(map(memory_mb, pids)) - small) * 1024 / 3 / partitions,
        }
        say(f"  created: {figures}")
        figures["idle_percent"] = idle_percent(stage)
        stage.rival.leave()
        sync_disks()
        began = time.perf_counter()
        stage.rival.start()
        figures["start_s"] = until_led(stage, partitions, began, isr=1)
        figures["start_cpu_s"] = stage.cpu().total
        figures["start_whole_s"] = until_led(stage, partitions, began, isr=3)
        figures["restart_idle_percent"] = idle_percent(stage)
    return figures


def idle_percent(stage: load.Stage) -> float:
    """Of the busiest broker: after a checkpoint or two, when nothing is left to do."""
    time.sleep(IDLE_S)
    before = {pid: cpu_of([pid]).total for pid in stage.rival.pids.values()}
    time.sleep(IDLE_S)
    return max(cpu_of([pid]).total - cpu for pid, cpu in before.items()) / IDLE_S * 100


def until_led(stage: load.Stage, partitions: int, began_s: float, isr: int) -> float:
    """Seconds until clients see a leader of every partition, and so many replicas in sync."""
    while True:
        try:
            topics = stage.admin.list_topics(timeout=5).topics.values()
        except KafkaException:
            topics = {}.values()
        all_there = [one for topic in topics for one in topic.partitions.values()]
        led = [one for one in all_there if one.leader >= 0 and len(one.isrs) >= isr]
        if len(led) > partitions:  # with that of the first topic
            return time.perf_counter() - began_s
        assert time.perf_counter() - began_s < 3 * load.PATIENCE_S, f"{len(led)} are led"
        time.sleep(PAUSE_S)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What idle partitions cost.")
    parser.add_argument("--idle", type=int, default=1000, help="partitions beside busy ones")
    parser.add_argument("--many", type=int, default=5000, help="partitions to start with")
    parser.add_argument("--requests", type=int, default=20_000, help="of one record; 0: none")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    before = os.getloadavg()[0]
    figures: load.Figures = {}
    if options.requests:
        figures |= requests_beside(options.idle, options.requests)
        say(f"  requests: {figures}")
    if options.many:
        figures |= many(options.many)
    if options.json:
        print(json.dumps({"schema": SCHEMA, "figures": figures}))
        return 0
    print(f"RF 3; {os.cpu_count()} cores, load before {before:.1f}\n")
    print("| measure | value | to reach |\n|---|---|---|")
    for row in ROWS:
        if row.figure in figures:
            title = row.title.format(idle=f"{options.idle:,}", many=f"{options.many:,}")
            print(f"| {title} | {figures[row.figure]:,.{row.digits}f} | {row.target} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
