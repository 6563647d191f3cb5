from __future__ import annotations

from typing import Any

import pytest

from holdfast.lab.render.narrate import line, names_of, sentence
from holdfast.model.trace import KINDS, TraceEvent
from tests.unit.lab.traces import one_of_every_kind, sync_fetch_after_produce

SILENT = ("begins", "said", "step")


def event(kind: str, broker: int | None = None, **numbers: Any) -> TraceEvent:
    return TraceEvent(0, 0, kind, broker, 1, "t-0", numbers)


@pytest.mark.parametrize("one", one_of_every_kind(), ids=list(KINDS))
def test_every_kind_has_a_line_and_a_sentence(one: TraceEvent) -> None:
    text = line(one, {})
    assert (text is None) == (one.kind in SILENT)
    spoken = sentence(one, {1: "A", 2: "B"})
    assert spoken[0].isupper() or spoken[0].isdigit()
    assert spoken.endswith(".") or one.kind in ("said", "step")
    assert "None" not in f"{text or ''} {spoken}"


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (
            event("appended", 1, base_offset=1, end_offset=2, leader_epoch=1, records=["m1"],
                  as_leader=True),
            "b1 appends [1,2) epoch=1",
        ),
        (
            event("acknowledged", 1, producer="p", record="m1", offset=1, acks=-1),
            "b1 acknowledges offset=1",
        ),
        (
            event("elected", leader=2, leader_epoch=2, partition_epoch=3, isr=[2, 3], eligible=[],
                  rule="isr"),
            "controller: leader=b2 leader_epoch=2 isr=(b2,b3)",
        ),
        (
            event("elected", leader=3, leader_epoch=2, partition_epoch=3, isr=[3], eligible=[1],
                  rule="unclean"),
            "controller: leader=b3 leader_epoch=2 isr=(b3) rule=unclean eligible=(b1)",
        ),
        (
            event("elected", leader=-1, leader_epoch=4, partition_epoch=5, isr=[1], eligible=[],
                  rule="none"),
            "controller: no leader (NoReplicaOnline) leader_epoch=4 isr=(b1)",
        ),
        (
            event("became-leader", 2, leader_epoch=2, start_offset=1, log_end_offset=1,
                  high_watermark=0, isr=[2]),
            "b2 becomes leader epoch=2 starts_at=1",
        ),
        (
            event("became-follower", 3, leader=2, leader_epoch=2),
            "b3 becomes follower of b2 epoch=2",
        ),
        (
            event(
                "fetched",
                2,
                follower=3,
                fetch_offset=1,
                last_fetched_epoch=1,
                leader_epoch=2,
                noted=True,
            ),
            "b3->b2 Fetch epoch=2 fetch_offset=1 last_fetched_epoch=1",
        ),
        (
            event("fetch-answered", 2, follower=3, base_offset=1, end_offset=2, high_watermark=1),
            "b2->b3 records [1,2) high_watermark=1",
        ),
        (
            event("fetch-answered", 2, follower=3, base_offset=2, end_offset=2, high_watermark=2),
            "b2->b3 nothing new high_watermark=2",
        ),
        (
            event("diverged", 2, follower=1, epoch=1, end_offset=1),
            "b2->b1 diverging_epoch=1 end_offset=1",
        ),
        (
            event("truncated", 1, end_offset=1, was=2, records=["m1"]),
            "b1 truncates to 1, drops [1,2) m1",
        ),
        (event("truncated", 1, end_offset=1, was=2, records=[]), "b1 truncates to 1, drops [1,2)"),
        (event("high-watermark", 2, high_watermark=2, was=1), "b2 commits up to 2"),
        (event("flushed", 2, end_offset=3), "b2 flushes up to 3"),
        (event("crashed", 1), "b1 crashes"),
        (event("power-lost", 1, kept=2, was=3, torn=False), "b1 loses power, keeps [0,2)"),
        (event("sent", 1, producer="p1", record="m0", acks=-1), "p1->b1 Produce m0 acks=all"),
    ],
)  # fmt: skip
def test_lines_are_as_scenario_files_expect_them(one: TraceEvent, expected: str) -> None:
    assert line(one, {}) == expected


def test_brokers_go_by_their_names() -> None:
    events = sync_fetch_after_produce()
    names = names_of(events)
    assert names == {1: "A", 2: "B"}
    asked = next(one for one in events if one.kind == "fetched" and one.numbers["fetch_offset"])
    assert line(asked, names) == "B->A Fetch epoch=1 fetch_offset=1 last_fetched_epoch=1"
    expected = "A receives a fetch of B from offset 1, so B holds everything below."
    assert sentence(asked, names) == expected


def test_an_error_has_its_plain_words_and_its_name() -> None:
    one = event("refused", 1, producer="p", record="m0", error="NOT_ENOUGH_REPLICAS", offset=None)
    assert sentence(one, {}) == (
        "b1 refuses m0: too few replicas are in sync to acknowledge it (NOT_ENOUGH_REPLICAS)."
    )


def test_the_end_names_the_worst() -> None:
    one = event(
        "verdict",
        verdict="invalid",
        outcome="lost",
        lost=["m1", "m2"],
        exposed_lost=[],
        refused_kept=["m3"],
        diverged=[],
        reason="the settings guarantee that it is kept",
    )
    assert sentence(one, {}) == (
        "The end: acknowledged and lost: m1 and m2; the settings guarantee that it is kept."
    )
    assert line(one, {}) == "verdict: invalid outcome=lost lost=(m1,m2) refused_kept=(m3)"
