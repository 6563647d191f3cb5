"""Breadth-first search over all states of a variant, level by level.

A level holds the states that are new after so many steps, so a violation in the first possible
level ends a shortest trace. Only the levels and the set of all states are kept: a trace is rebuilt
by walking the levels backwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from holdfast.search.limits import Coverage, Limits
from holdfast.search.spec.bounds import Bounds
from holdfast.search.spec.invariants import broken
from holdfast.search.spec.layout import Layout, States
from holdfast.search.spec.state_set import StateSet
from holdfast.search.spec.successors import Model, batches
from holdfast.search.spec.trace import Step, shortest_trace
from holdfast.search.spec.variants import variant_of
from holdfast.search.spec.view import View

MOST_SYMMETRIC = 8
"""A state has a permutation per order of the replicas: 40,320 for eight."""


@dataclass(frozen=True, slots=True)
class Exploration:
    coverage: Coverage
    trace: tuple[Step, ...] | None
    """The initial state and the fewest steps to a state that breaks the invariant."""
    limit: str | None
    """The limit that ended the search before a violation was found."""
    levels: tuple[States, ...]
    """All states, packed as in `Layout`, by their smallest number of steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    variant: str
    bounds: Bounds
    symmetry: bool = True
    """Count states that differ only in replica names once."""
    invariant: str | None = None
    without: tuple[str, ...] = ()
    """Fences of the variant that are removed."""

    def __post_init__(self) -> None:
        variant_of(self.variant, self.without)
        if self.symmetry and self.bounds.replicas > MOST_SYMMETRIC:
            raise ValueError(f"more than {MOST_SYMMETRIC} replicas have too many permutations")


def explore(
    question: Question,
    limits: Limits | None = None,
    watch: Callable[[Coverage], None] = lambda _: None,
) -> Exploration:
    """Visit all states until a limit is reached or an invariant broken; `watch` gets progress."""
    return _Search(question, limits or Limits(), watch).run()


class _Search:
    def __init__(
        self, question: Question, limits: Limits, watch: Callable[[Coverage], None]
    ) -> None:
        self._layout = Layout(question.bounds)
        variant = variant_of(question.variant, question.without)
        self._model = Model(variant, self._layout, symmetry=question.symmetry)
        self._invariant = question.invariant
        self._limits = limits
        self._watch = watch
        self._began = time.perf_counter()
        initial = self._model.representative(self._layout.initial())
        self._levels = [initial]
        self._seen = StateSet(self._layout.words)
        self._seen.add(initial)
        self._generated = 1

    def run(self) -> Exploration:
        limit = None
        while True:
            bad = self._broken(self._levels[-1])
            if bad is not None:
                trace = shortest_trace(self._model, self._levels, bad)
                return self._ended(trace=trace)
            if limit is not None:
                return self._ended(limit=limit)
            level, limit = self._next_level()
            if not level.shape[1]:
                return self._ended(limit=limit)
            self._seen.add(level)
            self._levels.append(level)

    def _next_level(self) -> tuple[States, str | None]:
        """All new states one step further; or a part of them, and the limit that was reached."""
        fresh = [self._levels[-1][:, :0]]
        new, limit = 0, None
        for batch in batches(self._levels[-1]):
            coverage = self._coverage(new)
            self._watch(coverage)
            limit = self._limits.reached(coverage.distinct, coverage.seconds)
            if limit is not None:
                break
            successors, generated = self._model.successors(batch)
            fresh.append(self._seen.unseen(successors))
            self._generated += generated
            new += fresh[-1].shape[1]
        return self._seen.unseen(np.concatenate(fresh, axis=1)), limit

    def _ended(
        self, *, trace: tuple[Step, ...] | None = None, limit: str | None = None
    ) -> Exploration:
        return Exploration(self._coverage(), trace, limit, tuple(self._levels))

    def _coverage(self, new: int = 0) -> Coverage:
        seconds = time.perf_counter() - self._began
        return Coverage(
            distinct=len(self._seen) + new,
            generated=self._generated,
            depth=len(self._levels),
            seconds=seconds,
        )

    def _broken(self, level: States) -> States | None:
        """A state of a level that breaks the invariant, if any."""
        if self._invariant is None:
            return None
        for batch in batches(level):
            found = np.flatnonzero(broken(View(self._layout, batch), self._invariant))
            if len(found):
                return batch[:, found[:1]]
        return None
