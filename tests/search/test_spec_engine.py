"""The parts of the specification's engine: packing, permutations, the set of states, sentences."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from holdfast.search.limits import LimitError, Limits, parse_limits, peak_memory
from holdfast.search.spec import VARIANTS, Bounds, Coverage, Question, Step, explore, render_trace
from holdfast.search.spec.layout import WORD, Layout
from holdfast.search.spec.sentences import sentence
from holdfast.search.spec.state import unpack
from holdfast.search.spec.state_set import StateSet
from holdfast.search.spec.successors import Model
from holdfast.search.spec.symmetry import plain_changes
from tests.search.tlc import bounds


@pytest.mark.parametrize("world", ["1/1/1/0", "3/2/2/2", "5/9/7/3", "16/255/255/255"])
def test_fields_do_not_overlap_and_stay_within_their_words(world: str) -> None:
    layout = Layout(bounds(world))
    bits = [
        (field.word, shift)
        for field in layout.fields
        for shift in range(field.shift, field.shift + field.width)
    ]
    assert len(set(bits)) == len(bits)
    assert max(shift for _, shift in bits) < WORD
    assert {word for word, _ in bits} == set(range(layout.words))


def test_field_changes_nothing_but_itself() -> None:
    layout = Layout(bounds("3/2/2/2"))
    rng = np.random.default_rng(1)
    for field in layout.fields:
        states = rng.integers(0, 2**61, size=(layout.words, 50), dtype=np.uint64)
        others = [one for one in layout.fields if one != field]
        before = [one.get(states) for one in others]
        values = rng.integers(0, field.mask, size=50, endpoint=True)
        field.put(states, values)
        assert field.get(states).tolist() == values.tolist()
        assert all(
            np.array_equal(one.get(states), was) for one, was in zip(others, before, strict=True)
        )


@pytest.mark.parametrize("count", range(1, 7))
def test_plain_changes_visit_every_permutation_once(count: int) -> None:
    order = list(range(count))
    visited = [tuple(order)]
    for place in plain_changes(count):
        order[place], order[place + 1] = order[place + 1], order[place]
        visited.append(tuple(order))
    assert sorted(visited) == sorted(permutations(range(count)))


def test_state_set_keeps_each_state_once() -> None:
    for words in (1, 2, 3):
        rng = np.random.default_rng(words)
        seen, known = StateSet(words), set[tuple[int, ...]]()
        for _ in range(30):
            states = rng.integers(0, 9, size=(words, 40), dtype=np.uint64)
            offered = set(map(tuple, states.T.tolist()))
            fresh = seen.unseen(states)
            assert sorted(map(tuple, fresh.T.tolist())) == sorted(offered - known)
            seen.add(fresh)
            known |= offered
            assert len(seen) == len(known)


def hashed_once(word: int) -> int:
    """The set's hash of a first word, with its first salt."""
    mixed = word * 0x9E3779B97F4A7C15 % 2**64
    return mixed ^ mixed >> 32


@pytest.mark.parametrize("together", [True, False])
def test_two_states_that_share_a_hash_are_two(together: bool) -> None:
    # The second word cancels the first, so both pairs have the same hash.
    one, other = (5, 0), (6, hashed_once(5) ^ hashed_once(6))
    pair = np.array([one, other], np.uint64).T
    seen = StateSet(2)
    for states in [pair] if together else [pair[:, :1], pair[:, 1:]]:
        fresh = seen.unseen(states)
        assert fresh.shape == states.shape
        seen.add(fresh)
    assert len(seen) == 2
    assert seen.unseen(pair).shape == (2, 0)


def test_limits_are_read_and_reached() -> None:
    limits = parse_limits(["1000", "1.5m", "2GiB"])
    assert limits == Limits(states=1000, seconds=90, memory=2 * 2**30)
    assert limits.reached(999, 89) is None
    assert limits.reached(1000, 0) == "1,000 states"
    assert limits.reached(0, 90) == "90 seconds"
    assert parse_limits(["1KiB"]).reached(0, 0) is not None, f"{peak_memory()} bytes are in use"
    for wrong in ("", "0", "-1", "1.5", "5 s", "5x", "GiB", "1e6", "1_000", "0s"):
        with pytest.raises(LimitError, match="is no limit"):
            parse_limits([wrong])


