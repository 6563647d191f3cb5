from __future__ import annotations

import json

from holdfast.lab.render.frames import Frame, fold, steps, table
from holdfast.lab.render.views import Acknowledgement
from holdfast.model.trace import TraceEvent
from tests.unit.lab.traces import (
    TraceBuilder,
    divergence_unclean,
    loss_restart_truncation,
    one_of_every_kind,
    sync_fetch_after_produce,
)


def labels(frame: Frame, name: str) -> list[str]:
    view = next(view for view in frame.snapshot.replicas if view.name == name)
    return [f"{cell.label}@{cell.offset}e{cell.epoch}" for cell in view.cells]


def acknowledgement(frame: Frame, record: str) -> Acknowledgement:
    return next(one for one in frame.snapshot.acknowledgements if one.record == record)


def at(frames: list[Frame], line: str) -> Frame:
    return next(frame for frame in frames if frame.line == line)


def test_the_table_of_a_synchronous_fetch_is_the_one_in_the_catalogue() -> None:
    rows = table(fold(sync_fetch_after_produce()))
    columns = [
        (
            row["replicas"]["A"]["leo"],
            row["replicas"]["A"]["remote"]["B"],
            row["replicas"]["A"]["hw"],
            row["replicas"]["B"]["leo"],
            row["replicas"]["B"]["hw"],
        )
        for row in rows
    ]
    assert columns == [
        (0, 0, 0, 0, 0),
        (1, 0, 0, 0, 0),
        (1, 0, 0, 0, 0),
        (1, 0, 0, 1, 0),
        (1, 1, 1, 1, 0),
        (1, 1, 1, 1, 1),
    ]
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert rows[0]["text"] == "start"
    assert rows[1]["text"] == "produce A m0 acks=all"


def test_the_table_is_json_with_stable_keys() -> None:
    row = json.loads(json.dumps(table(fold(sync_fetch_after_produce()))))[0]
    assert list(row) == ["step", "text", "event", "t", "replicas"]
    keys = ["leo", "hw", "flushed", "epoch", "in_isr", "role", "remote"]
    assert list(row["replicas"]["A"]) == keys


def test_cells_follow_appends_and_truncations() -> None:
    frames = fold(loss_restart_truncation())
    before = at(frames, "B becomes follower of A epoch=1")
    after = at(frames, "B truncates to 2, drops [2,3) m2")
    assert labels(before, "B") == ["m0@0e1", "m1@1e1", "m2@2e1"]
    assert labels(after, "B") == ["m0@0e1", "m1@1e1"]
    assert [cell.label for cell in after.removed] == ["m2"]
    assert labels(after, "A") == ["m0@0e1", "m1@1e1", "m2@2e1"]


def test_an_acknowledged_record_is_kept_then_endangered_then_lost() -> None:
    frames = fold(loss_restart_truncation())
    assert acknowledgement(at(frames, "A acknowledges offset=2"), "m2").status == "acknowledged"
    assert acknowledgement(at(frames, "B truncates to 2, drops [2,3) m2"), "m2").held == (1,)
    assert acknowledgement(at(frames, "A crashes"), "m2").status == "endangered"
    assert acknowledgement(at(frames, "A truncates to 2, drops [2,3) m2"), "m2").status == "lost"


def test_an_acknowledged_record_that_only_a_follower_has_is_endangered() -> None:
    frames = fold(divergence_unclean())
    back = at(frames, "A restarts unclean log_end_offset=2 high_watermark=2")
    assert acknowledgement(back, "m1").held == (1,)
    assert acknowledgement(back, "m1").status == "endangered"


def test_with_acks_0_a_record_is_lost_once_it_was_there_and_is_nowhere() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.produce(1, "m0", 0, 1, acks="0")
    trace.add("power-lost", 1, kept=0, was=1, torn=False)
    frames = fold(trace.events)
    assert [acknowledgement(frame, "m0").status for frame in frames[1:]] == [
        "sent",
        "acknowledged",
        "lost",
    ]


def test_what_survives_a_fault() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.append(1, 0, 1, "m0", "m1", "m2", as_leader=True)
    trace.add("flushed", 1, end_offset=2)
    trace.add("crashed", 1)
    crashed = fold(trace.events)[-1]
    trace.add("power-lost", 1, kept=2, was=3, torn=False)
    dark = fold(trace.events)[-1]
    trace.add("disk-lost", 1, was=2)
    empty = fold(trace.events)[-1]
    assert [len(labels(frame, "A")) for frame in (crashed, dark, empty)] == [3, 2, 0]
    assert [cell.label for cell in dark.removed] == ["m2"]
    view = empty.snapshot.replicas[0]
    assert (view.alive, view.down, view.log_end_offset, view.flushed_end) == (
        False,
        "lost power",
        0,
        0,
    )


def test_a_restart_says_how_long_the_log_is() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.append(1, 0, 1, "m0", "m1", as_leader=True)
    trace.add("crashed", 1)
    trace.restart(1, 1, 0)
    frame = fold(trace.events)[-1]
    assert labels(frame, "A") == ["m0@0e1"]
    assert frame.snapshot.replicas[0].condition == "none"


