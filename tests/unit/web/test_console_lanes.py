"""The live picture: drawn from what is observed, with and without a trace."""

from __future__ import annotations

import pytest

from holdfast.lab.render.views import NOT_REPORTED, Snapshot
from holdfast.web.console.live_lanes import drawn, live_frame, observed
from holdfast.web.console.reading.observation import BrokerFacts, Observation, PartitionFacts
from holdfast.web.console.replica_table import replica_table
from holdfast.web.drawing import text_width
from holdfast.web.layout import NARROW, WIDE, Shape, layout_of


def cluster(end: int, *, flushed: int | None = None) -> Observation:
    """Broker 1 leads; broker 2 is killed and 5 records behind."""
    seen = Observation()
    seen.brokers = {1: BrokerFacts(1, "a:1"), 2: BrokerFacts(2, "a:2", "killed")}
    partition = PartitionFacts("t", 0, 1, 7, (1, 2), (1,))
    partition.end, partition.epochs = end, ((7, end - 3), (5, 0))
    seen.partitions["t-0"] = partition
    for broker, log_end in ((1, end), (2, end - 5)):
        copy = partition.copy(broker)
        copy.log_start, copy.log_end, copy.flushed = 0, log_end, flushed
    return seen


def snapshot(seen: Observation) -> Snapshot:
    return observed(seen.partitions["t-0"], seen, None)


def test_roles_ends_and_epochs_are_those_that_were_observed() -> None:
    leader, follower = snapshot(cluster(20)).replicas
    assert (leader.role, leader.log_end_offset, leader.in_isr) == ("leader", 20, True)
    assert [cell.epoch for cell in leader.cells[-4:]] == [5, 7, 7, 7]
    assert (follower.alive, follower.down, follower.log_end_offset) == (False, "killed", 15)
    assert not follower.in_isr


def test_what_is_not_reported_is_neither_drawn_nor_in_the_table() -> None:
    seen = cluster(20)
    views = snapshot(seen)
    assert views.replicas[0].flushed_end == NOT_REPORTED
    wide = "".join(drawn(views)["wide"]["parts"])
    assert "disk" not in wide
    assert "memory" not in wide
    rows = replica_table(seen.partitions["t-0"], seen, views)
    assert [(row["leo"], row["hw"], row["flushed"]) for row in rows] == [
        (20, None, None),
        (15, None, None),
    ]
    reported = "".join(drawn(snapshot(cluster(20, flushed=15)))["wide"]["parts"])
    assert "on disk below 15, rest in memory" in reported


@pytest.mark.parametrize("shape", [WIDE, NARROW])
@pytest.mark.parametrize("end", [20, 99_999, 123_456_789])
def test_offsets_of_any_length_fit_their_cells(shape: Shape, end: int) -> None:
    frame = live_frame(snapshot(cluster(end)))
    layout = layout_of([frame], shape)
    assert text_width(str(end), 10, wide=True) <= layout.cell
    assert layout.columns >= 3
    assert layout.columns * layout.cell <= shape.room
