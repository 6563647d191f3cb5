"""Kept seeds of the whole broker: each finds its bug without the fix, and nothing with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.simulation import simulate
from tests.simulation.removed_fixes import FIXES, RemovableFix

SEEDS = Path(__file__).with_name("broker_seeds.txt")
TRIED = 40


def kept() -> list[tuple[int, str]]:
    """The seeds that once found a bug, with the reasons."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(SEEDS.read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            seed = re.fullmatch(r"(\d+): (.{20,})", line)
            assert seed, f"{SEEDS.name}:{number}: write 'SEED: what it found'"
            found.append((int(seed[1]), seed[2]))
    return found


def seeds_of(fix: RemovableFix) -> list[int]:
    return [seed for seed, reason in kept() if fix.reason in reason]


def test_every_kept_seed_has_one_fix() -> None:
    assert len(kept()) == len(FIXES)
    assert all(len(seeds_of(fix)) == 1 for fix in FIXES)


@pytest.mark.slow
@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.remove.__name__)
def test_a_kept_seed_finds_nothing_with_the_fix(fix: RemovableFix) -> None:
    [seed] = seeds_of(fix)
    assert simulate(seed, fix.plan).failures == ()


@pytest.mark.slow
@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.remove.__name__)
def test_a_kept_seed_finds_its_bug_without_the_fix(
    fix: RemovableFix, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its fix a bug is found by the kept seed or by one of the next seeds.

    A change of the simulation changes what a seed plays. If none of these seeds finds the bug,
    search for one that does, and keep it.
    """
    fix.remove(monkeypatch)
    [seed] = seeds_of(fix)
    assert any(
        fix.finds in failure
        for tried in range(seed, seed + TRIED)
        for failure in simulate(tried, fix.plan).failures
    )
