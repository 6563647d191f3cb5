"""Whole brokers under seeded faults: new seeds find nothing.

A test runs a few seeds, so that workers share them evenly.
"""

from __future__ import annotations

import pytest

from holdfast.simulation import simulate


def parts(first: int, count: int, size: int) -> list[range]:
    """Ranges of seeds, one for each test."""
    return [range(at, at + size) for at in range(first, first + count, size)]


def check(seeds: range) -> None:
    failed = {seed: run.failures for seed in seeds if (run := simulate(seed)).failures}
    found = "".join(f"\n  holdfast lab broker {seed}: {why[0]}" for seed, why in failed.items())
    assert not failed, found


@pytest.mark.slow
@pytest.mark.parametrize("seeds", parts(0, 40, 5), ids=str)
def test_a_fresh_seed_finds_nothing(seeds: range) -> None:
    check(seeds)


@pytest.mark.long
@pytest.mark.parametrize("seeds", parts(1_000, 1_000, 20), ids=str)
def test_many_seeds_find_nothing(seeds: range) -> None:
    check(seeds)
