"""Visits all states of some cells, and returns the states through which other cells are entered.

Within a cell states are visited level by level. A state from another cell joins the level of its
depth, in the order of paths. So every state is found by the same path as in a search of everything,
and the smallest violation of all cells is the one that such a search would find first.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from holdfast.search.explore import LOOKS_EVERY, marked
from holdfast.search.limits import Limits
from holdfast.search.parallel.cells import Cell, Cells, first_of, precedes
from holdfast.search.parallel.state_transfer import Parcel
from holdfast.search.question import Question
from holdfast.search.states.client_facts import Violation
from holdfast.search.states.space import State
from holdfast.search.walk import STEP_BYTES, Walk, Way, depth_of, order_of, step_of

_NO_MARK: Final = 2**32
_SAMPLE_GROWTH: Final = 100
"""A sample is reduced when it has grown to so many times its size."""

Entry = tuple[Way, State]
Entries = dict[State, Entry]
"""States with their paths, by canonical state."""


@dataclass(slots=True, kw_only=True)
class Visited:
    """The result of visiting some cells."""

    distinct: dict[int, int] = field(default_factory=dict)
    """The number of states, by depth."""
    generated: dict[int, int] = field(default_factory=dict)
    """The number of steps from the states of a depth."""
    exits: dict[Cell, Parcel] = field(default_factory=dict)
    sample: list[tuple[int, Way]] = field(default_factory=list)
    """The paths with the smallest marks, each after its mark."""
    violation: Violation | None = None
    way: Way = b""
    """The path to the violation."""
    limit: str = ""
    """The limit that ended the visit early."""
    runs: int = 0
    """How often the real code ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A task: cells to visit, as plain values."""

    question: Question
    cells: Mapping[Cell, Sequence[Parcel]]
    """No cell of these leads to another one."""
    limits: Limits
    enough: int = 0
    """If not 0: these are all cells, in any order, and no other task is running. Continue with
    every cell that can be visited, until so many entries wait.
    """
    sample: int = 0
    """The sample size, in states."""
    least: Way | None = None
    """The path to a known violation; later paths need no visit."""

    def __call__(self) -> Visited:
        """Visit the cells."""
        visitor = _Visitor(walk_of(pickle.dumps(self.question)), self)
        if self.enough:
            visitor.go_on(self.enough)
        else:
            for cell in self.cells:
                visitor.visit(cell)
        return visitor.ended()


@lru_cache(maxsize=1)
def walk_of(question: bytes) -> Walk:
    """The walk of a question; a process keeps it for its next task of the same search."""
    asked: Question = pickle.loads(question)  # noqa: S301  # our own
    return Walk(asked)


class _Visitor:
    """A running task."""

    def __init__(self, walk: Walk, task: Visit) -> None:
        self._walk = walk
        self._space = walk.space
        self._cells = Cells(walk)
        self._limits = task.limits
        self._sample = task.sample
        self._highest = _NO_MARK
        """Paths with a higher mark are not sampled."""
        self._last = order_of(task.least[:-STEP_BYTES]) if task.least else None
        """States after this path cannot lead to a smaller violation."""
        self._began = time.perf_counter()
        self._runs = walk.space.parts.runs
        self._count = 0
        self._entries: dict[Cell, Entries] = {}
        self._made = Visited()
        for cell, parcels in task.cells.items():
            entries = self._entries.setdefault(self._cells.same(cell), {})
            for parcel in parcels:
                for way, state in parcel.opened(walk.space):
                    _put(entries, walk.key(state), way, state)

    def ended(self) -> Visited:
        """The result."""
        made, space = self._made, self._space
        for cell, entries in self._entries.items():
            made.exits[cell] = Parcel.packed(space, entries.values())
        made.sample = least_marked(made.sample, self._sample)
        made.runs = space.parts.runs - self._runs
        return made

    def go_on(self, enough: int) -> None:
        """Visit cell after cell, until there is enough work for other processes."""
        while self._entries and sum(map(len, self._entries.values())) < enough:
            self.visit(first_of(self._entries)[0])

    def visit(self, cell: Cell) -> None:
        """Visit one cell, unless a limit has been reached."""
        made, walk = self._made, self._walk
        waiting = _by_depth(self._entries.pop(self._cells.same(cell)))
        seen: set[State] = set()
        level: list[Entry] = []
        depth = 0
        while (level or waiting) and not made.limit:
            if not level:
                depth = min(waiting)
            if depth in waiting:
                level = self._joined(level, waiting.pop(depth), seen)
            if not level:  # All incoming states were known.
                continue
            made.distinct[depth] = made.distinct.get(depth, 0) + len(level)
            self._choose(level)
            before = walk.generated
            following, go_on = self._following(self._cells.same(cell), level, seen)
            made.generated[depth] = made.generated.get(depth, 0) + walk.generated - before
            if not go_on:
                break
            level, depth = following, depth + 1

    def _joined(self, level: list[Entry], arrived: Entries, seen: set[State]) -> list[Entry]:
        """A level and the incoming states of its depth, each by its smallest path."""
        joined: Entries = {self._walk.key(entry[1]): entry for entry in level}
        for key, (way, state) in arrived.items():
            if key in joined or key not in seen:
                _put(joined, key, way, state)
        seen.update(joined)
        return sorted(joined.values())

    def _following(
        self, cell: Cell, level: list[Entry], seen: set[State]
    ) -> tuple[list[Entry], bool]:
        """The next level of a cell, and whether to continue."""
        walk, space, cell_of = self._walk, self._space, self._cells.of
        following: list[Entry] = []
        for way, state in level:
            if self._is_over(way):
                return following, False
            for place, action in enumerate(walk.moves.choices.actions(state)):
                after, violation = walk.step(state, action)
                if violation:
                    self._broken(violation, way + step_of(place))
                    return following, False
                key, target = walk.key(after), cell_of(after)
                if target is cell:
                    if key not in seen and space.is_within(after):
                        seen.add(key)
                        following.append((way + step_of(place), after))
                elif space.is_within(after):
                    _put(self._exit(cell, target), key, way + step_of(place), after)
        return following, True

    def _exit(self, cell: Cell, target: Cell) -> Entries:
        entries = self._entries.get(target)
        if entries is None:
            assert precedes(cell, target), f"from {cell} nothing leads to {target}"
            entries = self._entries[target] = {}
        return entries

    def _is_over(self, way: Way) -> bool:
        """Whether a limit is reached, or only paths after a known violation are left."""
        self._count += 1
        if self._count % LOOKS_EVERY == 0:
            seconds = time.perf_counter() - self._began
            self._made.limit = self._limits.reached(self._count, seconds) or ""
        is_late = self._last is not None and order_of(way) > self._last
        return is_late or bool(self._made.limit)

    def _broken(self, violation: Violation, way: Way) -> None:
        made = self._made
        if made.violation is None or order_of(way) < order_of(made.way):
            made.violation, made.way = violation, way
            self._last = order_of(way[:-STEP_BYTES])

    def _choose(self, level: list[Entry]) -> None:
        """Add the states with the smallest marks to the sample."""
        if not self._sample:
            return
        sample = self._made.sample
        for way, _ in level:
            mark = marked(way)
            if mark <= self._highest:
                sample.append((mark, way))
        if len(sample) > _SAMPLE_GROWTH * self._sample:
            sample[:] = least_marked(sample, self._sample)
            self._highest = sample[-1][0]


def least_marked(sample: Iterable[tuple[int, Way]], count: int) -> list[tuple[int, Way]]:
    """The entries with the smallest marks; of equal ones the first."""
    return sorted(sample, key=lambda one: (one[0], *order_of(one[1])))[:count]


def _by_depth(entries: Entries) -> dict[int, Entries]:
    found: dict[int, Entries] = {}
    for key, entry in entries.items():
        found.setdefault(depth_of(entry[0]), {})[key] = entry
    return found


def _put(entries: Entries, key: State, way: Way, state: State) -> None:
    """Add a state, or replace its path by a smaller one."""
    known = entries.get(key)
    if known is None or order_of(way) < order_of(known[0]):
        entries[key] = (way, state)
