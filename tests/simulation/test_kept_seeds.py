"""Kept seeds of the whole broker: each finds its hole without the mend, and nothing with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.simulation import simulate
from tests.simulation.removed_mends import MENDS, Mend

SEEDS = Path(__file__).with_name("broker_seeds.txt")
TRIED = 20


def kept() -> dict[int, str]:
    """The seeds that once found something, with their reasons."""
    found: dict[int, str] = {}
    for number, line in enumerate(SEEDS.read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            seed = re.fullmatch(r"(\d+): (.{20,})", line)
            assert seed, f"{SEEDS.name}:{number}: write 'SEED: what it found'"
            found[int(seed[1])] = seed[2]
    return found


def seeds_of(mend: Mend) -> list[int]:
    return [seed for seed, reason in kept().items() if mend.reason in reason]


def test_every_kept_seed_has_one_mend() -> None:
    assert sorted(seed for mend in MENDS for seed in seeds_of(mend)) == sorted(kept())
    assert all(len(seeds_of(mend)) == 1 for mend in MENDS)


@pytest.mark.slow
@pytest.mark.parametrize("mend", MENDS, ids=lambda mend: mend.remove.__name__)
def test_a_kept_seed_finds_nothing_any_more(mend: Mend) -> None:
    [seed] = seeds_of(mend)
    assert simulate(seed, mend.plan).failures == ()


@pytest.mark.slow
@pytest.mark.parametrize("mend", MENDS, ids=lambda mend: mend.remove.__name__)
def test_a_kept_seed_finds_its_hole_without_the_mend(
    mend: Mend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of the simulation changes what a seed plays, so the next seeds are tried as well. If
    none of them finds the hole, look for one that does, and keep that.
    """
    mend.remove(monkeypatch)
    [seed] = seeds_of(mend)
    assert any(
        mend.finds in failure
        for tried in range(seed, seed + TRIED)
        for failure in simulate(tried, mend.plan).failures
    )
