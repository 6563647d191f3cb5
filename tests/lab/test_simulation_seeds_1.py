"""Whole brokers under seeded faults: part 1 of 4."""

from __future__ import annotations

import pytest

from tests.lab.simulated import check, parts

FRESH = parts(0, 50)
MANY = parts(1000, 1_250)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", FRESH, ids=str)
def test_a_fresh_seed_finds_nothing(seeds: range) -> None:
    check(seeds)


@pytest.mark.long
@pytest.mark.parametrize("seeds", MANY, ids=str)
def test_many_seeds_find_nothing(seeds: range) -> None:
    check(seeds)
