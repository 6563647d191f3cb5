"""Searches in one process and spread over Spark's executors, in turns.

    python bench/search_spark.py [--rounds N] [--cores N] [--small] [--json]

Three kinds, as in `holdfast lab search --spark`: seeds, many bounds (the default ladder), and one
bounds. Times are those of the searches themselves; Spark's own start, a few seconds, is reported
separately. A warm-up comes first. The ratio is that of times measured one after the other, on a
machine that may be busy; CPU times of both are printed to judge it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from holdfast.pipeline.spark.pool import SparkPool, executors
from holdfast.search import (
    WIDENING,
    Bounds,
    Question,
    explore,
    search_seeds,
    spread,
    spread_many,
    spread_seeds,
)
from holdfast.search.limits import Limits

ONE = Bounds(settled=1, crashes=1, restarts=1, elections=1, delays=3)
SMALL = Bounds(settled=1, crashes=1, restarts=1, delays=1)
SEEDS = 600
FEW_SEEDS = 20
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print one line per round, then the median ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="searches of a second, to try it")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    asked = parser.parse_args()
    began = time.perf_counter()
    rows: list[dict[str, Any]] = []
    with executors("holdfast bench", master=f"local[{asked.cores}]") as pool:
        spread(Question(bounds=SMALL), pool, pool.processes)
        start_s = time.perf_counter() - began
        for _ in range(asked.rounds):
            for kind, one, other in kinds(pool, is_small=asked.small):
                rows.append({"kind": kind, **measured(one, other)})
                if not asked.json:
                    print(LINE.format(**rows[-1]), flush=True)
    ratios = {
        kind: statistics.median(row["ratio"] for row in rows if row["kind"] == kind)
        for kind in dict.fromkeys(row["kind"] for row in rows)
    }
    if asked.json:
        print(json.dumps({"start_s": start_s, "rounds": rows, "ratios": ratios}, indent=2))
        return
    print(f"Spark's start and a warm-up took {start_s:.1f} s; medians:")
    for kind, ratio in ratios.items():
        print(f"{kind}: {ratio:.2f} times as fast")


LINE = (
    "load {load:.1f}: {kind}: {states:,} states or seeds, one process {one_s:.1f} s (CPU "
    "{one_cpu_s:.1f}), Spark {spark_s:.1f} s (CPU {spark_cpu_s:.1f}): {ratio:.2f}"
)
Search = Callable[[], int]
"""Returns how many states or seeds there were."""


def kinds(pool: SparkPool, *, is_small: bool) -> Iterator[tuple[str, Search, Search]]:
    """Each kind of search, in one process and spread."""
    last = (FEW_SEEDS if is_small else SEEDS) - 1
    limits, count = Limits(), pool.processes
    yield (
        "seeds",
        lambda: search_seeds(0, last, {}, limits).tried,
        lambda: spread_seeds(0, last, {}, limits, pool, count).tried,
    )
    ladder = [Question(bounds=rung.bounds) for rung in (WIDENING[:3] if is_small else WIDENING)]
    yield (
        "many bounds",
        lambda: sum(explore(one).coverage.distinct for one in ladder),
        lambda: sum(one.coverage.distinct for one in spread_many(ladder, pool)),
    )
    question = Question(bounds=SMALL if is_small else ONE)
    yield (
        "one bounds",
        lambda: explore(question).coverage.distinct,
        lambda: spread(question, pool, count).coverage.distinct,
    )


def measured(one: Search, other: Search) -> dict[str, Any]:
    """One pair."""
    load = os.getloadavg()[0]
    states, one_s, one_cpu_s = timed(one)
    same, spark_s, spark_cpu_s = timed(other)
    assert states == same, "spread, a search covers the same"
    return {
        "load": load,
        "states": states,
        "one_s": one_s,
        "one_cpu_s": one_cpu_s,
        "spark_s": spark_s,
        "spark_cpu_s": spark_cpu_s,
        "ratio": one_s / spark_s,
    }


def timed(search: Search) -> tuple[int, float, float]:
    """What it found, its time, and the CPU time of this process and all below it meanwhile."""
    before, began = cpu_s(), time.perf_counter()
    found = search()
    return found, time.perf_counter() - began, cpu_s() - before


def cpu_s() -> float:
    """CPU time of this process and its descendants, Java and its Python workers among them."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(stat.parent.name)
        parents[number] = int(fields[1])
        ticks[number] = int(fields[11]) + int(fields[12])

    def is_ours(process: int) -> bool:
        while process not in (0, os.getpid()):
            process = parents.get(process, 0)
        return process > 0

    return sum(count for process, count in ticks.items() if is_ours(process)) / _TICKS


if __name__ == "__main__":
    main()
