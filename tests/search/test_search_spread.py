"""A search that is spread over processes has the same result as in one process.

Here every task runs as in a fresh process: the task and its result are pickled, and nothing of an
earlier task is kept.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from holdfast.lab import SeededRun
from holdfast.search import (
    ANY,
    GUARDS,
    HOLDS,
    LIMIT,
    VIOLATED,
    Bounds,
    Coverage,
    Found,
    Question,
    SeedsFound,
    explore,
    liveness,
    search_seeds,
    spread,
    spread_seeds,
    write_scenario,
)
from holdfast.search.limits import Limits
from holdfast.search.parallel import processes, visit

PROCESSES = 2


class FreshProcesses(Executor):
    """An executor that runs every call as if in a fresh process."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        visit.walk_of.cache_clear()
        called, given, named = pickle.loads(pickle.dumps((fn, args, kwargs)))
        done: Future[Any] = Future()
        done.set_result(pickle.loads(pickle.dumps(called(*given, **named))))
        return done


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make tasks so small that small searches have many."""
    monkeypatch.setattr(processes, "_FEW", 10)


def numbers(found: Found) -> tuple[object, ...]:
    coverage = found.coverage
    return found.verdict, coverage.distinct, coverage.generated, coverage.depth, found.rested


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(replicas=2, elections=1, delays=ANY),
        Bounds(replicas=2, elections=1, duplicates=1, overtakings=1),
        Bounds(replicas=2, elections=1, losses=1, delays=1),
        Bounds(replicas=2, elections=2, unheard=1),
        Bounds(replicas=2, settled=1, power_losses=1, survivals=1, restarts=1, delays=1),
        Bounds(replicas=2, flushes=1, disk_errors=1, disk_losses=1, epoch_losses=1, restarts=1),
        Bounds(replicas=2, expiries=1, elections=1, delays=1),
        Bounds(replicas=2, stops=1, shutdowns=1),
        Bounds(replicas=2, settled=1, records=0, slow_sessions=1, crashes=1, restarts=1),
        Bounds(replicas=2, failovers=2, crashes=1, restarts=1),
        Bounds(lowerings=1, stops=1, restarts=1),
        Bounds(replicas=2, partitions=1, elections=1),
        Bounds(replicas=2, in_sync=1, late_joins=1, lags=1, delays=1),
        Bounds(replicas=2, crashes=1, restarts=1, readers=1),
        pytest.param(Bounds(settled=1, crashes=1, restarts=1, delays=1), marks=pytest.mark.slow),
    ],
    ids=Bounds.describe,
)
def test_what_holds_has_the_same_numbers(bounds: Bounds) -> None:
    question = Question(bounds=bounds)
    pool = FreshProcesses()
    found = spread(question, pool, PROCESSES, rests=3)
    assert numbers(found) == numbers(explore(question, rests=3))
    assert pool.calls > 3, "it was spread"


@pytest.mark.slow
@pytest.mark.parametrize("symmetry", [True, False])
def test_symmetry_is_the_same_as_in_one_process(symmetry: bool) -> None:
    question = Question(bounds=Bounds(elections=1, delays=ANY), symmetry=symmetry)
    found = spread(question, FreshProcesses(), PROCESSES)
    assert numbers(found) == numbers(explore(question))


@pytest.mark.parametrize(
    "guard",
    [
        "maximal-isr",
        "higher-epoch-only",
        "epoch-at-election",
        "stale-answer-by-offset",
        "follower-read-bound",
        pytest.param("registration-incarnation", marks=pytest.mark.slow),
        pytest.param("best-log-recovery", marks=pytest.mark.slow),
        pytest.param("joiner-reached-epoch-start", marks=pytest.mark.slow),
    ],
)
def test_a_violation_is_the_same_scenario(guard: str) -> None:
    rung = GUARDS[guard]
    options = {**rung.options, "without": f"({guard})"}
    question = Question(bounds=rung.bounds, options=options)
    one, other = explore(question), spread(question, FreshProcesses(), PROCESSES)
    assert one.verdict == other.verdict == VIOLATED
    assert (one.violation, one.path) == (other.violation, other.path)
    assert one.coverage.depth == other.coverage.depth
    assert other.coverage.distinct <= one.coverage.distinct
    written = [write_scenario(found, "a search") for found in (one, other)]
    assert written[0].text == written[1].text


def test_a_violation_has_the_same_counts_in_any_partition_of_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rung = GUARDS["epoch-at-election"]
    question = Question(bounds=rung.bounds, options={"without": "(epoch-at-election)"})
    found = []
    for few in (1, 40, 1_000_000):
        monkeypatch.setattr(processes, "_FEW", few)
        found.append(numbers(spread(question, FreshProcesses(), PROCESSES)))
    assert found[0][0] == VIOLATED
    assert found[0] == found[1] == found[2]


def test_a_cluster_that_does_not_rest_is_the_same_violation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(liveness, "REST_MS", 0)
    question = Question(bounds=Bounds(replicas=2, delays=1))
    one, other = explore(question, rests=4), spread(question, FreshProcesses(), PROCESSES, rests=4)
    assert (one.verdict, numbers(one)) == (VIOLATED, numbers(other))
    assert (one.violation, one.path) == (other.violation, other.path)


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        (Limits(states=200), "200 states"),
        (Limits(seconds=0.001), "0.001 seconds"),
        (Limits(memory=2**20), "1 MiB of memory"),
    ],
)
def test_a_limit_ends_it(limits: Limits, reached: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visit, "LOOKS_EVERY", 16)
    watched: list[Coverage] = []
    question = Question(bounds=Bounds(elections=2, delays=2))
    found = spread(question, FreshProcesses(), PROCESSES, limits, watched.append)
    assert (found.verdict, found.limit) == (LIMIT, reached)
    assert watched[-1].distinct == found.coverage.distinct
    if limits.states:
        assert found.coverage.distinct >= limits.states


def seeds(found: SeedsFound[SeededRun]) -> tuple[object, ...]:
    return found.verdict, found.tried, found.events, found.failed, found.changes, found.limit


def test_seeds_in_ranges_find_the_same() -> None:
    assert seeds(spread_seeds(1, 9, {}, Limits(), FreshProcesses(), PROCESSES)) == seeds(
        search_seeds(1, 9, {}, Limits())
    )


def test_seeds_end_at_their_limit() -> None:
    limits = Limits(states=3)
    found = spread_seeds(1, 9, {}, limits, FreshProcesses(), PROCESSES)
    assert seeds(found) == seeds(search_seeds(1, 9, {}, limits))
    assert (found.verdict, found.tried) == (LIMIT, 3)
    whole = spread_seeds(1, 3, {}, limits, FreshProcesses(), PROCESSES)
    assert (whole.verdict, whole.tried) == (HOLDS, 3)


@pytest.mark.slow
def test_the_first_seed_that_fails_is_the_answer() -> None:
    options = {"without": "(out-of-range-diverges)"}
    found = spread_seeds(0, 11, options, Limits(), FreshProcesses(), PROCESSES)
    assert found.verdict == VIOLATED
    assert seeds(found) == seeds(search_seeds(0, 11, options, Limits()))
