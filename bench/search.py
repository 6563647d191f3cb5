"""How fast the exhaustive search is: distinct states and steps a second of CPU time.

    python bench/search.py

CPU time, because a busy machine must not look like a slow search.
"""

from __future__ import annotations

import os
import time

from holdfast.lab.limits import peak_memory
from holdfast.lab.search import ANY, Bounds, Question, explore

BOUNDS = (
    Bounds(elections=1, delays=ANY),
    Bounds(records=2, elections=2, delays=1),
    Bounds(settled=1, power_losses=1, crashes=1, restarts=2, delays=1),
    Bounds(settled=1, crashes=1, restarts=1, elections=1, delays=2),
)


def main() -> None:
    """One line a search."""
    print(f"load {os.getloadavg()[0]:.1f}")
    for bounds in BOUNDS:
        began = time.process_time()
        found = explore(Question(bounds=bounds))
        seconds = time.process_time() - began
        coverage = found.coverage
        print(
            f"{bounds.told()}: {found.verdict}, {coverage.distinct:,} states, "
            f"{coverage.generated:,} steps, {seconds:.1f} s: "
            f"{coverage.distinct / seconds:,.0f} states/s, {coverage.generated / seconds:,.0f} "
            f"steps/s, {found.runs / coverage.generated:.1%} of the steps ran the core, "
            f"peak {peak_memory() / 2**20:,.0f} MiB"
        )


if __name__ == "__main__":
    main()
