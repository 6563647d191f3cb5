"""Visits every state within the bounds, level by level, until something is wrong.

Level by level means that the first violation found is one of the shortest. Every state remembers
where it came from, so the way to it can be told. A state is kept only where there is a choice: what
flows by itself after an action is judged message by message, but belongs to that action.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast.lab.limits import Limits
from holdfast.lab.messages import Envelope
from holdfast.lab.search.facts import Violation
from holdfast.lab.search.moves import Moves
from holdfast.lab.search.question import Question
from holdfast.lab.search.space import Action, State
from holdfast.lab.search.symmetry import Symmetry, is_symmetric

HOLDS = "holds"
VIOLATED = "violated"
LIMIT = "limit"

STUCK = "stuck"
"""The outcome of a cluster that does not recover."""

_LOOKS_EVERY = 512
_LONGEST_FLOW = 500
"""So many messages may follow one action before the search looks up; then it goes on from there."""


class Event(NamedTuple):
    """One thing on the way to a violation, without the numbers of the search that found it."""

    kind: str
    broker: int = 0
    variant: str = ""
    source: str = ""
    target: str = ""
    position: int = 0
    """Which message of its link, counted from the oldest."""
    what: str = ""
    """What kind of message it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How far a search has come."""

    distinct: int
    generated: int
    depth: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How a search ended."""

    question: Question
    verdict: str
    coverage: Coverage
    violation: Violation | None = None
    path: tuple[Event, ...] = ()
    """From the beginning to the violation."""
    limit: str = ""
    """Which limit ended it."""
    runs: int = 0
    """How often the real code was run; every other step was known already."""
    rested: int = 0
    """From how many states peace was tried."""


Watch = Callable[[Coverage], None]


def explore(
    question: Question,
    limits: Limits | None = None,
    watch: Watch = lambda _: None,
    *,
    rests: int = 0,
) -> Found:
    """Search all of it, or up to a limit.

    Then so many of the states that were visited, evenly spread, must come to rest after peace.
    """
    explorer = Explorer(question, limits or Limits(), watch)
    found = explorer.run()
    return explorer.look_for_rest(found, rests) if found.verdict == HOLDS and rests else found


class Explorer:
    """One search under way."""

    def __init__(self, question: Question, limits: Limits, watch: Watch) -> None:
        self.question = question
        self.space, self._first = question.begin()
        self.moves = Moves(self.space)
        self._canonical = None
        if question.symmetry and is_symmetric(question.bounds):
            self._canonical = Symmetry(self.space).canonical
        self._limits = limits
        self._watch = watch
        self._began = time.perf_counter()
        self._seen: dict[State, int] = {}
        self.states: list[State] = []
        self._parents = array("l")
        self._actions: list[Action] = []
        self._known_actions: dict[Action, Action] = {}
        self._generated = 1
        self._depth = 0

    @property
    def coverage(self) -> Coverage:
        """How far it has come."""
        return Coverage(
            distinct=len(self._seen),
            generated=self._generated,
            depth=self._depth,
            seconds=time.perf_counter() - self._began,
        )

    def run(self) -> Found:
        """Visit everything."""
        first = self._first
        key = self._canonical(first) if self._canonical else first
        self._add(first, key, -1, Action("begin"))
        return self._levels([0])

    def _ended(
        self,
        verdict: str,
        *,
        violation: Violation | None = None,
        path: tuple[Event, ...] = (),
        limit: str = "",
    ) -> Found:
        return Found(
            question=self.question,
            verdict=verdict,
            coverage=self.coverage,
            violation=violation,
            path=path,
            limit=limit,
            runs=self.space.parts.runs,
        )

    def _levels(self, level: list[int]) -> Found:
        while level:
            following: list[int] = []
            for count, number in enumerate(level):
                if count % _LOOKS_EVERY == 0:
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
        seen, canonical = self._seen, self._canonical
        state = self.states[number]
        for action in self.moves.choices.actions(state):
            after, violation = self._step(state, action)
            key = canonical(after) if canonical else after
            if violation is None and key in seen:
                continue
            if violation:
                path = (*self.path(number), *self._events(state, action))
                return self._ended(VIOLATED, violation=violation, path=path)
            if self.space.is_within(after):
                following.append(self._add(after, key, number, action))
        return None

    def _step(
        self, state: State, action: Action, events: list[Action] | None = None
    ) -> tuple[State, Violation | None]:
        """One action, and all messages that cannot but flow after it; each state is judged."""
        moves, space = self.moves, self.space
        following: Action | None = action
        violation: Violation | None = None
        for _ in range(_LONGEST_FLOW):
            if following is None or violation is not None:
                break
            if events is not None:
                events.append(following)
            state, violation = moves.apply(state, following)
            self._generated += 1
            violation = violation or space.judge(state)
            following = moves.choices.only_flow(state)
        return state, violation

    def _events(self, state: State, action: Action) -> list[Event]:
        taken: list[Action] = []
        self._step(state, action, taken)
        return [self._event(one) for one in taken]

    def look_for_rest(self, found: Found, rests: int) -> Found:
        """Play peace from states of the search; the first that does not rest is a violation."""
        from holdfast.lab.search.liveness import REST_MS, comes_to_rest

        count = len(self.states)
        chosen = sorted({place * count // rests for place in range(rests)})
        for number in chosen:
            path = self.path(number)
            if not comes_to_rest(self.question, path):
                text = f"no rest within {REST_MS // 1000} s after all faults stopped"
                return self._ended(VIOLATED, violation=Violation(STUCK, text), path=path)
        return replace(found, rested=len(chosen))

    def _add(self, state: State, key: State, parent: int, action: Action) -> int:
        number = self._seen[key] = len(self.states)
        self.states.append(state)
        self._parents.append(parent)
        self._actions.append(self._known_actions.setdefault(action, action))
        return number

    def actions(self) -> Iterable[Action]:
        """Every different action that led to a new state."""
        return self._known_actions.values()

    def path(self, number: int) -> tuple[Event, ...]:
        """What leads to a state, one of the shortest ways."""
        steps: list[list[Event]] = []
        while number > 0:
            parent = self._parents[number]
            steps.append(self._events(self.states[parent], self._actions[number]))
            number = parent
        return tuple(event for step in reversed(steps) for event in step)

    def _event(self, action: Action) -> Event:
        if action.place is None:
            return Event(action.kind, action.broker, action.variant)
        source, target, payload = self.space.parts.messages[action.place.message]
        what = Envelope(source, target, payload, None, 0).wire_name
        return Event(action.kind, 0, "", source, target, action.place.position, what)
