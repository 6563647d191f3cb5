"""The specification's own fences: without any of them an invariant breaks."""

from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.search.spec import FENCES, Question, explore
from holdfast.search.spec.layout import Layout
from holdfast.search.spec.state import unpack
from tests.search.tlc import bounds
from tests.support import plain_spec

SHORTEST = {
    "fence-fetch": 16,
    "fence-truncation": 13,
    "fence-high-watermark": 12,
    "fence-isr-expand": 11,
}
"""Steps to a state that breaks strong-isr."""
ACTIONS = {
    "fence-fetch": "fetch",
    "fence-truncation": "become_follower",
    "fence-high-watermark": "raise_high_watermark",
    "fence-isr-expand": "expand",
}
"""The name in the plain specification of the action that has the fence."""
WORLD = "3/2/3/2"


def test_the_tables_above_are_complete() -> None:
    assert list(FENCES) == list(SHORTEST) == list(ACTIONS)


@pytest.mark.parametrize("fence", FENCES)
def test_without_a_fence_a_committed_record_can_be_lost(fence: str) -> None:
    world = bounds(WORLD)
    asked = Question(variant="kip320", bounds=world, invariant="strong-isr", without=(fence,))
    trace = explore(asked).trace
    assert trace is not None
    assert len(trace) - 1 == SHORTEST[fence]
    for before, step in pairwise(trace):
        plain = plain_spec.Plain("kip320", world, before.state, ACTIONS[fence])
        assert step.state in plain.successors()
    *held, last = (plain_spec.strong_isr(step.state) for step in trace)
    assert all(held)
    assert not last


@pytest.mark.slow
def test_with_all_fences_the_same_bounds_hold() -> None:
    result = explore(Question(variant="kip320", bounds=bounds(WORLD), invariant="strong-isr"))
    assert result.trace is None
    assert result.limit is None


@pytest.mark.parametrize("fence", FENCES)
def test_without_a_fence_the_plain_explorer_visits_the_same_states(fence: str) -> None:
    world = bounds("2/2/2/1")
    levels, generated = plain_spec.explore("kip320", world, ACTIONS[fence])
    asked = Question(variant="kip320", bounds=world, symmetry=False, without=(fence,))
    result = explore(asked)
    layout = Layout(world)
    ours = [{unpack(layout, level, at) for at in range(level.shape[1])} for level in result.levels]
    assert ours == levels
    assert result.coverage.generated == generated


@pytest.mark.parametrize(
    ("variant", "fence", "message"),
    [("kip279", "fence-fetch", "kip279 has no fences"), ("kip320", "hedge", "is called hedge")],
)
def test_a_fence_that_is_not_there_cannot_be_taken_out(
    variant: str, fence: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Question(variant=variant, bounds=bounds(WORLD), without=(fence,))
