"""Holdfast and Apache Kafka side by side: the same client, alternating, medians and their ratio.

    python -m bench.against_kafka [--rounds 3] [--records 400000] [--warm-up 2000000]
                                  [--measures start,produce] [--only Holdfast] [--before DIR]
                                  [--json]

With --before, Kafka's place is taken by the Holdfast of another checkout: what a change costs.

1. `start`: in every round each starts with empty directories and is killed again.
2. Both start once more and stay up. Each is warmed up with two million records: a JVM needs minutes
   of load before its figures mean anything.
3. Each measure is taken of one, then of the other, within the same minute, on memory that was used
   just before. SIGSTOP keeps the one that is not measured from using the processors. Every round
   begins with another measure, and the cluster that goes first alternates.
4. `fail-over` comes last, because a broker that was killed starts cold: Holdfast with its embedded
   store, Holdfast on ZooKeeper, and Kafka.

On a shared machine rates halve and double; ratios of medians and processor time hold better.
Progress goes to stderr. The exit code is always 0: a shared machine is no place for a verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bench import load
from bench.rivals import (
    RIVALS,
    Holdfast,
    HoldfastBefore,
    HoldfastOnZooKeeper,
    Kafka,
    Rival,
    recycle_memory,
    sync_disks,
)

SCHEMA = "holdfast-bench-against-kafka/2"
START: Final = "start"
FAIL_OVER: Final = "fail-over"
NAMES: Final = (START, *load.MEASURES, FAIL_OVER)


class Row(NamedTuple):
    """One line of the table."""

    figure: str
    title: str
    digits: int
    more_is_better: bool = False


ROWS: Final = (
    Row("start_s", "start of three to the first RF-3 topic, s", 2),
    Row("start_cpu_s", "  CPU of the brokers for that, s", 2),
    Row("create_topic_ms", "create topic until leaders known, ms", 1),
    Row("produce_per_s", "produce 1 KiB acks=all, records/s", 0, True),
    Row("produce_cpu_s_per_gb", "  CPU of the brokers, s/GB", 2),
    Row("produce_system_s_per_gb", "  of that in the kernel, s/GB", 2),
    Row("produce_100_per_s", "produce 100 B acks=all, records/s", 0, True),
    Row("produce_100_cpu_us", "  CPU of the brokers, µs/record", 2),
    Row("produce_100_system_us", "  of that in the kernel, µs/record", 2),
    Row("idempotent_per_s", "idempotent 1 KiB, records/s", 0, True),
    Row("idempotent_cpu_s_per_gb", "  CPU of the brokers, s/GB", 2),
    Row("idempotent_system_s_per_gb", "  of that in the kernel, s/GB", 2),
    Row("requests_per_s", "one record per request acks=all, requests/s", 0, True),
    Row("request_cpu_us", "  CPU of the brokers, µs/request", 0),
    Row("request_system_us", "  of that in the kernel, µs/request", 0),
    Row("latency_p50_ms", "latency acks=all p50, ms", 2),
    Row("latency_p99_ms", "latency acks=all p99, ms", 2),
    Row("consume_per_s", "consume 1 KiB, records/s", 0, True),
    Row("consume_cpu_s_per_gb", "  CPU of the brokers, s/GB", 2),
    Row("consume_system_s_per_gb", "  of that in the kernel, s/GB", 2),
    Row("memory_mb", "memory of a broker after the load, MB", 0),
    Row("idle_percent", "CPU of an idle broker, % of a core", 1),
    Row("fail_over_s", "kill -9 of a leader to a new acknowledgement, s", 2),
)

Figures = dict[str, list[float]]
Taken = dict[str, Figures]


@contextmanager
def running(kind: type[Rival], records: int, taken: Taken) -> Iterator[load.Stage]:
    """A cluster with empty directories, once it serves; the time it took is noted."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", ignore_cleanup_errors=True) as made:
        rival = kind(Path(made))
        try:
            rival.prepare()
            sync_disks()
            stage = load.Stage(rival, records)
            stage.started_s = time.perf_counter()
            rival.start()
            note(taken, kind, load.start(stage))
            yield stage
        finally:
            rival.stop()


def note(taken: Taken, kind: type[Rival], figures: load.Figures) -> None:
    """Keep figures, and show them as progress."""
    shown = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
    say(f"  {kind.name}: {shown}")
    for name, value in figures.items():
        taken[kind.name].setdefault(name, []).append(value)


def alternated(kinds: Sequence[type[Rival]], number: int) -> Sequence[type[Rival]]:
    """The second has the warmer machine, so the first place alternates."""
    return kinds if number % 2 == 0 else tuple(reversed(kinds))


def take_starts(kinds: Sequence[type[Rival]], rounds: int, taken: Taken) -> None:
    """Start with empty directories, again and again."""
    for number in range(rounds):
        say(f"start, round {number + 1} of {rounds}")
        for kind in alternated(kinds, number):
            with running(kind, 0, taken):
                pass


