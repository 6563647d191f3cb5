"""Many brokers' traces as one, which the lab can step through."""

from __future__ import annotations

from pathlib import Path

from holdfast.broker.trace_file import TraceFile
from holdfast.cluster.timeline import MERGED, last_events, write_timeline
from holdfast.lab import fold
from holdfast.model import TopicPartition, parse_trace

PARTITION = TopicPartition("t", 0)


def write(folder: Path) -> None:
    (folder / "traces").mkdir()
    clock = iter(range(1_000_000_000, 2_000_000_000, 100))
    files = {
        broker: TraceFile(
            folder / "traces" / f"broker-{broker}.trace", broker, clock_ns=lambda: next(clock)
        )
        for broker in (1, 2)
    }
    trace = TraceFile(folder / "traces" / "cluster.trace", None, clock_ns=lambda: next(clock))
    files[1].emit("registered")
    files[2].emit("registered")
    files[1].emit(
        "became-leader",
        PARTITION,
        leader_epoch=0,
        start_offset=0,
        log_end_offset=0,
        high_watermark=0,
        isr=[1, 2],
    )
    files[2].emit("became-follower", PARTITION, leader=1, leader_epoch=0)
    appended = {"base_offset": 0, "end_offset": 1, "leader_epoch": 0, "records": []}
    files[1].emit("appended", PARTITION, **appended, as_leader=True)
    files[2].emit("appended", PARTITION, **appended, as_leader=False, why=1)
    files[1].emit("high-watermark", PARTITION, high_watermark=1, was=0)
    trace.emit("crashed", None, b=1)
    for file in (*files.values(), trace):
        file.close()


def test_events_come_in_their_order_and_the_lab_reads_them(tmp_path: Path) -> None:
    write(tmp_path)
    merged = write_timeline(tmp_path)
    assert merged == tmp_path / "traces" / MERGED
    events = list(parse_trace(merged.read_text().splitlines()))
    assert [event.id for event in events] == list(range(9))
    kinds = [(event.broker, event.kind) for event in events]
    assert kinds == [
        (None, "begins"),
        (1, "registered"),
        (2, "registered"),
        (1, "became-leader"),
        (2, "became-follower"),
        (1, "appended"),
        (2, "appended"),
        (1, "high-watermark"),
        (1, "crashed"),
    ]
    assert events[6].why == 4, "a cause keeps its place: broker 2's event 1"
    assert events[1].t == 0
    last = fold(events)[-1].snapshot
    assert [view.name for view in last.replicas] == ["b1", "b2"]
    assert [view.log_end_offset for view in last.replicas] == [1, 1]


def test_merging_again_does_not_take_the_merged_one_for_a_broker_s(tmp_path: Path) -> None:
    write(tmp_path)
    first = write_timeline(tmp_path)
    assert first is not None
    content = first.read_text()
    assert write_timeline(tmp_path) == first
    assert first.read_text() == content


def test_torn_lines_are_left_out(tmp_path: Path) -> None:
    write(tmp_path)
    with (tmp_path / "traces" / "broker-1.trace").open("a") as file:
        file.write('{"id": 9, "t"\n{"x": 1}\n[]\n7\n')
    merged = write_timeline(tmp_path)
    assert merged is not None
    assert len(merged.read_text().splitlines()) == 9


def test_it_is_rendered_in_short_lines(tmp_path: Path) -> None:
    write(tmp_path)
    merged = write_timeline(tmp_path)
    assert merged is not None
    lines = last_events(merged, 2)
    assert "high-watermark   high_watermark=1 was=0" in lines[0]
    assert lines[1].split() == ["0.000", "b1", "crashed"]


def test_no_traces_no_timeline(tmp_path: Path) -> None:
    assert write_timeline(tmp_path) is None