def test_search_stops_at_its_limit_and_counts_what_it_has_seen() -> None:
    watched: list[Coverage] = []
    asked = Question(variant="kip320", bounds=bounds("3/2/2/2"), invariant="weak-isr")
    result = explore(asked, Limits(states=5000), watched.append)
    assert result.limit == "5,000 states"
    assert result.trace is None
    assert result.coverage.distinct >= 5000
    assert result.coverage.distinct == sum(level.shape[1] for level in result.levels)
    counts = [one.distinct for one in watched]
    assert counts == sorted(counts)
    assert counts[-2] < 5000 <= counts[-1]


def test_violation_beyond_the_limit_is_not_looked_for() -> None:
    asked = Question(variant="hw", bounds=bounds("2/2/2/2"), invariant="weak-isr")
    stopped = explore(asked, Limits(states=100))
    assert (stopped.trace, stopped.limit) == (None, "100 states")
    found = explore(asked, Limits(states=768))
    assert found.trace is not None
    assert found.limit is None, "a violation that was found is reported"


@pytest.mark.parametrize(
    "wrong",
    [(0, 1, 1, 0), (1, 0, 1, 0), (1, 1, 0, 0), (1, 1, 1, -1), (17, 1, 1, 1), (1, 1, 256, 1)],
)
def test_bounds_that_make_no_sense_are_refused(wrong: tuple[int, int, int, int]) -> None:
    replicas, log_size, records, max_epoch = wrong
    with pytest.raises(ValueError, match="must be between"):
        Bounds(replicas=replicas, log_size=log_size, records=records, max_epoch=max_epoch)


def test_every_action_has_its_words() -> None:
    sentences: dict[str, set[str]] = {}
    layout = Layout(bounds("2/2/2/1"))
    for name, variant in VARIANTS.items():
        model = Model(variant, layout, symmetry=False)
        asked = Question(variant=name, bounds=layout.bounds, symmetry=False)
        for level in explore(asked).levels:
            for way, rows, after in model.ways(level):
                step = Step(way.action, way.who, unpack(layout, after))
                text = sentence(unpack(layout, level, int(rows[0])), step)
                sentences.setdefault(way.action, set()).add(text)
    assert {action: min(texts) for action, texts in sentences.items()} == {
        "becomes-follower": "b1 follows b2 in epoch 0, and keeps its log.",
        "becomes-leader": "b1 becomes leader in epoch 0, with ISR (b1,b2).",
        "controller-elects": "The controller elects b1: epoch 0, ISR (b1,b2).",
        "controller-shrinks": "The controller takes b1 out of the ISR: epoch 0, nobody leads, "
        "ISR (b2).",
        "follower-fetches": "b1 copies m0/0 from b2 to offset 0.",
        "follower-truncates": "b1 finds that its log diverges from b2's, and truncates its log "
        "to 0, dropping m0/0, m1/0.",
        "leader-expands": "b1 takes b2 into the ISR; the controller's ISR is (b1,b2).",
        "leader-raises": "b1 raises its high watermark to 1.",
        "leader-shrinks": "b1 takes b2 out of the ISR; the controller's ISR is (b1).",
        "leader-writes": "b1 appends m0/0 at offset 0.",
    }
    followers = sentences["becomes-follower"]
    assert "b2 follows b1 in epoch 1, and truncates its log to 0, dropping m0/0." in followers
    assert any(
        "; its high watermark goes from 0 to 1." in text for text in sentences["follower-fetches"]
    )
    last_of_isr = (
        "The controller takes the lead from b1, the last of the ISR: epoch 1, nobody leads."
    )
    assert last_of_isr in sentences["controller-shrinks"]


def test_trace_ends_with_what_is_broken() -> None:
    asked = Question(variant="hw", bounds=bounds("2/2/2/2"), invariant="weak-isr")
    trace = explore(asked).trace
    assert trace is not None
    *_, empty, why = render_trace(trace, "weak-isr")
    assert empty == ""
    assert why.endswith("b2 is in its ISR and holds nothing there.")
