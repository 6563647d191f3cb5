"""The fast engine visits exactly the states that the slow, obvious explorer visits."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from holdfast.search.spec import VARIANTS, Question, State, explore
from holdfast.search.spec.invariants import broken
from holdfast.search.spec.layout import Layout, States
from holdfast.search.spec.state import unpack
from holdfast.search.spec.view import View
from tests.search.tlc import bounds
from tests.support import plain_spec

WIDE = "2/1/90/2"
"""Its records need columns of two bytes."""
THREE = pytest.param("3/1/1/1", marks=pytest.mark.slow)
plain_explore = cache(plain_spec.explore)


def unpacked(layout: Layout, level: States) -> list[State]:
    return [unpack(layout, level, index) for index in range(level.shape[1])]


@pytest.mark.parametrize("small", ["2/2/2/1", "1/3/2/2", WIDE, THREE])
@pytest.mark.parametrize("variant", VARIANTS)
def test_same_states_level_by_level(variant: str, small: str) -> None:
    world = bounds(small)
    levels, generated = plain_explore(variant, world)
    result = explore(Question(variant=variant, bounds=world, symmetry=False))
    ours = [unpacked(Layout(world), level) for level in result.levels]
    assert [set(level) for level in ours] == levels
    assert [len(level) for level in ours] == [len(level) for level in levels]
    assert result.coverage.generated == generated


@pytest.mark.parametrize("small", ["2/2/2/1", "3/1/1/0", THREE])
@pytest.mark.parametrize("variant", VARIANTS)
def test_symmetry_keeps_one_state_of_each_kind(variant: str, small: str) -> None:
    world = bounds(small)
    levels, _ = plain_explore(variant, world)
    result = explore(Question(variant=variant, bounds=world))
    for level, theirs in zip(result.levels, levels, strict=True):
        kinds = [set(plain_spec.renamed(one)) for one in unpacked(Layout(world), level)]
        assert sum(len(kind) for kind in kinds) == len(theirs), "a kind is missing or there twice"
        assert set().union(*kinds) == theirs


@pytest.mark.parametrize("variant", VARIANTS)
def test_states_of_several_words(variant: str) -> None:
    # Two records never fill more than two places, so the long logs change the packing only.
    wide, narrow = bounds("2/20/2/1"), bounds("2/2/2/1")
    assert (Layout(wide).words, Layout(narrow).words) == (3, 1)
    for symmetry in (True, False):
        one = explore(Question(variant=variant, bounds=wide, symmetry=symmetry))
        other = explore(Question(variant=variant, bounds=narrow, symmetry=symmetry))
        assert one.coverage.generated == other.coverage.generated
        for ours, theirs in zip(one.levels, other.levels, strict=True):
            kinds = [set(map(kind, unpacked(Layout(wide), ours)))]
            kinds.append(set(map(kind, unpacked(Layout(narrow), theirs))))
            assert kinds[0] == kinds[1]


def kind(state: State) -> State:
    """The same for all states that differ only in names."""
    return min(plain_spec.renamed(state), key=repr)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("invariant", ["weak-isr", "strong-isr"])
def test_same_states_break_an_invariant(variant: str, invariant: str) -> None:
    world = bounds("2/2/2/1")
    layout = Layout(world)
    holds = {"weak-isr": plain_spec.weak_isr, "strong-isr": plain_spec.strong_isr}[invariant]
    states = np.concatenate(explore(Question(variant=variant, bounds=world)).levels, axis=1)
    ours = broken(View(layout, states), invariant).tolist()
    assert ours == [not holds(one) for one in unpacked(layout, states)]
    assert any(ours) == (variant == "hw"), "at these bounds only the oldest rules lose anything"


@pytest.mark.parametrize("variant", ["hw", "kip101", "kip279", "kip320-first"])
@pytest.mark.parametrize("symmetry", [True, False])
def test_every_step_of_a_trace_is_allowed(variant: str, symmetry: bool) -> None:
    world = bounds("3/2/2/2")
    asked = Question(variant=variant, bounds=world, symmetry=symmetry, invariant="strong-isr")
    trace = explore(asked).trace
    assert trace is not None
    assert trace[0].state == plain_spec.initial(world)
    for before, step in pairwise(trace):
        assert step.state in plain_spec.Plain(variant, world, before.state).successors()
    *held, last = (plain_spec.strong_isr(step.state) for step in trace)
    assert all(held)
    assert not last
