"""Whole brokers under seeded faults: part 4 of 4."""

from __future__ import annotations

import pytest

from tests.lab.simulated import check, parts

FRESH = parts(150, 50)
MANY = parts(4750, 1_250)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", FRESH, ids=str)
def test_a_fresh_seed_finds_nothing(seeds: range) -> None:
    check(seeds)


@pytest.mark.long
@pytest.mark.parametrize("seeds", MANY, ids=str)
def test_many_seeds_find_nothing(seeds: range) -> None:
    check(seeds)
