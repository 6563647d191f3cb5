"""All brokers are restarted one after the other, under load: as for an upgrade."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cluster.chaos import Happened, Plan, play
from holdfast.cluster.chaos.schedule import ROLLING
from holdfast.cluster.timeline import read_events
from holdfast.pipeline.audit.findings.findings import Exit
from holdfast.pipeline.chaos_check import check
from holdfast.protocol.records.arrow.reader import read_runs

pytestmark = pytest.mark.slow
TOPICS = ("once", "at-least-once")


@pytest.fixture(scope="module")
def rolled(tmp_path_factory: pytest.TempPathFactory) -> Happened:
    folder = tmp_path_factory.mktemp("rolling")
    return play(Plan(folder=folder, seed=1, seconds=8, kinds=(ROLLING,)), lambda _: None)


def test_nothing_is_lost_doubled_or_left_unanswered(rolled: Happened) -> None:
    checked = check(rolled)
    assert rolled.faults[ROLLING] > 0
    assert checked.exit_code == Exit.GOOD, (checked.counts, checked.problems)
    assert checked.audit.verdict.acked > 1000


def test_every_leader_epoch_served_without_a_second_election(rolled: Happened) -> None:
    """Under load a leader epoch without a record refused everything."""
    for topic in TOPICS:
        for partition in range(3):
            written = epochs(rolled.logs["b1"] / f"{topic}-{partition}")
            assert written == list(range(written[-1] + 1)), f"{topic}-{partition}"


def test_every_election_is_a_move_and_no_partition_is_ever_without_a_leader(
    rolled: Happened,
) -> None:
    events = read_events(rolled.traces.glob("*.trace"))
    ours = [one for one in events if (one["p"] or "").rpartition("-")[0] in TOPICS]
    rules = [one["rule"] for one in ours if one["k"] == "elected"]
    assert len(rules) > len(TOPICS) * 3, "leaderships moved"
    assert set(rules) <= {"created", "shutdown", "preferred"}


def epochs(folder: Path) -> list[int]:
    """The leader epochs of a log's records, each once."""
    found: dict[int, None] = {}
    for path in sorted(folder.glob("*.log")):
        for run in read_runs(path.read_bytes(), columns=("leader_epoch",)):
            found |= dict.fromkeys(run.column("leader_epoch").unique().to_pylist())
    return list(found)
