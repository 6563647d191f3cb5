"""The contract of the scenario catalogue: every id exists, and ends as the catalogue says.

What is expected here comes from the catalogue, not from the scenario files: a file that is
rewritten to match a broken core fails here.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import pytest

from holdfast.core import guard_names
from holdfast.lab import Run, ids, load, run_scenario, section_of
from holdfast.lab.judge.verdict import BEYOND, INVALID, VALID

SAFE = {
    "truncation": "leader-epoch",
    "isr_update": "committed",
    "isr_expand": "rechecked",
    "isr_lag_rule": "time",
    "commit_rule": "isr",
    "without": [],
}
"""The default of every switch of the catalogue that is a rule of the core."""
SOME = -1
"""At least one, where the catalogue gives no number."""


class Expected(NamedTuple):
    """How a variant ends. Lists are given by their length."""

    verdict: str
    outcome: str
    lost: int = 0
    exposed: int = 0
    diverged: int = 0
    skipped: int = 0


KEPT = Expected(VALID, "kept")
LOST_ONE = Expected(INVALID, "lost", lost=1)

A_TO_C = {
    "sync-fetch-after-produce": {"default": KEPT},
    "sync-parked-fetch": {"default": KEPT},
    "hw-follows-slowest-isr-member": {"default": KEPT},
    "hw-on-leader-change": {"default": KEPT},
    "write-path": {"default": KEPT},
    "acks-all-waits-for-whole-isr": {"default": KEPT},
    "stale-metadata": {"default": KEPT},
    "read-your-writes": {"before": Expected(BEYOND, "stale-read"), "after": KEPT},
    "monotonic-reads": {"before": Expected(BEYOND, "stale-read"), "after": KEPT},
    "lag-slow": {"default": KEPT},
    "lag-stuck": {"default": KEPT},
    "lag-bootstrapping": {"default": KEPT},
    "lag-messages-flapping": {"before": KEPT, "after": KEPT},
    "lag-silence-blind": {"before": KEPT, "after": KEPT},
    "session-lost": {"default": KEPT},
    "not-enough-replicas": {"default": KEPT},
    "not-enough-replicas-after-append": {
        "before": Expected(BEYOND, "duplicated"),
        "after": KEPT,
        "no-retry": Expected(VALID, "refused-kept"),
    },
    "election-first-in-isr": {"default": KEPT},
    "election-none-clean": {"default": KEPT},
    "election-unclean": {"before": Expected(BEYOND, "lost", lost=SOME), "after": KEPT},
    "old-leader-returns": {"before": KEPT, "after": KEPT},
    "controller-failover": {"default": KEPT},
}

D = {
    "loss-acks-0": {
        "acks-0": Expected(BEYOND, "lost", lost=SOME),
        "acks-1": KEPT,
        "acks-all": KEPT,
    },
    "loss-acks-1": {"acks-1": Expected(BEYOND, "lost", lost=SOME), "acks-all": KEPT},
    # Exactly record 2 of the catalogue's 0, 1, 2.
    "loss-restart-truncation": {"before": LOST_ONE, "after": KEPT, "today": KEPT},
    "loss-second-failover": {"before": LOST_ONE, "after": KEPT},
    # m1 is lost under both rules; under the old one the logs differ at offset 1 as well.
    "divergence-unclean": {
        "before": Expected(INVALID, "diverged", lost=1, diverged=1),
        "after": Expected(BEYOND, "lost", lost=1),
    },
    "divergence-power-loss": {
        "before": Expected(INVALID, "diverged", lost=1, diverged=1),
        "after": Expected(BEYOND, "lost", lost=1),
    },
    "loss-page-cache": {
        "page-cache": Expected(BEYOND, "lost", lost=SOME),
        "every-append": KEPT,
        "majority": KEPT,
    },
    "loss-isr-race": {"before": Expected(INVALID, "lost", lost=SOME), "after": KEPT},
    "loss-isr-optimistic": {"before": Expected(INVALID, "lost", lost=SOME), "after": KEPT},
    "no-loss-bad-sample": {"default": KEPT},
}

D2 = {
    "epoch-unknown-to-leader": {"before": LOST_ONE, "after": KEPT},
    # 40..49 of an ended leader epoch stay in b2's log.
    "zombie-fetcher": {"before": Expected(INVALID, "diverged", diverged=10), "after": KEPT},
    "truncate-against-stale-leader": {"before": LOST_ONE, "after": KEPT},
    # Offset 0 differs.
    "missed-epoch-same-leader": {
        "before": Expected(INVALID, "diverged", diverged=1),
        "after": KEPT,
    },
    # 5..9 are lost.
    "lagging-hw-join": {"before": Expected(INVALID, "lost", lost=5), "after": KEPT},
    "empty-epoch": {
        "before": Expected(INVALID, "lost", lost=SOME),
        "before-rebuilt": Expected(INVALID, "diverged", diverged=SOME),
        "after": KEPT,
    },
    # 0..9 are lost.
    "maximal-isr": {"before": Expected(INVALID, "lost", lost=10), "after": KEPT},
    "fenced-rejoin": {"after": KEPT, "today": KEPT},
    "stale-broker-epoch": {"before": Expected(INVALID, "lost", lost=SOME), "after": KEPT},
    "last-replica-standing": {
        "before": Expected(INVALID, "lost", lost=SOME, exposed=SOME),
        "after": KEPT,
    },
    "whole-cluster-power-loss": {
        "first-up": Expected(INVALID, "lost", lost=SOME),
        "after": KEPT,
        "beyond": Expected(BEYOND, "lost", lost=SOME),
    },
    # Eight, exactly three, none.
    "unclean-exact-loss": {
        "acks-1": Expected(BEYOND, "lost", lost=8),
        "acks-all": Expected(BEYOND, "lost", lost=3),
        "unclean-off": Expected(VALID, "offline"),
    },
    "acks1-planned-move": {"acks-1": Expected(BEYOND, "lost", lost=SOME), "acks-all": KEPT},
    # b0 truncates to 0: everything is gone. The election before it was unclean.
    "out-of-range-race": {"before": Expected(BEYOND, "lost", lost=SOME), "after": KEPT},
    "append-after-io-error": {"before": Expected(INVALID, "lost", lost=SOME), "after": KEPT},
    # The log is truncated either way; what counts is whether the reader gets an error.
    "consumer-truncation": {
        "before": Expected(INVALID, "lost", lost=SOME, skipped=SOME),
        "after": Expected(BEYOND, "lost", lost=SOME),
    },
    "phantom-read": {
        "page-cache": Expected(BEYOND, "exposed-lost", exposed=SOME),
        "every-append": KEPT,
    },
    "follower-read-behind": {"before": Expected(BEYOND, "processed-twice"), "after": KEPT},
    # Nothing is lost: the ISR never recovers (tests/scenarios/test_catalogue_details.py).
    "stale-partition-version": {"before": KEPT, "after": KEPT},
}

E = {
    "producer-fire-and-forget": {"before": Expected(BEYOND, "lost-at-producer"), "after": KEPT},
    "producer-retry-duplicate": {"before": Expected(BEYOND, "duplicated"), "after": KEPT},
    "producer-retry-reorder": {"before": Expected(BEYOND, "reordered"), "after": KEPT},
    "consumer-auto-commit-loss": {"before": Expected(BEYOND, "lost-at-consumer"), "after": KEPT},
    "consumer-commit-after-work": {"before": Expected(BEYOND, "processed-twice"), "after": KEPT},
}

CATALOGUE: dict[str, dict[str, Expected]] = {**A_TO_C, **D, **D2, **E}

CITED = {
    "epoch-unknown-to-leader": ("KIP-279",),
    "zombie-fetcher": ("KIP-320", "KAFKA-6880"),
    "truncate-against-stale-leader": ("KIP-320",),
    "missed-epoch-same-leader": ("KAFKA-7164",),
    "lagging-hw-join": ("KAFKA-7128",),
    "empty-epoch": ("KAFKA-7415", "KAFKA-10432"),
    "maximal-isr": ("KIP-497",),
    "fenced-rejoin": ("KIP-841",),
    "stale-broker-epoch": ("KIP-903",),
    "last-replica-standing": ("KIP-966",),
    "whole-cluster-power-loss": ("KIP-966",),
    "unclean-exact-loss": ("KAFKA-10751",),
    "acks1-planned-move": ("KAFKA-20554",),
    "out-of-range-race": ("KAFKA-2143",),
    "append-after-io-error": ("KAFKA-10778",),
    "consumer-truncation": ("KIP-320",),
    "phantom-read": ("KAFKA-10101",),
    "follower-read-behind": ("KIP-392",),
    "stale-partition-version": ("KAFKA-2729",),
}
"""The name of each later hole in the catalogue."""

AVAILABILITY = ("stale-partition-version", "fenced-rejoin")
"""Holes that lose no record: writes would stop, or wait for a dead broker."""

CASES = [(name, variant) for name, variants in CATALOGUE.items() for variant in variants]
SHIPPED = [(name, one.name) for name in ids() for one in load(name).variants]


@cache
def played(name: str, variant: str) -> Run:
    scenario = load(name)
    return run_scenario(scenario, scenario.variant(variant))


def safe(run: Run) -> bool:
    """Whether a run had the default rules and every guard."""
    rules: dict[str, object] = run.events[0].numbers["rules"]
    return rules == SAFE


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_id_of_the_catalogue_exists(name: str) -> None:
    assert name in ids(), f"{name} is not written yet"
    assert load(name).id == name


def test_the_table_above_has_every_later_hole() -> None:
    assert set(CITED) == set(D2)


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_a_variant_ends_as_the_catalogue_says(name: str, variant: str) -> None:
    expected = CATALOGUE[name][variant]
    verdict = played(name, variant).verdict
    found = Expected(
        verdict.verdict,
        verdict.outcome,
        len(verdict.lost),
        len(verdict.exposed_lost),
        len(verdict.diverged),
        len(verdict.skipped),
    )
    some = tuple(
        SOME if wanted == SOME and isinstance(got, int) and got > 0 else got
        for wanted, got in zip(expected, found, strict=True)
    )
    assert some == tuple(expected), (verdict, f"holdfast lab step {name} --variant {variant}")


@pytest.mark.parametrize("name", D2)
def test_every_later_hole_hurts_without_its_guard_and_not_with_all_guards(name: str) -> None:
    runs = [played(name, one.name) for one in load(name).variants]
    clean = ("kept", "offline")
    hurt = [one for one in runs if one.verdict.outcome not in clean or one.verdict.violations]
    assert hurt or name in AVAILABILITY
    assert any(safe(one) and one.verdict.verdict != INVALID for one in runs)


@pytest.mark.parametrize(("name", "variant"), SHIPPED)
def test_a_shipped_scenario_ends_with_a_verdict_that_its_rules_allow(
    name: str, variant: str
) -> None:
    run = played(name, variant)
    assert any(one.name == "verdict" for one in run.scenario.steps[-1].commands)
    assert run.events[-1].kind == "verdict"
    if safe(run):
        assert run.verdict.verdict != INVALID
        assert run.verdict.violations == ()


@pytest.mark.parametrize("name", ids())
def test_a_header_says_what_could_go_wrong(name: str) -> None:
    scenario = load(name)
    assert len(scenario.title) <= 100
    assert scenario.title.endswith((".", "?", "!"))
    assert len(scenario.header.split()) >= 25, "the header is too short to say what could go wrong"


@pytest.mark.parametrize("name", CITED)
def test_a_later_hole_cites_what_it_was_called(name: str) -> None:
    header = load(name).header
    assert all(one in header for one in CITED[name])


@pytest.mark.parametrize("name", [one for one in ids() if one not in CATALOGUE])
def test_a_scenario_beyond_the_catalogue_names_its_guard_or_its_seed(name: str) -> None:
    scenario = load(name)
    named = re.findall(r"Guard: ([a-z-]+)|seed (\d+)", scenario.header)
    assert named, f"{section_of(scenario)}/{name} says neither 'Guard: …' nor 'seed N'"
    assert all(guard in guard_names() for guard, _ in named if guard)


def test_every_guard_is_missed_in_some_scenario() -> None:
    missed: dict[str, None] = {}
    for name, variant in SHIPPED:
        run = played(name, variant)
        rules = run.events[0].numbers["rules"]
        if run.verdict.outcome not in ("kept", "offline"):
            missed.update(dict.fromkeys(rules["without"]))
    assert [one for one in guard_names() if one not in missed] == []


@pytest.mark.parametrize(
    ("switch", "unsafe"),
    [
        ("truncation", "high-watermark"),
        ("isr_update", "optimistic"),
        ("isr_expand", "unguarded"),
        ("isr_lag_rule", "messages"),
        ("isr_lag_rule", "silence"),
        ("commit_rule", "majority"),
    ],
)
def test_every_switch_is_turned_in_some_scenario(switch: str, unsafe: str) -> None:
    rules = (played(*one).events[0].numbers["rules"] for one in SHIPPED)
    assert any(one[switch] == unsafe for one in rules)
