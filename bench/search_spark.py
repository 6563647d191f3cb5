"""One search in one process and spread over Spark's executors, in turns.

    python bench/search_spark.py [--rounds N] [--cores N] [--small] [--json]

`search` is the time of the search itself; Spark's own start, seconds once, is told apart. A warm-up
on small bounds comes first. The ratio is that of times measured one after the other, on a machine
that may be busy; CPU times of both are there to judge it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

from holdfast.lab.search import Bounds, Found, Question, explore, spread
from holdfast.pipeline.spark import running
from holdfast.pipeline.spark.pool import SparkPool

MEDIUM = Bounds(settled=1, crashes=1, restarts=1, elections=1, delays=3)
SMALL = Bounds(settled=1, crashes=1, restarts=1, delays=1)
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """A line a round, then the median ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="bounds of a second, to try it")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    asked = parser.parse_args()
    question = Question(bounds=SMALL if asked.small else MEDIUM)
    began = time.perf_counter()
    with (
        running("holdfast bench", master=f"local[{asked.cores}]") as spark,
        SparkPool(spark) as pool,
    ):
        spread(Question(bounds=SMALL), pool, pool.processes)
        start_s = time.perf_counter() - began
        rows = [measured(question, pool) for _ in range(asked.rounds)]
    ratio = statistics.median(row["ratio"] for row in rows)
    if asked.json:
        found = {"bounds": question.bounds.told(), "start_s": start_s, "rounds": rows}
        print(json.dumps({**found, "ratio": ratio}, indent=2))
        return
    print(f"{question.bounds.told()}; Spark's start and a warm-up took {start_s:.1f} s")
    for row in rows:
        print(
            "load {load:.1f}: {states:,} states, one process {one_s:.1f} s (CPU {one_cpu_s:.1f}), "
            "Spark {spark_s:.1f} s (CPU {spark_cpu_s:.1f}): {ratio:.2f}".format(**row)
        )
    print(f"median: {ratio:.2f} times as fast")


def measured(question: Question, pool: SparkPool) -> dict[str, Any]:
    """One pair."""
    one, one_cpu_s = timed(lambda: explore(question))
    other, spark_cpu_s = timed(lambda: spread(question, pool, pool.processes))
    assert one.coverage.distinct == other.coverage.distinct
    assert one.coverage.generated == other.coverage.generated
    return {
        "load": os.getloadavg()[0],
        "states": one.coverage.distinct,
        "one_s": one.coverage.seconds,
        "one_cpu_s": one_cpu_s,
        "spark_s": other.coverage.seconds,
        "spark_cpu_s": spark_cpu_s,
        "ratio": one.coverage.seconds / other.coverage.seconds,
    }


def timed(search: Any) -> tuple[Found, float]:
    """What it found, and the CPU time of this process and all below it meanwhile."""
    before = cpu_s()
    found: Found = search()
    return found, cpu_s() - before


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
