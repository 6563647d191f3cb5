"""Replicas of new partitions: spread evenly, distinct, and over as many racks as there are."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.controller.replica_assignment import assign
from holdfast.model import BrokerId

Case = tuple[int, int, int, int, int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    brokers = draw(st.integers(1, 12))
    replicas = draw(st.integers(1, brokers))
    partitions = draw(st.integers(1, 60))
    return (
        brokers,
        replicas,
        partitions,
        draw(st.integers(0, brokers - 1)),
        draw(st.integers(0, brokers - 1)),
    )


@given(cases())
def test_leaders_are_spread_within_one_and_replicas_are_distinct(case: Case) -> None:
    count, replicas, partitions, start, shift = case
    brokers = {BrokerId(number): None for number in range(count)}
    assigned = assign(brokers, range(partitions), replicas, start, shift)
    assert list(assigned) == list(range(partitions))
    for chosen in assigned.values():
        assert len(set(chosen)) == len(chosen) == replicas
    leaders = Counter(chosen[0] for chosen in assigned.values())
    counts = [leaders[broker] for broker in brokers]
    assert max(counts) - min(counts) <= 1


@given(cases(), st.integers(1, 4))
def test_whole_rounds_give_every_broker_as_many_replicas(case: Case, rounds: int) -> None:
    count, replicas, _, start, shift = case
    brokers = {BrokerId(number): None for number in range(count)}
    assigned = assign(brokers, range(count * rounds), replicas, start, shift)
    held = Counter(broker for chosen in assigned.values() for broker in chosen)
    assert {held[broker] for broker in brokers} == {rounds * replicas}


@given(cases(), st.integers(1, 4))
def test_every_rack_that_can_be_is_used(case: Case, rack_count: int) -> None:
    count, replicas, partitions, start, shift = case
    brokers: dict[BrokerId, str | None] = {
        BrokerId(number): f"rack-{number % rack_count}" for number in range(count)
    }
    racks = len(set(brokers.values()))
    assigned = assign(brokers, range(partitions), replicas, start, shift)
    for chosen in assigned.values():
        assert len(set(chosen)) == replicas
        assert len({brokers[one] for one in chosen}) == min(racks, replicas)


def test_it_is_kafkas_own_assignment() -> None:
    brokers: dict[BrokerId, str | None] = {BrokerId(number): None for number in range(5)}
    assigned = assign(brokers, range(10), 3, 0, 0)
    assert assigned == {
        0: (0, 1, 2), 1: (1, 2, 3), 2: (2, 3, 4), 3: (3, 4, 0), 4: (4, 0, 1),
        5: (0, 2, 3), 6: (1, 3, 4), 7: (2, 4, 0), 8: (3, 0, 1), 9: (4, 1, 2),
    }  # fmt: skip


def test_later_partitions_go_on_where_the_first_ended() -> None:
    brokers: dict[BrokerId, str | None] = {BrokerId(number): None for number in range(3)}
    assert assign(brokers, [3, 4], 1, 0, 0) == {3: (0,), 4: (1,)}
