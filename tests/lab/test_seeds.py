"""Seeded runs: with every guard nothing fails, one seed is one run, and a missing guard is caught.

`seeds.txt` keeps the seeds that once found something. The mutants below are cores with one guard
taken out or one switch turned; each lists seeds that catch it. A change of the core changes what a
seed plays: if none of the listed ones catches a mutant any more, `pytest tests/lab -k within -s`
finds others.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.core import guard_names
from holdfast.lab import SeededRun, build, run_seed
from tests.support.hash_seeds import printed

SEEDS = Path(__file__).with_name("seeds.txt")
FRESH = range(1, 61)
MANY = range(1_000, 1_400)
WITHIN = 200
"""Random search must catch each mutant of the table within this many seeds, from 0 on."""
SETTINGS = {"min_insync_replicas": "2", "replica_lag_time_max_ms": "1500"}

MUTANTS: dict[str, tuple[int, ...]] = {
    "without=(higher-epoch-only)": (0, 6, 10),
    "without=(joiner-reached-high-watermark)": (6, 2, 3),
    "without=(joiner-reached-epoch-start)": (180,),
    "without=(stale-answer-by-offset)": (0, 2, 5),
    "without=(fence-fetch)": (54,),
    "without=(fence-truncation)": (77, 163, 177),
    "without=(truncate-on-missed-epoch)": (3, 54, 116),
    "without=(maximal-isr)": (7, 8, 31),
    "without=(eligible-leaders)": (9, 16, 39),
    "without=(best-log-recovery)": (39, 45, 167),
    "without=(out-of-range-diverges)": (0, 39, 102),
    "without=(offline-on-io-error)": (7, 2, 5),
    "truncation=high-watermark": (7, 3, 6),
    "isr_update=optimistic": (3, 0, 6),
}
"""A mutant of the core, and the seeds that catch it. One of them is enough."""

NOT_CAUGHT = {
    # These need two rare things in one short moment.
    "registration-incarnation": "an answer of the store must outlive a power loss of its broker",
    "forget-non-isr-followers": "a leader must miss a whole leader epoch between two of its own",
    "joiner-position-known": "a leader must miss a whole leader epoch between two of its own",
    "isr-change-partition-epoch": "a copy of a proposal must arrive when its member has left again",
    "joiner-broker-epoch": "a fetch must outlive the disk of the broker that sent it",
    "answer-names-epoch": "two short leader epochs without contact, and an unnoticed commit",
    "epoch-at-election": "a leader epoch without a record between two that share an offset",
    # Another guard stands in front of these.
    "stale-answer-by-epoch": "stale-answer-by-offset drops nearly all of them first",
    "fence-high-watermark": "fence-fetch refuses such a fetch before it is looked at",
    "fence-isr-expand": "fence-fetch refuses such a fetch before it is looked at",
    "reread-partition-epoch": "the answer and the state must both get lost, and the question not",
    # Seeded runs do not have these faults and readers.
    "keep-first-epoch": "no checkpoint of epochs gets lost",
    "consumer-epoch-check": "without unclean elections nothing is truncated below a reader",
    "eligible-cleared-first": "nobody changes settings",
    "follower-read-bound": "the reader asks the leader only",
    "flush-before-claim": "a flush takes no time (in runs of the whole broker it does)",
}
"""Guards whose removal random search does not catch within the bound, and why. Each has a scenario
instead (tests/scenarios/test_catalogue.py checks that)."""


def kept() -> dict[int, str]:
    """The seeds of the file with their reasons."""
    found: dict[int, str] = {}
    for number, line in enumerate(SEEDS.read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            seed = re.fullmatch(r"(\d+): (.{20,})", line)
            assert seed, f"{SEEDS.name}:{number}: write 'SEED: what it found'"
            assert int(seed[1]) not in found, f"{SEEDS.name}:{number}: {seed[1]} is there already"
            found[int(seed[1])] = seed[2]
    return found


def mutated(seed: int, mutant: str) -> SeededRun:
    key, _, value = mutant.partition("=")
    return run_seed(seed, *build({**SETTINGS, key: value}, 3))


def check(run: SeededRun) -> None:
    again = f"holdfast lab replay {run.plan.seed}"
    assert run.failures == (), again
    assert run.acknowledged > 0, again


def test_the_kept_seeds_have_their_reasons() -> None:
    assert {97, 201} <= set(kept())


@pytest.mark.parametrize("seed", kept())
def test_a_kept_seed_finds_nothing_any_more(seed: int) -> None:
    check(run_seed(seed))


@pytest.mark.parametrize("seed", FRESH)
def test_a_fresh_seed_finds_nothing(seed: int) -> None:
    check(run_seed(seed))


@pytest.mark.long
def test_many_seeds_find_nothing() -> None:
    failed = {seed: run.failures for seed in MANY if (run := run_seed(seed)).failures}
    assert failed == {}


def test_seeds_differ_and_together_try_every_fault() -> None:
    runs = [run_seed(seed) for seed in range(8)]
    assert len({run.trace_hash for run in runs}) == len(runs)
    tried = {fault for run in runs for fault in run.plan.faults}
    assert {"crash", "power-loss", "pause", "cut", "one-way-cut", "loss", "duplication"} <= tried


def test_one_seed_is_one_run_under_any_hash_seed() -> None:
    program = (
        "import json; from holdfast.lab import run_seed; "
        "print(json.dumps([run_seed(seed).trace_hash for seed in (1, 97, 201)]))"
    )
    here = [run_seed(seed).trace_hash for seed in (1, 97, 201)]
    assert printed(program) == [here, here]
    assert len(set(here)) == 3


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught(mutant: str) -> None:
    seeds = MUTANTS[mutant]
    caught = next((seed for seed in seeds if mutated(seed, mutant).failures), None)
    assert caught is not None, (
        f"seeds {seeds} play another run now; 'pytest tests/lab -k within -s' finds others"
    )
    assert run_seed(caught).failures == (), "it is the missing guard that fails, not the run"


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught_within_the_bound(mutant: str) -> None:
    caught = next((seed for seed in range(WITHIN) if mutated(seed, mutant).failures), None)
    assert caught is not None
    print(f"{mutant}: {caught}")  # noqa: T201  # for the table above


def test_every_guard_is_in_one_of_the_two_tables() -> None:
    caught = [name for name in guard_names() if f"without=({name})" in MUTANTS]
    assert sorted([*caught, *NOT_CAUGHT]) == sorted(guard_names())
