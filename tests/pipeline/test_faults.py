"""The faults of a run, as the report's timeline shows them."""

from __future__ import annotations

from pathlib import Path

from holdfast.model.trace import TraceEvent
from holdfast.pipeline.audit.causes import faults


def event(number: int, t: int, kind: str, broker: int, partition: str = "", **more: object) -> str:
    return TraceEvent(number, t, kind, broker, 1, partition, more).to_json() + "\n"


def elected(number: int, t: int, partition: str, rule: str) -> str:
    numbers = {"leader": 2, "leader_epoch": 1, "partition_epoch": 1, "isr": [2], "eligible": []}
    return event(number, t, "elected", 1, partition, rule=rule, **numbers)


def test_a_kill_a_power_failure_and_their_elections_are_named_once_each(tmp_path: Path) -> None:
    (tmp_path / "broker-1.trace").write_text(
        elected(1, 1_000, "t-0", "created")
        + elected(2, 6_100, "t-0", "isr")
        + elected(3, 6_200, "t-1", "isr")
        + event(4, 9_000, "appended", 1, "t-0", base_offset=0, end_offset=1, epoch=0)
    )
    (tmp_path / "cluster.trace").write_text(
        event(1, 5_900, "crashed", 2)
        + event(2, 8_000, "power-lost", 3, "t-0", kept=0, was=5, torn=0)
        + event(3, 8_000, "power-lost", 3, "t-1", kept=0, was=5, torn=0)
        + '{"id": 4, "t": 9000, "k": "cra'
    )
    found = faults([tmp_path], {"east-2": tmp_path / "none", "west-1": tmp_path / "none"})
    assert [(one.time_ms, one.sentence) for one in found] == [
        (5_900, "east-2 was killed"),
        (6_100, "leaders were elected"),
        (8_000, "the power of broker 3 failed"),
    ]


def test_without_traces_no_fault_is_known(tmp_path: Path) -> None:
    assert faults([], {"b1": tmp_path}) == ()
