"""Running many seeds of the whole broker: what the files of seeds share.

They are in several files because pytest-xdist keeps a file's tests together.
"""

from __future__ import annotations

from holdfast.lab.simulation import simulate

PER_TEST = 25


def parts(first: int, count: int) -> list[range]:
    """Ranges of seeds, a test's worth each."""
    return [range(at, at + PER_TEST) for at in range(first, first + count, PER_TEST)]


def check(seeds: range) -> None:
    """Nothing fails in any of them."""
    failed = {seed: run.failures for seed in seeds if (run := simulate(seed)).failures}
    told = "".join(f"\n  holdfast lab broker {seed}: {why[0]}" for seed, why in failed.items())
    assert not failed, told
