"""The schedule of a chaos run: one seed, one sequence of phases, within the guarantees."""

from __future__ import annotations

from itertools import islice

import pytest

from holdfast.cluster.chaos import KINDS, UNSAFE_KINDS, Limits, Phase, phases
from holdfast.cluster.chaos.schedule import ALL, DEPOSE, POWER_LOSS, ROLLING

SAFE = Limits(brokers=(1, 2, 3), partitions=3)
UNSAFE = Limits(brokers=(1, 2, 3), partitions=3, is_safe=False, kinds=UNSAFE_KINDS)


def first(seed: int, limits: Limits = SAFE, count: int = 20) -> list[Phase]:
    return list(islice(phases(seed, limits), count))


def test_one_seed_gives_one_schedule() -> None:
    assert first(7) == first(7)
    assert first(7) != first(8)


def test_how_many_phases_there_is_time_for_changes_none_of_them() -> None:
    assert first(7, count=20)[:3] == first(7, count=3)


@pytest.mark.parametrize("seed", range(20))
def test_a_safe_phase_takes_the_power_of_one_broker_at_most(seed: int) -> None:
    for phase in first(seed):
        assert [fault.kind for fault in phase.faults].count(POWER_LOSS) <= 1
        assert all(fault.target != ALL for fault in phase.faults if fault.kind != ROLLING)
        assert all(fault.kind != DEPOSE for fault in phase.faults)


def test_every_kind_is_drawn_and_every_phase_has_a_fault() -> None:
    drawn = [phase for seed in range(10) for phase in first(seed)]
    assert {fault.kind for phase in drawn for fault in phase.faults} == set(KINDS)
    assert all(phase.faults for phase in drawn)


@pytest.mark.parametrize("seed", range(5))
def test_an_unsafe_phase_ends_beyond_what_any_setting_survives(seed: int) -> None:
    for phase in first(seed, UNSAFE):
        last = phase.faults[-1]
        assert last.kind == DEPOSE or (last.kind, last.target) == (POWER_LOSS, ALL)
