"""How fast the exhaustive search is: distinct states and steps per second of CPU time.

    python bench/search.py [--json]

CPU time, because a busy machine must not look like a slow search.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

from holdfast.search import ANY, Bounds, Question, explore
from holdfast.search.limits import peak_memory

BOUNDS = (
    Bounds(elections=1, delays=ANY),
    Bounds(records=2, elections=2, delays=1),
    Bounds(settled=1, power_losses=1, crashes=1, restarts=2, delays=1),
    Bounds(settled=1, crashes=1, restarts=1, elections=1, delays=2),
)


def main() -> None:
    """Print one line per search."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    as_json = parser.parse_args().json
    rows = [measured(bounds) for bounds in BOUNDS]
    if as_json:
        print(json.dumps({"load": os.getloadavg()[0], "searches": rows}, indent=2))
        return
    print(f"load {os.getloadavg()[0]:.1f}")
    for row in rows:
        print(
            "{bounds}: {verdict}, {states:,} states, {steps:,} steps in {cpu_s:.1f} s: "
            "{states_per_s:,.0f} states/s, {steps_per_s:,.0f} steps/s, {core_share:.1%} of the "
            "steps ran the core, peak {peak_mib:,.0f} MiB".format(**row)
        )


def measured(bounds: Bounds) -> dict[str, Any]:
    """One search, by CPU time."""
    began = time.process_time()
    found = explore(Question(bounds=bounds))
    seconds = time.process_time() - began
    coverage = found.coverage
    return {
        "bounds": bounds.describe(),
        "verdict": found.verdict,
        "states": coverage.distinct,
        "steps": coverage.generated,
        "cpu_s": seconds,
        "states_per_s": coverage.distinct / seconds,
        "steps_per_s": coverage.generated / seconds,
        "core_share": found.runs / coverage.generated,
        "peak_mib": peak_memory() / 2**20,
    }


if __name__ == "__main__":
    main()
