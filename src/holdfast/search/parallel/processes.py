"""Spreads searches over processes: many searches, one per process, or the cells of one search.

A cell can be visited when all earlier cells have been. Its result does not depend on the process or
the time of the visit. So the result equals that of `explore`: the same verdict and the same path to
a violation; without a violation also the same numbers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import replace
from typing import Final

from holdfast.search.explore import (
    HOLDS,
    LIMIT,
    VIOLATED,
    Found,
    Watch,
    explore,
    stuck,
)
from holdfast.search.limits import Coverage, Limits
from holdfast.search.liveness import comes_to_rest
from holdfast.search.parallel.cells import Cell, Cells, first_of
from holdfast.search.parallel.state_transfer import Parcel
from holdfast.search.parallel.visit import Visit, Visited, least_marked
from holdfast.search.question import Question
from holdfast.search.states.client_facts import Violation
from holdfast.search.walk import Event, Walk, Way, depth_of, order_of

_SHARE: Final = 2
"""A task gets the work available now, divided by this and by the number of processes."""
_FEW: Final = 4_000
"""So many entries make a task worth its start."""


def spread(
    question: Question,
    pool: Executor,
    processes: int,
    limits: Limits | None = None,
    watch: Watch = lambda _: None,
    *,
    rests: int = 0,
) -> Found:
    """Search everything, or up to a limit, in all processes of the pool."""
    search = _Spread(question, processes, limits or Limits(), watch, rests)
    found = search.run(pool)
    return search.look_for_rest(pool, found) if found.verdict == HOLDS and rests else found


def spread_many(
    questions: Sequence[Question],
    pool: Executor,
    limits: Limits | None = None,
    *,
    rests: int = 0,
) -> Iterator[Found]:
    """Run many searches, each in one process; return the results in the order of the questions."""
    # The first is the most likely to find a violation; of the others the widest take longest.
    order = (questions[0], *reversed(questions[1:]))
    tasks = [pool.submit(explore, each, limits, rests=rests) for each in order]
    for task in (tasks[0], *reversed(tasks[1:])):
        yield task.result()


class _Spread:
    """A running search."""

    def __init__(
        self, question: Question, processes: int, limits: Limits, watch: Watch, rests: int
    ) -> None:
        self._question = question
        self._walk = Walk(question)
        self._processes = processes
        self._limits = limits
        self._watch = watch
        self._rests = rests
        self._began = time.perf_counter()
        self._waiting: dict[Cell, list[Parcel]] = {}
        self._running: dict[Future[Visited], Sequence[Cell]] = {}
        self._distinct: Counter[int] = Counter()
        self._generated: Counter[int] = Counter()
        self._sample: list[tuple[int, Way]] = []
        self._violation: Violation | None = None
        self._least: Way | None = None
        self._runs = 0

    # Cells.

    def run(self, pool: Executor) -> Found:
        """Visit all cells."""
        first = self._walk.first
        cell = Cells(self._walk).of(first)
        self._waiting[cell] = [Parcel.packed(self._walk.space, [(b"", first)])]
        reached = ""
        while (self._waiting or self._running) and not reached:
            self._submit(pool)
            done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for one in done:
                del self._running[one]
                reached = self._take(one.result()) or reached
            self._watch(self._coverage())
        return self._ended(reached)

    def _submit(self, pool: Executor) -> None:
        """Submit tasks until every process has work or no cell can be visited now."""
        if not self._running and sum(map(self._size, self._waiting)) < _FEW * self._processes:
            self._send(pool, list(self._waiting), _FEW * self._processes)
            return
        under_way = [cell for cells in self._running.values() for cell in cells]
        ready = sorted(first_of(self._waiting, under_way), key=self._size)
        share = sum(map(self._size, ready)) // (_SHARE * self._processes)
        while ready and len(self._running) <= self._processes:
            chosen = [ready.pop()]
            size = self._size(chosen[0])
            while ready and size + self._size(ready[0]) <= max(_FEW, share):
                size += self._size(ready[0])
                chosen.append(ready.pop(0))
            self._send(pool, chosen)

    def _send(self, pool: Executor, chosen: Sequence[Cell], enough: int = 0) -> None:
        coverage = self._coverage()
        states, seconds = self._limits.states, self._limits.seconds
        task = Visit(
            question=self._question,
            cells={cell: self._waiting.pop(cell) for cell in chosen},
            limits=replace(
                self._limits,
                states=None if states is None else states - coverage.distinct,
                seconds=None if seconds is None else seconds - coverage.seconds,
            ),
            enough=enough,
            sample=self._rests,
            least=self._least,
        )
        self._running[pool.submit(task)] = chosen

    def _size(self, cell: Cell) -> int:
        return sum(one.count for one in self._waiting[cell])

    def _take(self, visited: Visited) -> str:
        """Take the result of a task; return the limit that is reached, in words."""
        self._distinct.update(visited.distinct)
        self._generated.update(visited.generated)
        self._sample = least_marked([*self._sample, *visited.sample], self._rests)
        self._runs += visited.runs
        is_first = self._least is None or order_of(visited.way) < order_of(self._least)
        if visited.violation is not None and is_first:
            self._violation, self._least = visited.violation, visited.way
        for cell, parcel in visited.exits.items():
            if self._least is None or parcel.depth < depth_of(self._least):
                self._waiting.setdefault(cell, []).append(parcel)
        coverage = self._coverage()
        ours = replace(self._limits, memory=None)
        return ours.reached(coverage.distinct, coverage.seconds) or visited.limit

    # The end.

    def _coverage(self) -> Coverage:
        """With a violation, count only states no deeper than it: these are visited in any order."""
        depth = max(self._distinct, default=-1) + 1
        if self._least is not None:
            depth = depth_of(self._least) - 1
        return Coverage(
            distinct=sum(count for at, count in self._distinct.items() if at <= depth),
            generated=1 + sum(count for at, count in self._generated.items() if at < depth),
            depth=depth,
            seconds=time.perf_counter() - self._began,
        )

    def _ended(self, reached: str) -> Found:
        found = Found(
            question=self._question,
            verdict=HOLDS,
            coverage=self._coverage(),
            runs=self._runs,
        )
        if self._least is not None:
            path = self._walk.events(self._least)
            return replace(found, verdict=VIOLATED, violation=self._violation, path=path)
        return replace(found, verdict=LIMIT, limit=reached) if reached else found

    def look_for_rest(self, pool: Executor, found: Found) -> Found:
        """As `Explorer.look_for_rest`, from the same states."""
        ways = sorted((way for _, way in self._sample), key=order_of)
        paths = [self._walk.events(way) for way in ways]
        share = -(-len(paths) // (_SHARE * self._processes))
        shares = [paths[start : start + share] for start in range(0, len(paths), share)]
        for one in [pool.submit(first_stuck, self._question, share) for share in shares]:
            path = one.result()
            if path is not None:
                return stuck(found, path)
        return replace(found, rested=len(paths))


def first_stuck(question: Question, paths: Iterable[tuple[Event, ...]]) -> tuple[Event, ...] | None:
    """The first path after which the cluster does not recover."""
    return next((path for path in paths if not comes_to_rest(question, path)), None)
