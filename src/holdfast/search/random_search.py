"""Random search: runs many seeds, each with its own set of faults, and minimises a failing run.

A seed decides which classes of faults are on. A failing run is tried again with fewer classes, less
time and less traffic, as long as it fails in the same way. The random generator has the same seed,
but other draws, so every smaller run is a different run.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from holdfast.lab.scenarios.options import build
from holdfast.lab.seeds.seeded_run import SeededRun, run_seed
from holdfast.search.explore import HOLDS, LIMIT, VIOLATED
from holdfast.search.limits import Coverage, Limits

if TYPE_CHECKING:
    from holdfast.simulation import SimulatedRun

_BASE = {"min_insync_replicas": "2", "replica_lag_time_max_ms": "1500"}
_SHORTEST_MS = 300
_SHORTER: Final = (0.125, 0.25, 0.5, 0.75, 0.875)
"""Shares of a run's time, tried first: a shorter run makes every later trial cheaper."""
_QUIETEST_MS = 2_000
_RANGES: Final = 4
"""Ranges of seeds per process, running or waiting: some ranges take longer than others."""
_MOST: Final = 20
"""Seeds per range: about two seconds of work, so that progress is visible."""


R = TypeVar("R", SeededRun, "SimulatedRun")
Play = Callable[[int, Mapping[str, Any] | None], R]
"""Runs a seed, with changes of its plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedsFound(Generic[R]):
    """The result of a random search."""

    first: int
    last: int
    tried: int
    verdict: str
    seconds: float
    events: int
    """The number of trace events of all runs."""
    virtual_s: float = 0.0
    """The simulated time of all runs."""
    limit: str = ""
    failed: R | None = None
    """The failing run, minimised."""
    original: R | None = None
    """The failing run with its seed's own plan."""

    @property
    def changes(self) -> dict[str, Any]:
        """The changes from the seed's plan to the minimised plan."""
        if self.failed is None or self.original is None:
            return {}
        small, plan = self.failed.plan, self.original.plan
        names = ("faults", "duration_ms", "send_every_ms")
        return {
            name: getattr(small, name)
            for name in names
            if getattr(small, name) != getattr(plan, name)
        }


def search_seeds(
    first: int,
    last: int,
    options: Mapping[str, str],
    limits: Limits,
    watch: Callable[[Coverage], None] = lambda _: None,
) -> SeedsFound[SeededRun]:
    """Run seeds first..last of the core until one fails."""
    settings, rules = build({**_BASE, **options}, 3)
    return search_runs(
        first,
        last,
        lambda seed, changes: run_seed(seed, settings, rules, changes),
        limits,
        watch,
    )


def search_runs(
    first: int,
    last: int,
    play: Play[R],
    limits: Limits,
    watch: Callable[[Coverage], None] = lambda _: None,
) -> SeedsFound[R]:
    """Run seeds first..last until one fails."""
    began = time.perf_counter()
    events, virtual_s = 0, 0.0

    def ended(verdict: str, tried: int, **more: Any) -> SeedsFound[R]:
        seconds = time.perf_counter() - began
        return SeedsFound(
            first=first,
            last=last,
            tried=tried,
            verdict=verdict,
            seconds=seconds,
            events=events,
            virtual_s=virtual_s,
            **more,
        )

    for tried, seed in enumerate(range(first, last + 1)):
        seconds = time.perf_counter() - began
        watch(Coverage(distinct=tried, generated=events, depth=0, seconds=seconds))
        reached = limits.reached(tried, seconds)
        if reached:
            return ended(LIMIT, tried, limit=reached.replace("states", "seeds"))
        run = play(seed, None)
        events += len(run.events)
        virtual_s += run.virtual_s
        if run.failures:
            return ended(VIOLATED, tried + 1, failed=smallest(run, play), original=run)
    return ended(HOLDS, last + 1 - first)


def spread_seeds(
    first: int,
    last: int,
    options: Mapping[str, str],
    limits: Limits,
    pool: Executor,
    processes: int,
    watch: Callable[[Coverage], None] = lambda _: None,
) -> SeedsFound[SeededRun]:
    """Run seeds first..last in several processes; report the first failure in seed order."""
    began = time.perf_counter()
    end = last if limits.states is None else min(last, first + limits.states - 1)
    ahead = _RANGES * processes
    size = min(_MOST, -(-(end + 1 - first) // ahead))
    starts = iter(range(first, end + 1, size))
    running: deque[Future[SeedsFound[SeededRun]]] = deque()
    tried, events, seconds = 0, 0, 0.0
    ended: SeedsFound[SeededRun] = SeedsFound(
        first=first, last=last, tried=0, verdict=HOLDS, seconds=0.0, events=0
    )
    while True:
        if ended.verdict == HOLDS:
            left = None if limits.seconds is None else limits.seconds - seconds
            within = replace(limits, states=None, seconds=left)
            for one in islice(starts, ahead - len(running)):
                upto = min(one + size - 1, end)
                running.append(pool.submit(search_seeds, one, upto, options, within))
        if not running or ended.verdict == VIOLATED:
            break
        found = running.popleft().result()
        tried, events = tried + found.tried, events + found.events
        seconds = time.perf_counter() - began
        watch(Coverage(distinct=tried, generated=events, depth=0, seconds=seconds))
        if ended.verdict == HOLDS or found.verdict == VIOLATED:
            ended = found
    if end < last and ended.verdict == HOLDS:
        ended = replace(ended, verdict=LIMIT, limit=f"{limits.states:,} seeds")
    return replace(ended, first=first, last=last, tried=tried, events=events, seconds=seconds)


def smallest(run: R, play: Play[R]) -> R:
    """The same failure with as few faults, as little time and as little traffic as possible."""
    kept, shorter = run, True
    while shorter:  # Ends: every round but the last makes something of the plan smaller.
        shorter = False
        for changes in _smaller(kept):
            tried = play(run.plan.seed, changes)
            if _same_failure(run, tried) and len(tried.events) <= len(kept.events):
                kept, shorter = tried, True
                break
    return kept


def _same_failure(run: R, tried: R) -> bool:
    """Whether both runs have the same first failure."""
    kind = run.failures[0].partition(":")[0]
    return any(one.partition(":")[0] == kind for one in tried.failures)


def _smaller(run: SeededRun | SimulatedRun) -> Iterator[dict[str, Any]]:
    """Plans with less of something, the largest reductions first."""
    plan = run.plan
    now = {
        "faults": plan.faults,
        "duration_ms": plan.duration_ms,
        "send_every_ms": plan.send_every_ms,
    }
    for share in _SHORTER:
        shorter = int(plan.duration_ms * share)
        if shorter >= _SHORTEST_MS:
            yield {**now, "duration_ms": shorter}
    for fault in plan.faults:
        yield {**now, "faults": tuple(one for one in plan.faults if one != fault)}
    if plan.send_every_ms * 2 <= _QUIETEST_MS:
        yield {**now, "send_every_ms": plan.send_every_ms * 2}