def take_warm(
    kinds: Sequence[type[Rival]],
    measures: Sequence[str],
    options: argparse.Namespace,
    taken: Taken,
) -> None:
    """All measures of clusters that stay up, in turns."""
    with ExitStack() as stack:
        stages = {}
        for kind in kinds:
            stages[kind] = stack.enter_context(running(kind, options.records, taken))
            say(f"  {kind.name}: warming up with {options.warm_up:,} records")
            load.warm_up(stages[kind], options.warm_up)
            stages[kind].rival.suspend()
        for number in range(options.rounds):
            first = number * len(measures) // options.rounds
            for place, measure in enumerate([*measures[first:], *measures[:first]]):
                say(f"round {number + 1} of {options.rounds}: {measure}")
                for kind in alternated(kinds, number + place):
                    note(taken, kind, take_one(stages[kind], measure))


def take_one(stage: load.Stage, measure: str) -> load.Figures:
    """One measure of a cluster that is suspended before and afterwards."""
    stage.rival.resume()
    try:
        load.settle(stage)
        recycle_memory()
        sync_disks()
        return load.MEASURES[measure](stage)
    finally:
        stage.rival.suspend()


def take_fail_overs(
    kinds: Sequence[type[Rival]], options: argparse.Namespace, taken: Taken
) -> None:
    """Kill a leader, and start it again; each cluster by itself."""
    for kind in kinds:
        say(f"fail-over: {kind.name}")
        with running(kind, options.records, taken) as stage:
            load.warm_up(stage, options.warm_up // 10)
            for _ in range(options.rounds):
                note(taken, kind, load.fail_over(stage))


def table(taken: Taken) -> list[str]:
    """Markdown: medians, and the ratio of Holdfast's to the other's."""
    names = [name for name, figures in taken.items() if figures]
    lines = [
        f"| measure | {' | '.join(names)} | ratio |",
        f"|---|{'---|' * len(names)}---|",
    ]
    for row in ROWS:
        cells = {name: _median(taken[name], row.figure) for name in names}
        if any(cell is not None for cell in cells.values()):
            shown = ["–" if cell is None else f"{cell:,.{row.digits}f}" for cell in cells.values()]
            ours = cells.get(Holdfast.name)
            theirs = cells.get(Kafka.name) or cells.get(HoldfastBefore.name)
            ratio = f"{ours / theirs:.2f}" if ours is not None and theirs else ""
            lines.append(f"| {row.title} | {' | '.join(shown)} | {ratio} |")
    return lines


def _median(figures: Figures, name: str) -> float | None:
    return statistics.median(figures[name]) if name in figures else None


def python_build() -> str:
    """The interpreter, and whether it was built with profile-guided optimisation."""
    arguments = str(sysconfig.get_config_var("CONFIG_ARGS"))
    optimised = "--enable-optimizations" in arguments
    return f"Python {platform.python_version()} {'with' if optimised else 'without'} PGO"


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Holdfast and Apache Kafka side by side.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=400_000, help="of 1 KiB, in a measure")
    parser.add_argument("--warm-up", type=int, default=2_000_000, help="records before that")
    parser.add_argument("--measures", default=",".join(NAMES), help="some of the default")
    parser.add_argument("--only", choices=[kind.name for kind in RIVALS], help="one of them")
    parser.add_argument("--before", type=Path, help="compare with this checkout, not with Kafka")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    options.measures = options.measures.split(",")
    if unknown := set(options.measures) - set(NAMES):
        parser.error(f"no such measure: {', '.join(sorted(unknown))}; {', '.join(NAMES)}")
    return options


def compare(kinds: Sequence[type[Rival]], options: argparse.Namespace) -> Taken:
    """All figures of all rounds, by cluster."""
    all_kinds: list[type[Rival]] = [*kinds]
    if HoldfastBefore not in kinds:
        all_kinds.append(HoldfastOnZooKeeper)
    taken: Taken = {kind.name: {} for kind in all_kinds}
    if START in options.measures:
        take_starts(kinds, options.rounds, taken)
    measures = [name for name in load.MEASURES if name in options.measures]
    if measures:
        take_warm(kinds, measures, options, taken)
    if FAIL_OVER in options.measures:
        take_fail_overs(all_kinds if Holdfast in kinds else kinds, options, taken)
    return taken


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = options_of(arguments)
    kinds: list[type[Rival]] = [kind for kind in RIVALS if options.only in (None, kind.name)]
    if options.before is not None:
        HoldfastBefore.checkout = options.before.resolve()
        kinds = [Holdfast, HoldfastBefore]
    before = os.getloadavg()[0]
    taken = compare(kinds, options)
    if options.json:
        about = {"schema": SCHEMA, "python": python_build(), "records": options.records}
        print(json.dumps({**about, "figures": taken}))
        return 0
    print(
        f"RF 3, min.insync.replicas 2, 6 partitions, {options.records:,} records, warmed up with "
        f"{options.warm_up:,}, medians of {options.rounds} rounds; {os.cpu_count()} cores, load "
        f"before {before:.1f}, {python_build()}\n"
    )
    print("\n".join(table(taken)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
