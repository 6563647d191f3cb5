"""The cost of a broker's metrics: CPU of one-record requests, and of a scrape of many partitions.

    python -m bench.metrics [--rounds 10] [--requests 5000] [--partitions 5000] [--json]

In each round two new clusters of three brokers run beside each other, one with metrics and one
without. They take turns, and the one that begins changes. Nobody scrapes meanwhile: a scraper in
the same process would slow down the producer. What a scrape costs is measured apart, of a broker
with few partitions and of one with many.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bench import load
from bench.against_kafka import say
from bench.growth import grow
from bench.rivals import Holdfast, cpu_of, free_port, sync_disks
from holdfast.cluster.client.client import Client

SCHEMA: Final = "holdfast-bench-metrics/1"
SETTLE_S: Final = 10.0
SCRAPES: Final = 20
PROBES_S: Final = 5.0
OFF, ON = "off", "on"


class Measured(Holdfast):
    """Three brokers that serve metrics."""

    name = "Holdfast with metrics"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.metrics_ports = {node: free_port() for node in self.ports}

    def prepare(self) -> None:
        super().prepare()
        for node, port in self.metrics_ports.items():
            with self._properties(node).open("a") as file:
                file.write(f"holdfast.metrics.listener=127.0.0.1:{port}\n")

    def scrape(self, node: int) -> int:
        """The size of a broker's page."""
        address = f"http://127.0.0.1:{self.metrics_ports[node]}/metrics"
        with urllib.request.urlopen(address) as answer:
            return len(answer.read())


@contextmanager
def cluster(kind: type[Holdfast], records: int) -> Iterator[load.Stage]:
    """Three brokers with a topic."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", ignore_cleanup_errors=True) as made:
        rival = kind(Path(made))
        rival.prepare()
        stage = load.Stage(rival, records)
        try:
            rival.start()
            stage.started_s = time.perf_counter()
            load.start(stage)
            yield stage
        finally:
            rival.stop()


def alternated(rounds: int, count: int) -> dict[str, list[load.Figures]]:
    """The same requests to two clusters in turns, which are new in each round.

    Three runs with one pair of clusters each gave ratios of 1.00, 1.04 and 1.20. So one pair would
    say little.
    """
    found: dict[str, list[load.Figures]] = {OFF: [], ON: []}
    kinds = {OFF: Holdfast, ON: Measured}
    for number in range(rounds):
        names = (OFF, ON) if number % 2 == 0 else (ON, OFF)
        with ExitStack() as stack:
            stages = {name: stack.enter_context(cluster(kinds[name], 10 * count)) for name in names}
            for stage in stages.values():
                load.one_record_requests(stage)  # warms up
            for name in (*names, *reversed(names)):
                sync_disks()
                figures = load.one_record_requests(stages[name])
                found[name].append(figures)
                say(
                    f"  round {number + 1}, {name}: {figures['request_cpu_us']:.0f} µs of CPU, "
                    f"{figures['requests_per_s']:.0f} requests/s"
                )
    return found


def scrapes(partitions: int) -> load.Figures:
    """A scrape of a broker with many partitions, and what another client notices of it."""
    with cluster(Measured, 1000) as stage:
        rival, node = stage.rival, 1
        assert isinstance(rival, Measured)
        rival.scrape(node)  # loads the client library
        few_s = scrape_cpu_s(rival, node)
        grow(stage, partitions)
        time.sleep(SETTLE_S)
        alone = longest_wait_ms(rival.ports[node], lambda: None)
        times: list[float] = []
        size = 0

        def scrape() -> None:
            nonlocal size
            began = time.perf_counter()
            size = rival.scrape(node)
            times.append(time.perf_counter() - began)

        figures = {"scrape_few_cpu_s": few_s, "scrape_cpu_s": scrape_cpu_s(rival, node)}
        scrape()
        figures |= {"scrape_s": times[0]}
        beside = longest_wait_ms(rival.ports[node], scrape)
        waits = {"wait_ms": alone[0], "wait_p99_ms": alone[1]}
        waits |= {"wait_scraped_ms": beside[0], "wait_scraped_p99_ms": beside[1]}
        return figures | waits | {"page_mb": size / 1e6}


def scrape_cpu_s(rival: Measured, node: int) -> float:
    """CPU of a broker for one scrape."""
    before = cpu_of([rival.pids[node]])
    for _ in range(SCRAPES):
        rival.scrape(node)
    return cpu_of([rival.pids[node]]).since(before).total / SCRAPES


def longest_wait_ms(port: int, beside: Callable[[], None]) -> tuple[float, float]:
    """The longest and the 99th percentile of Metadata requests, while something else repeats."""
    waits: list[float] = []
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.wait(0.05):
            beside()

    thread = threading.Thread(target=repeat)
    thread.start()
    ends = time.perf_counter() + PROBES_S
    with Client([("127.0.0.1", port)]) as client:
        while time.perf_counter() < ends:
            began = time.perf_counter()
            client.metadata([])
            waits.append((time.perf_counter() - began) * 1000)
    is_over.set()
    thread.join()
    return max(waits), statistics.quantiles(waits, n=100)[98]


def summary(found: dict[str, list[load.Figures]]) -> load.Figures:
    """Medians and lower quartiles. Other work on the machine only adds to the CPU of a request."""
    figures: load.Figures = {}
    for name, rounds in found.items():
        cpu = [one["request_cpu_us"] for one in rounds]
        figures[f"request_cpu_us_{name}"] = statistics.median(cpu)
        figures[f"request_cpu_us_{name}_quartile"] = statistics.quantiles(cpu, n=4)[0]
        figures[f"requests_per_s_{name}"] = statistics.median(
            one["requests_per_s"] for one in rounds
        )
    for suffix in ("", "_quartile"):
        on, off = (figures[f"request_cpu_us_{name}{suffix}"] for name in (ON, OFF))
        figures[f"request_cpu_ratio{suffix}"] = on / off
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What metrics cost.")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=5000, help="of one record, a round")
    parser.add_argument("--partitions", type=int, default=5000, help="for the scrape; 0: none")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    before = os.getloadavg()[0]
    figures: load.Figures = {}
    if options.rounds > 1:
        figures |= summary(alternated(options.rounds, options.requests))
    if options.partitions:
        figures |= scrapes(options.partitions)
    if options.json:
        print(json.dumps({"schema": SCHEMA, "figures": figures}))
        return 0
    print(f"RF 3; {os.cpu_count()} cores, load before {before:.1f}\n")
    print("| measure | value |\n|---|---|")
    for name, value in figures.items():
        print(f"| {name} | {value:,.3f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
