"""Computes the packed successors of packed states for one variant."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from holdfast.search.spec.actions import Way
from holdfast.search.spec.layout import Layout, States
from holdfast.search.spec.symmetry import Symmetry
from holdfast.search.spec.variants import Variant
from holdfast.search.spec.view import View

BATCH = 2**15
"""States per batch: many enough to be fast, few enough to stay in the cache."""


class Model:
    """One variant under some bounds, with or without symmetry."""

    def __init__(self, variant: Variant, layout: Layout, *, symmetry: bool) -> None:
        self.layout = layout
        self._actions = variant.actions
        self._symmetry = Symmetry(layout) if symmetry else None

    def representative(self, states: States) -> States:
        return states if self._symmetry is None else self._symmetry.representative(states)

    def ways(self, states: States) -> Iterator[tuple[Way, npt.NDArray[np.intp], States]]:
        """Each way to act that some states allow, with their indexes and their successors."""
        view = View(self.layout, states)
        for action in self._actions:
            for way in action(view):
                rows = np.flatnonzero(way.allowed)
                if len(rows):
                    yield way, rows, _changed(states, way, rows)

    def successors(self, states: States) -> tuple[States, int]:
        """The representatives of all successors, with duplicates, and TLC's count of them."""
        found, generated = [np.zeros((self.layout.words, 0), np.uint64)], 0
        for way, rows, states_after in self.ways(states):
            found.append(states_after)
            generated += len(rows)
            if way.again is not None:
                generated += int(np.count_nonzero(way.again[rows]))
        return self.representative(np.concatenate(found, axis=1)), generated


def batches(states: States) -> Iterator[States]:
    for start in range(0, states.shape[1], BATCH):
        yield states[:, start : start + BATCH]


def _changed(states: States, way: Way, rows: npt.NDArray[np.intp]) -> States:
    after = states[:, rows]
    for field, value in way.changes:
        field.put(after, value if isinstance(value, int) else value[rows])
    return after
