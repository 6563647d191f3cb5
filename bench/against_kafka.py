"""Holdfast and Apache Kafka side by side: the same client, alternating, medians and their ratio.

    python -m bench.against_kafka [--rounds 3] [--records 300000] [--measures start,produce]
                                  [--only Holdfast] [--json]

A round starts one of them with empty directories, warms it up, takes every measure and ends it;
then the other one. The next round begins with the other. Between them the disks are synced. On a
shared machine rates halve and double; ratios of medians and CPU seconds hold better. Progress goes
to stderr. Exit code 0 always: a shared machine is no place for a verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import load
from bench.rivals import RIVALS, Rival, sync_disks

SCHEMA = "holdfast-bench-against-kafka/1"


class Row(NamedTuple):
    """One line of the table."""

    figure: str
    title: str
    digits: int
    more_is_better: bool = False
    target: float | None = None
    """The ratio to reach, Holdfast to Kafka."""


ROWS: Final = (
    Row("start_s", "start of three to the first RF-3 topic, s", 2, target=1 / 7),
    Row("start_cpu_s", "  CPU of the brokers for that, s", 2),
    Row("create_topic_ms", "create topic until leaders known, ms", 1, target=0.5),
    Row("produce_per_s", "produce 1 KiB acks=all, records/s", 0, True, 2.0),
    Row("produce_cpu_s_per_gb", "  CPU of the brokers, s/GB", 2, target=0.4),
    Row("produce_100_per_s", "produce 100 B acks=all, records/s", 0, True, 1.5),
    Row("produce_100_cpu_us", "  CPU of the brokers, µs/record", 2),
    Row("idempotent_per_s", "idempotent 1 KiB, records/s", 0, True, 1.5),
    Row("idempotent_cpu_s_per_gb", "  CPU of the brokers, s/GB", 2),
    Row("requests_per_s", "one record a request acks=all, requests/s", 0, True, 4.0),
    Row("request_cpu_us", "  CPU of the brokers, µs/request", 0),
    Row("latency_p50_ms", "latency acks=all p50, ms", 2, target=0.6),
    Row("latency_p99_ms", "latency acks=all p99, ms", 2, target=0.4),
    Row("consume_per_s", "consume 1 KiB, records/s", 0, True, 1.1),
    Row("consume_cpu_s_per_gb", "  CPU of the brokers, s/GB", 2),
    Row("memory_mb", "memory of a broker after the load, MB", 0, target=1 / 6),
    Row("idle_percent", "CPU of an idle broker, % of a core", 1),
    Row("fail_over_s", "kill -9 of a leader to a new acknowledgement, s", 2, target=1 / 8),
)

Figures = dict[str, list[float]]


def take(kind: type[Rival], measures: Sequence[str], records: int) -> load.Figures:
    """One rival's part of a round."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", ignore_cleanup_errors=True) as made:
        rival = kind(Path(made))
        rival.prepare()
        sync_disks()
        stage = load.Stage(rival, records)
        try:
            stage.started_s = time.perf_counter()
            rival.start()
            figures = load.start(stage)
            if set(measures) - {"start"}:
                say(f"  {kind.name}: up after {figures['start_s']:.2f} s, warming up")
                load.warm_up(stage)
            for measure in measures:
                if measure != "start":
                    sync_disks()
                    got = load.MEASURES[measure](stage)
                    told = ", ".join(f"{name} {value:.4g}" for name, value in got.items())
                    say(f"  {kind.name}: {told}")
                    figures |= got
        finally:
            rival.stop()
    return figures


def compare(
    kinds: Sequence[type[Rival]], measures: Sequence[str], records: int, rounds: int
) -> dict[str, Figures]:
    """All figures of all rounds, by rival."""
    taken: dict[str, Figures] = {kind.name: {} for kind in kinds}
    for number in range(rounds):
        # Whoever is second has the warmer machine; so they take turns.
        for kind in kinds if number % 2 == 0 else tuple(reversed(kinds)):
            say(f"round {number + 1} of {rounds}: {kind.name}")
            for name, value in take(kind, measures, records).items():
                taken[kind.name].setdefault(name, []).append(value)
    return taken


def table(taken: dict[str, Figures]) -> list[str]:
    """Markdown: medians, their ratio, and what it should be."""
    names = list(taken)
    lines = [
        f"| measure | {' | '.join(names)} | ratio | to reach |",
        f"|---|{'---|' * len(names)}---|---|",
    ]
    for row in ROWS:
        cells = [_median(taken[name], row.figure) for name in names]
        if all(cell is None for cell in cells):
            continue
        told = ["–" if cell is None else f"{cell:,.{row.digits}f}" for cell in cells]
        ours, theirs = cells[0], cells[-1]
        both = len(cells) == 2 and ours is not None and theirs
        ratio = f"{ours / theirs:.2f}" if both and ours is not None and theirs else ""
        sign = "≥" if row.more_is_better else "≤"
        target = "" if row.target is None else f"{sign} {row.target:.2g}"
        lines.append(f"| {row.title} | {' | '.join(told)} | {ratio} | {target} |")
    return lines


def _median(figures: Figures, name: str) -> float | None:
    return statistics.median(figures[name]) if name in figures else None


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Holdfast and Apache Kafka side by side.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=300_000, help="of 1 KiB, in a measure")
    parser.add_argument("--measures", default=",".join(load.MEASURES), help="some of the default")
    parser.add_argument("--only", choices=[kind.name for kind in RIVALS], help="one of them")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    measures = [name for name in load.MEASURES if name in options.measures.split(",")]
    if unknown := set(options.measures.split(",")) - set(measures):
        parser.error(f"no such measure: {', '.join(sorted(unknown))}; {', '.join(load.MEASURES)}")
    kinds = [kind for kind in RIVALS if options.only in (None, kind.name)]
    before = os.getloadavg()[0]
    taken = compare(kinds, measures, options.records, options.rounds)
    if options.json:
        print(json.dumps({"schema": SCHEMA, "records": options.records, "figures": taken}))
        return 0
    print(
        f"RF 3, min.insync.replicas 2, 6 partitions, {options.records:,} records, medians of "
        f"{options.rounds} rounds; {os.cpu_count()} cores, load before {before:.1f}"
    )
    print("\n".join(table(taken)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
