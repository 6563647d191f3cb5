"""Rebuilds the shortest trace to a state from the levels of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.search.spec.layout import States
from holdfast.search.spec.state import State, unpack
from holdfast.search.spec.successors import Model, batches


@dataclass(frozen=True, slots=True)
class Step:
    action: str
    """The action; empty for the initial state."""
    who: tuple[int, ...]
    state: State
    """The state after it."""


def shortest_trace(model: Model, levels: Sequence[States], last: States) -> tuple[Step, ...]:
    """The initial state, then one step from each level to the next; `last` is in the last level.

    It walks backwards through representatives, then forwards with the real replica names.
    """
    path = [last]
    for level in reversed(levels[:-1]):
        path.append(_predecessor(model, level, path[-1]))
    states = model.layout.initial()
    steps = [Step("", (), unpack(model.layout, states))]
    for target in reversed(path[:-1]):
        step, states = _towards(model, states, target)
        steps.append(step)
    return tuple(steps)


def _predecessor(model: Model, level: States, target: States) -> States:
    for batch in batches(level):
        for _, rows, after in model.ways(batch):
            found = np.flatnonzero((model.representative(after) == target).all(axis=0))
            if len(found):
                return batch[:, rows[found[:1]]]
    raise AssertionError("every state of a level comes from the level before")


def _towards(model: Model, states: States, target: States) -> tuple[Step, States]:
    for way, _, after in model.ways(states):
        if (model.representative(after) == target).all():
            return Step(way.action, way.who, unpack(model.layout, after)), after
    raise AssertionError("symmetric states have symmetric successors")
