"""Visits every state within the bounds, level by level, until a violation is found.

The first violation found is therefore one of the shortest. Every state has a reference to its
predecessor, from which the path to it is rebuilt. Only states with a choice are kept: messages that
must flow after an action are judged one by one, but belong to that action.
"""

from __future__ import annotations

import heapq
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from zlib import crc32

from holdfast.search.limits import Coverage, Limits
from holdfast.search.liveness import REST_MS, comes_to_rest
from holdfast.search.question import Question
from holdfast.search.states.client_facts import Violation
from holdfast.search.states.space import State
from holdfast.search.walk import Event, Walk, Way, step_of

HOLDS = "holds"
VIOLATED = "violated"
LIMIT = "limit"

STUCK = "stuck"
"""The outcome of a cluster that does not recover."""

LOOKS_EVERY = 512
"""The search checks its limits after so many states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result of a search."""

    question: Question
    verdict: str
    coverage: Coverage
    violation: Violation | None = None
    path: tuple[Event, ...] = ()
    """The events from the first state to the violation."""
    limit: str = ""
    """The limit that ended the search."""
    runs: int = 0
    """How many steps ran the real code; all others came from the cache."""
    rested: int = 0
    """The number of states from which recovery was tried."""


Watch = Callable[[Coverage], None]


def explore(
    question: Question,
    limits: Limits | None = None,
    watch: Watch = lambda _: None,
    *,
    rests: int = 0,
) -> Found:
    """Search everything, or up to a limit.

    Afterwards the faults end in a sample of `rests` visited states, and the cluster must come to
    rest.
    """
    explorer = Explorer(question, limits or Limits(), watch)
    found = explorer.run()
    return explorer.look_for_rest(found, rests) if found.verdict == HOLDS and rests else found


class Explorer:
    """A running search."""

    def __init__(self, question: Question, limits: Limits, watch: Watch) -> None:
        self.question = question
        self._walk = Walk(question)
        self.space = self._walk.space
        self._limits = limits
        self._watch = watch
        self._began = time.perf_counter()
        self._seen: dict[State, int] = {}
        self.states: list[State] = []
        self._parents = array("l")
        self._places = array("H")
        """For each state, the index of the choice that led to it from its parent."""
        self._depth = 0

    @property
    def coverage(self) -> Coverage:
        """The number of states visited so far."""
        return Coverage(
            distinct=len(self._seen),
            generated=self._walk.generated,
            depth=self._depth,
            seconds=time.perf_counter() - self._began,
        )

    def run(self) -> Found:
        """Visit all states."""
        first = self._walk.first
        self._add(first, self._walk.key(first), -1, 0)
        return self._levels([0])

    def _ended(
        self,
        verdict: str,
        *,
        violation: Violation | None = None,
        limit: str = "",
    ) -> Found:
        return Found(
            question=self.question,
            verdict=verdict,
            coverage=self.coverage,
            violation=violation,
            limit=limit,
            runs=self.space.parts.runs,
        )

    def _levels(self, level: list[int]) -> Found:
        while level:
            following: list[int] = []
            for count, number in enumerate(level):
                if count % LOOKS_EVERY == 0:
                    reached = self._look()
                    if reached:
                        return self._ended(LIMIT, limit=reached)
                found = self._expand(number, following)
                if found:
                    return found
            level = following
            self._depth += 1
        return self._ended(HOLDS)

    def _look(self) -> str | None:
        coverage = self.coverage
        self._watch(coverage)
        return self._limits.reached(coverage.distinct, coverage.seconds)

    def _expand(self, number: int, following: list[int]) -> Found | None:
        walk, seen = self._walk, self._seen
        state = self.states[number]
        for place, action in enumerate(walk.moves.choices.actions(state)):
            after, violation = walk.step(state, action)
            if violation:
                # Walking the path again to list its events does not count.
                ended = self._ended(VIOLATED, violation=violation)
                return replace(ended, path=walk.events(self._way(number) + step_of(place)))
            key = walk.key(after)
            if key not in seen and self.space.is_within(after):
                following.append(self._add(after, key, number, place))
        return None

    def look_for_rest(self, found: Found, rests: int) -> Found:
        """End the faults in visited states; one that does not come to rest is a violation."""
        for way in self._sample(rests):
            path = self._walk.events(way)
            if not comes_to_rest(self.question, path):
                return stuck(found, path)
        return replace(found, rested=min(rests, len(self.states)))

    def _sample(self, rests: int) -> list[Way]:
        """Paths to a pseudo-random sample of states, the same in every run."""
        marks = array("I")
        for parent, place in zip(self._parents, self._places, strict=True):
            marks.append(marked(step_of(place), marks[parent]) if parent >= 0 else 0)
        chosen = heapq.nsmallest(rests, range(len(marks)), key=marks.__getitem__)
        return [self._way(number) for number in sorted(chosen)]

    def _add(self, state: State, key: State, parent: int, place: int) -> int:
        number = self._seen[key] = len(self.states)
        self.states.append(state)
        self._parents.append(parent)
        self._places.append(place)
        return number

    def path(self, number: int) -> tuple[Event, ...]:
        """The events that lead to a state, on one of the shortest paths."""
        return self._walk.events(self._way(number))

    def _way(self, number: int) -> Way:
        steps: list[bytes] = []
        while number > 0:
            steps.append(step_of(self._places[number]))
            number = self._parents[number]
        return b"".join(reversed(steps))


def marked(step: bytes, mark: int = 0) -> int:
    """A path's mark, computed from the mark of the path before its last step; used for sampling."""
    return crc32(step, mark)


def stuck(found: Found, path: tuple[Event, ...]) -> Found:
    """The result of a search that visited all states and found one that does not come to rest."""
    text = f"no rest within {REST_MS // 1000} s after all faults stopped"
    return replace(found, verdict=VIOLATED, violation=Violation(STUCK, text), path=path)
