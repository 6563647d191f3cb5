"""The console's memory of the trace: bounded, and a replay begins with the state at its start."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.broker.trace_file import TraceFile
from holdfast.lab import fold
from holdfast.model import TopicPartition
from holdfast.web.console.reading import trace_ring
from holdfast.web.console.reading.trace_ring import MINUTES, TraceRing
from holdfast.web.console.replay import thinned

PARTITION = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)
SECOND = 1_000_000_000


class Traced:
    """A data directory with the trace of one broker, and a clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        (folder / "traces").mkdir()
        self.now_ns = 1_000 * SECOND
        self.path = folder / "traces" / "broker-1.trace"
        self.file = TraceFile(self.path, 1, clock_ns=lambda: self.now_ns)
        self.ring = TraceRing(folder)

    def lead(self) -> None:
        self.file.emit(
            "became-leader",
            PARTITION,
            leader_epoch=3,
            start_offset=0,
            log_end_offset=0,
            high_watermark=0,
            isr=[1],
        )

    def append(self, offset: int, partition: TopicPartition = PARTITION) -> None:
        self.file.emit(
            "appended",
            partition,
            base_offset=offset,
            end_offset=offset + 1,
            leader_epoch=3,
            records=[],
            as_leader=True,
        )

    def poll(self) -> int:
        self.file.flush()
        return len(self.ring.poll())


@pytest.fixture
def traced(tmp_path: Path) -> Traced:
    return Traced(tmp_path)


def test_it_reads_what_is_new_and_waits_for_the_end_of_a_line(traced: Traced) -> None:
    traced.lead()
    assert traced.poll() == 1
    with traced.path.open("ab") as file:
        file.write(b'{"id":9,"t":1000000,"b":1,"be":1,"p":"t-0"')
    assert traced.poll() == 0
    with traced.path.open("ab") as file:
        file.write(b',"k":"registered","why":null}\n')
    assert traced.poll() == 1


def test_a_replay_begins_with_the_state_at_its_start(traced: Traced) -> None:
    traced.lead()
    traced.append(0)
    traced.poll()
    traced.now_ns += 2 * MINUTES * 60 * SECOND
    traced.append(1)
    traced.append(0, OTHER)
    traced.poll()
    assert len(traced.ring) == 2, "older events have left the ring"
    events, before = traced.ring.replay("t-0")
    [leader] = fold(events, "t-0")[-1].snapshot.replicas
    assert (leader.role, leader.leader_epoch, leader.log_end_offset) == ("leader", 3, 2)
    assert [event.kind for event in events[before:]] == ["appended"]


def test_its_memory_is_bounded_by_events(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_ring, "MOST_EVENTS", 100)
    for offset in range(1_000):
        traced.append(offset)
    traced.poll()
    assert len(traced.ring) == 100
    assert len(traced.ring._base) == 1, "one event of each kind and replica stays"


def test_a_trace_that_is_faster_than_the_ring_is_skipped_and_counted(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_ring, "MOST_BYTES", 2_000)
    for offset in range(1_000):
        traced.append(offset)
    assert 0 < traced.poll() < 20
    assert traced.ring.skipped > 50_000
    traced.append(1_000)
    assert traced.poll() == 1


def test_a_long_replay_is_thinned_and_keeps_what_is_not_routine(traced: Traced) -> None:
    for offset in range(300):
        traced.append(offset)
    traced.lead()
    for offset in range(300, 600):
        traced.append(offset)
    traced.poll()
    frames = fold(traced.ring.replay("t-0")[0], "t-0")
    kept = thinned(frames, 50)
    assert 40 <= len(kept) <= 50
    assert kept[-1] == frames[-1]
    assert [one.kind for one in kept].count("became-leader") == 1
    assert kept == sorted(kept, key=lambda one: one.event)
    assert thinned(frames, 1_000) == frames