def test_a_log_that_begins_again_beyond_its_end_is_empty() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.append(2, 0, 1, "m0", "m1")
    trace.truncate(2, 10, 2, "m0", "m1")
    frame = fold(trace.events)[-1]
    view = frame.snapshot.replicas[1]
    assert (view.cells, view.log_start, view.log_end_offset) == ((), 10, 10)
    assert len(frame.removed) == 2


def test_records_without_labels_are_called_by_their_offset() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.add(
        "appended", 1, base_offset=7, end_offset=9, leader_epoch=1, records=[], as_leader=True
    )
    trace.add("acknowledged", 1, producer="p1", record="", offset=8, acks="all")
    frame = fold(trace.events)[-1]
    assert labels(frame, "A") == ["7@7e1", "8@8e1"]
    assert acknowledgement(frame, "8").held == (1,)


def test_a_producers_label_finds_a_record_that_the_log_does_not_name() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.add(
        "appended", 1, base_offset=0, end_offset=1, leader_epoch=1, records=[], as_leader=True
    )
    trace.acknowledge(1, "order-17", 0)
    assert acknowledgement(fold(trace.events)[-1], "order-17").held == (1,)


def test_a_new_leader_knows_nothing_of_the_others() -> None:
    frames = fold(divergence_unclean())
    assert at(frames, "B becomes leader epoch=2 starts_at=1").snapshot.replicas[1].remote == (
        (1, None),
        (3, None),
    )


def test_the_store_says_who_is_in_sync_and_the_leader_what_it_counts_on() -> None:
    trace = TraceBuilder()
    trace.begin("ABC")
    trace.add("isr-applied", 1, isr=[1], partition_epoch=1)
    trace.add("isr-committed", None, isr=[1, 2], partition_epoch=2, eligible=[3])
    leader, *followers = fold(trace.events)[-1].snapshot.replicas
    assert leader.counts_on == (1,)
    assert [(view.in_isr, view.eligible) for view in followers] == [(True, False), (False, True)]


def test_words_and_commands_hang_on_the_frames_that_follow() -> None:
    frames = fold(loss_restart_truncation())
    assert not any(frame.kind in ("said", "step") for frame in frames)
    crash = at(frames, "B crashes")
    assert crash.narration.startswith("B dies before the answer arrives.")
    assert (crash.step, crash.step_text) == (3, "crash B")
    assert frames[1].narration.endswith("the last one is committed.")


def test_a_silent_command_still_has_a_row() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.step("drop nothing")
    trace.step("crash A")
    trace.add("crashed", 1)
    trace.step("wait")
    assert [frame.step_text for frame in steps(fold(trace.events))] == [
        "start",
        "drop nothing",
        "crash A",
        "wait",
    ]


def test_closing_words_get_a_frame() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.say("That was all.")
    frames = fold(trace.events)
    assert [frame.kind for frame in frames] == ["begins", "said"]
    assert frames[-1].narration == "That was all."


def test_without_commands_every_frame_is_a_step() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.add("crashed", 1)
    trace.add("crashed", 2)
    frames = fold(trace.events)
    assert steps(frames) == frames
    assert [row["text"] for row in table(frames)] == ["start", "A crashes", "B crashes"]


def test_an_arrow_shows_the_message_of_the_event() -> None:
    frames = fold(loss_restart_truncation())
    asked = at(frames, "B->A Fetch epoch=1 fetch_offset=3 last_fetched_epoch=1").arrow
    assert asked is not None
    assert (asked.source, asked.target, asked.text) == (2, 1, "Fetch from 3")
    lost = next(frame.arrow for frame in frames if frame.kind == "message-lost")
    assert lost is not None
    assert not lost.arrives


def test_a_lost_message_finds_its_ends_by_name() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.add("message-lost", what="ProduceRequest", source="p1", target="A")
    arrow = fold(trace.events)[-1].arrow
    assert arrow is not None
    assert (arrow.source, arrow.target, arrow.text) == ("producer", 1, "Produce")


def test_frames_share_what_did_not_change() -> None:
    frames = fold(divergence_unclean())
    before, after = frames[-2], frames[-1]
    assert before.snapshot.replicas[1] is after.snapshot.replicas[1]


def test_only_one_partition_is_drawn() -> None:
    events = sync_fetch_after_produce()
    other = events[-1]._replace(id=len(events), partition="other-0")
    assert len(fold([*events, other])) == len(fold(events))
    assert len(fold([*events, other], partition="other-0")) == 1


def test_a_trace_may_begin_in_the_middle() -> None:
    event = TraceEvent(0, 0, "high-watermark", 4, 1, "t-0", {"high_watermark": 5, "was": 4})
    (frame,) = fold([event])
    assert frame.snapshot.replicas[0].name == "b4"
    assert frame.line == "b4 commits up to 5"


def test_every_kind_can_be_folded() -> None:
    assert fold(one_of_every_kind())
    assert fold([]) == []
