"""The trace of a real broker: readable by the lab, bounded, and honest about what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.broker.trace_file import TraceFile
from holdfast.model import TopicPartition, parse_trace


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def test_a_line_is_what_the_lab_reads(tmp_path: Path) -> None:
    trace = TraceFile(tmp_path / "t", 1, clock_ns=lambda: 1_500_000_042)
    trace.broker_epoch = 7
    partition = TopicPartition("t", 0)
    trace.emit("flushed", partition, end_offset=3)
    trace.emit("high-watermark", partition, high_watermark=3, was=2, why=0)
    trace.close()
    events = list(parse_trace((tmp_path / "t").read_text().splitlines()))
    assert [(e.id, e.t, e.kind, e.broker, e.broker_epoch, e.why) for e in events] == [
        (0, 1500, "flushed", 1, 7, None),
        (1, 1500, "high-watermark", 1, 7, 0),
    ]
    assert events[0].numbers == {"end_offset": 3, "ns": 42}


def test_ids_go_on_after_a_restart_even_if_the_last_line_is_torn(tmp_path: Path) -> None:
    trace = TraceFile(tmp_path / "t", 1)
    trace.emit("registered")
    trace.emit("registered")
    trace.close()
    with (tmp_path / "t").open("a") as file:
        file.write('{"id":2,"t":')
    trace = TraceFile(tmp_path / "t", 1)
    trace.emit("stopped")
    trace.close()
    last = json.loads((tmp_path / "t").read_text().splitlines()[-1])
    assert (last["id"], last["k"]) == (2, "stopped")


def test_what_does_not_fit_is_counted_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.broker.trace_file.PAUSE_S", 60)  # the writer does not get to it
    trace = TraceFile(tmp_path / "t", 1, most=3)
    for _ in range(10):
        trace.emit("registered")
    assert trace.dropped == 7
    trace.flush()
    written = lines(tmp_path / "t")
    assert [line["k"] for line in written] == ["registered"] * 3 + ["said"]
    assert "7 events are missing" in str(written[-1]["text"])
    trace.emit("registered")
    trace.flush()
    assert [line["id"] for line in lines(tmp_path / "t")] == [0, 1, 2, 3, 4]


def test_the_writer_comes_by_itself(tmp_path: Path) -> None:
    trace = TraceFile(tmp_path / "t", 1)
    try:
        for round_ in range(3):
            trace.emit("registered")
            while len(lines(tmp_path / "t")) <= round_:  # Ends, or pytest's timeout ends it.
                pass
    finally:
        trace.close()


def test_a_kind_that_nobody_knows_is_a_bug(tmp_path: Path) -> None:
    trace = TraceFile(tmp_path / "t", 1)
    with pytest.raises(AssertionError):
        trace.emit("exploded")
    trace.close()
