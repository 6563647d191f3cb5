"""Every guard is needed: without it the search finds a loss, with it none.

The bounds are those of `search.bounds_ladder`.
"""

from __future__ import annotations

import pytest

from holdfast.core import guard_names
from holdfast.lab import load, run_scenario
from holdfast.search import (
    GUARDS,
    HOLDS,
    LIMIT,
    SWITCHES,
    VIOLATED,
    WIDENING,
    Bounds,
    Found,
    Question,
    Rung,
    explore,
    write_scenario,
)
from holdfast.search.limits import Limits

OUTCOMES = {
    "higher-epoch-only": "epoch-never-falls",
    "consumer-epoch-check": "skipped",
    "follower-read-bound": "reader-goes-on",
    "flush-before-claim": "isr-holds-what-is-committed",
}
"""The expected outcome, where it is neither a broken ISR invariant nor a lost record."""

SWITCHED = {"truncation": "high-watermark", "isr_update": "optimistic", "isr_expand": "unguarded"}

SMALL = (
    "joiner-reached-high-watermark",
    "stale-answer-by-offset",
    "answer-names-epoch",
    "maximal-isr",
    "eligible-leaders",
    "eligible-cleared-first",
    "offline-on-io-error",
    "follower-read-bound",
    "consumer-epoch-check",
    "flush-before-claim",
)
"""Bounds that are searched in a moment; the others are for `make test-long`."""


MOST_STATES = 150_000
"""Some bounds have millions of states: then only so many are checked."""


def searched(rung: Rung, **options: str) -> Found:
    return explore(Question(bounds=rung.bounds, options={**rung.options, **options}))


def test_every_guard_has_its_bounds() -> None:
    assert sorted(GUARDS) == sorted(guard_names())
    assert set(SWITCHED) == set(SWITCHES)


@pytest.mark.slow
@pytest.mark.parametrize("guard", GUARDS)
def test_without_a_guard_the_search_finds_a_violation(guard: str) -> None:
    check_violated(searched(GUARDS[guard], without=f"({guard})"), OUTCOMES.get(guard, ""))


@pytest.mark.parametrize("switch", SWITCHES)
def test_an_old_rule_is_violated(switch: str) -> None:
    check_violated(searched(SWITCHES[switch], **{switch: SWITCHED[switch]}))


def check_violated(found: Found, outcome: str = "") -> None:
    """The violation is found, and its scenario fails in the same way in the ordinary world."""
    assert found.verdict == VIOLATED
    written = write_scenario(found, "the table of guards")
    assert written.run.as_expected
    if outcome:
        assert written.outcome == outcome
    else:
        assert written.outcome in ("lost", "exposed-lost", "diverged")
        assert written.run.verdict.verdict == "invalid"


@pytest.mark.slow
@pytest.mark.parametrize("guard", SMALL)
def test_with_all_guards_the_same_bounds_hold(guard: str) -> None:
    assert searched(GUARDS[guard]).verdict == HOLDS


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("guard", [one for one in GUARDS if one not in SMALL])
def test_with_all_guards_the_larger_bounds_hold(guard: str) -> None:
    rung = GUARDS[guard]
    question = Question(bounds=rung.bounds, options=rung.options)
    found = explore(question, Limits(states=MOST_STATES), rests=20)
    assert found.verdict in (HOLDS, LIMIT)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("rung", WIDENING, ids=lambda one: one.bounds.describe())
def test_with_all_guards_the_ladder_holds(rung: Rung) -> None:
    assert searched(rung).verdict == HOLDS


BAD_SAMPLE = Bounds(lags=1, crashes=1, elections=1, delays=1)
BAD_SAMPLE_STATES = 7_158


@pytest.mark.slow
def test_the_bad_sample_is_unreachable() -> None:
    """No state within the bounds has an acknowledged record that an ISR member lacks."""
    found = explore(Question(bounds=BAD_SAMPLE))
    assert (found.verdict, found.coverage.distinct) == (HOLDS, BAD_SAMPLE_STATES)
    scenario = load("no-loss-bad-sample")
    assert f"{BAD_SAMPLE_STATES:,} states" in " ".join(scenario.header.split())
    assert run_scenario(scenario, scenario.variants[0]).as_expected
