"""The comparison of in-sync replicas with a majority: the figures mean what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from holdfast.cli import main
from holdfast.model import TraceEvent
from holdfast.search.compare import Figures, compare, contenders
from holdfast.search.compare.schedule import DURATION_MS, schedule_of
from holdfast.search.compare.trace_figures import waits_of
from holdfast.search.compare.trial import Trial

NAMES = ("b1", "b2", "b3")


@pytest.fixture(scope="module")
def figures() -> dict[str, Figures]:
    compared = compare(contenders(3, {}), 3, [0])
    return {one.name: one for one in compared.figures}


@pytest.mark.slow
def test_a_smaller_minimum_writes_longer_and_keeps_less(figures: dict[str, Figures]) -> None:
    one, two = figures["ISR, min.insync.replicas=1"], figures["ISR, min.insync.replicas=2"]
    assert (one.writes_survive, two.writes_survive) == (2, 1)
    assert (one.data_survives_least, two.data_survives_least) == (0, 1)
    assert two.copies_least == 2


@pytest.mark.slow
def test_a_majority_does_not_wait_for_the_slowest(figures: dict[str, Figures]) -> None:
    majority, isr = figures["majority"], figures["ISR, min.insync.replicas=2"]
    assert majority.wait_p99_ms < isr.wait_p99_ms
    assert majority.round_trips == isr.round_trips == 2
    assert majority.writes_survive == 1


@pytest.mark.slow
def test_within_the_guarantee_nothing_is_lost(figures: dict[str, Figures]) -> None:
    assert all(one.acknowledged > 400 for one in figures.values())
    assert figures["ISR, min.insync.replicas=2"].lost == 0


def test_the_schedule_does_not_depend_on_the_contender() -> None:
    assert schedule_of(7, NAMES) == schedule_of(7, NAMES)
    assert schedule_of(7, NAMES) != schedule_of(8, NAMES)
    assert all(0 < one.at_ms < DURATION_MS for one in schedule_of(7, NAMES))


def test_a_lone_copy_is_lost_with_its_machine() -> None:
    contender = contenders(3, {})[0]
    trial = Trial(contender, NAMES, None)
    trial.run((), 1_000)
    for name in NAMES[1:]:
        trial.disconnect(trial.world.brokers[name])
    trial.world.advance(4_000)
    trial.kill(trial.world.brokers["b1"], power=True)
    trial.end_faults()
    assert trial.lost() > 0


def test_waits_and_copies_are_read_off_the_trace() -> None:
    def event(t: int, kind: str, broker: int | None = None, **numbers: object) -> TraceEvent:
        return TraceEvent(t, t, kind, broker, None, "events-0", numbers, None)

    read = waits_of(
        [
            event(10, "sent", 1, producer="p", record="m1", acks=-1),
            event(11, "appended", 1, records=["m1"]),
            event(12, "appended", 2, records=["m1"]),
            event(13, "truncated", 2, end_offset=0),
            event(500, "acknowledged", 1, record="m1"),
        ],
        1_000,
    )
    assert read.waits_ms == (490,)
    assert read.copies == (1,)
    assert read.silent_ms == (500 - 200) + (500 - 200)


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    picture = tmp_path / "compare.svg"
    command = ["lab", "compare", "--seeds", "3..3", "--json", "--svg", str(picture)]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert [one["name"] for one in report["figures"]][-1] == "majority"
    assert "In-sync replicas or a majority" in picture.read_text(encoding="utf-8")


@pytest.mark.parametrize("seeds", ["5..2", "a..b", ""])
def test_invalid_seeds(seeds: str) -> None:
    done = CliRunner().invoke(main, ["lab", "compare", "--seeds", seeds])
    assert done.exit_code == 64
    assert "no range" in done.stderr
