"""The exhaustive search: it visits the same states as a naive one, and reports how it ended."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.core.controller import broker_registry, isr_change_rules, leader_election
from holdfast.core.replica import effects, follower
from holdfast.lab import load, run_scenario
from holdfast.lab.world import messages
from holdfast.model import ids
from holdfast.search import (
    ANY,
    HOLDS,
    LIMIT,
    VIOLATED,
    Bounds,
    Found,
    Question,
    explore,
    is_symmetric,
    liveness,
    write_scenario,
)
from holdfast.search.explore import Explorer
from holdfast.search.limits import Limits
from holdfast.search.states.symmetry import BROKERS, EPOCHS, SETS, Symmetry
from holdfast.search.walk import Event
from tests.search.naive_search import naive_values, quick_values


def explorer_of(question: Question) -> Explorer:
    explorer = Explorer(question, Limits(), lambda _: None)
    assert explorer.run().verdict == HOLDS
    return explorer


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(replicas=2, elections=1, delays=ANY),
        Bounds(replicas=2, crashes=1, restarts=1, delays=ANY),
        pytest.param(Bounds(in_sync=2, delays=ANY), marks=pytest.mark.long),
        pytest.param(
            Bounds(replicas=2, crashes=1, restarts=1, elections=1, delays=ANY),
            marks=pytest.mark.long,
        ),
    ],
    ids=Bounds.describe,
)
def test_lookup_finds_the_same_states_as_whole_worlds_do(bounds: Bounds) -> None:
    question = Question(bounds=bounds, symmetry=False)
    assert quick_values(explorer_of(question)) == naive_values(question)


@pytest.mark.parametrize(
    ("bounds", "distinct", "generated", "depth"),
    [
        (Bounds(elections=1, delays=ANY), 5_960, 19_100, 24),
        (Bounds(settled=1, crashes=1, restarts=1, delays=1), 692, 3_711, 23),
    ],
    ids=["any order", "one delay"],
)
def test_with_all_guards_nothing_is_lost(
    bounds: Bounds, distinct: int, generated: int, depth: int
) -> None:
    found = explore(Question(bounds=bounds), rests=5)
    coverage = found.coverage
    assert (found.verdict, found.rested) == (HOLDS, 5)
    assert (coverage.distinct, coverage.generated, coverage.depth) == (distinct, generated, depth)
    assert found.runs < generated / 6, "nearly every step is a lookup"


@pytest.mark.parametrize(
    "bounds",
    [Bounds(elections=1, delays=ANY), Bounds(losses=1, delays=ANY)],
    ids=Bounds.describe,
)
def test_symmetry_visits_one_state_of_every_orbit(bounds: Bounds) -> None:
    assert is_symmetric(bounds)
    full = explorer_of(Question(bounds=bounds, symmetry=False))
    canonical = Symmetry(full.space).canonical
    orbits = {canonical(state) for state in full.states}
    small = explorer_of(Question(bounds=bounds))
    assert len(orbits) == len(small.states)
    assert len(orbits) < 0.6 * len(full.states)


def test_symmetry_is_not_used_where_order_means_something() -> None:
    assert not is_symmetric(Bounds(delays=ANY, crashes=1))
    assert not is_symmetric(Bounds(delays=1))


def test_every_field_that_names_a_broker_is_renamed() -> None:
    """The symmetry must handle every message and state field that contains a broker."""
    unknown: list[str] = []
    for module in (
        messages,
        ids,
        leader_election,
        effects,
        broker_registry,
        follower,
        isr_change_rules,
    ):
        for kind in vars(module).values():
            if not (isinstance(kind, type) and hasattr(kind, "_fields")):
                continue
            for name, hint in kind.__annotations__.items():
                broker = re.search(r"\bBrokerId\b|\bReplicaBroker\b", str(hint))
                epoch = re.search(r"\bBrokerEpoch\b", str(hint))
                if (broker and name not in BROKERS | SETS) or (epoch and name not in EPOCHS):
                    unknown.append(f"{kind.__name__}.{name}: {hint}")
    assert unknown == []


def maximal_isr() -> Found:
    options = {"without": "(maximal-isr)"}
    return explore(Question(bounds=Bounds(in_sync=2, delays=2), options=options))


def test_a_violation_is_a_scenario_that_plays_again(tmp_path: Path) -> None:
    found = maximal_isr()
    assert found.verdict == VIOLATED
    assert found.violation is not None
    assert found.violation.outcome == "isr-holds-what-is-committed"
    written = write_scenario(found, "holdfast lab search")
    assert written.outcome == "lost"
    path = tmp_path / "found.scenario"
    path.write_text(written.text, encoding="utf-8")
    scenario = load(str(path))
    run = run_scenario(scenario, scenario.variants[0])
    assert run.as_expected
    assert (run.verdict.verdict, run.verdict.lost) == ("invalid", ("r0",))
    with_guard = run_scenario(scenario, scenario.variants[0], {"without": "()"})
    assert with_guard.verdict.verdict == "valid"


def test_what_is_not_needed_is_left_out_of_a_scenario() -> None:
    found = maximal_isr()
    needless = (Event("flush", 1), Event("tick", 1))
    padded = replace(found, path=(*found.path, *needless))
    lines = [one.words for one in write_scenario(padded, "a search").lines]
    assert lines == [one.words for one in write_scenario(found, "a search").lines]


def test_a_search_and_its_result_can_be_sent_elsewhere() -> None:
    question = Question(bounds=Bounds(in_sync=2, delays=2), options={"without": "(maximal-isr)"})
    found = explore(pickle.loads(pickle.dumps(question)))
    again = pickle.loads(pickle.dumps(found))
    assert write_scenario(again, "elsewhere").outcome == "lost"


def test_a_limit_ends_a_search() -> None:
    found = explore(Question(bounds=Bounds(elections=2, delays=2)), Limits(states=1_000))
    assert (found.verdict, found.limit) == (LIMIT, "1,000 states")
    assert found.coverage.distinct >= 1_000
    found = explore(Question(bounds=Bounds(elections=2, delays=2)), Limits(memory=1))
    assert found.verdict == LIMIT


def test_one_question_has_one_answer() -> None:
    question = Question(bounds=Bounds(elections=1, delays=1))
    counts = [explore(question).coverage for _ in range(2)]
    assert counts[0].distinct == counts[1].distinct
    assert counts[0].generated == counts[1].generated


def test_brokers_that_leave_or_lost_their_session_come_to_rest() -> None:
    found = explore(Question(bounds=Bounds(replicas=2, stops=1, shutdowns=1, expiries=1)), rests=60)
    assert (found.verdict, found.rested) == (HOLDS, 60)


def test_a_cluster_that_does_not_rest_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    question = Question(bounds=Bounds(replicas=2, delays=1))
    assert explore(question, rests=2).verdict == HOLDS
    monkeypatch.setattr(liveness, "REST_MS", 0)
    found = explore(question, rests=2)
    assert found.verdict == VIOLATED
    assert found.violation is not None
    assert found.violation.outcome == "stuck"
    assert "All faults stop" in write_scenario(found, "holdfast lab search").text
