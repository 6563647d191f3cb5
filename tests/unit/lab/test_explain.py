from __future__ import annotations

import json

from holdfast.lab.judge.explain import explain
from tests.unit.lab.traces import (
    TraceBuilder,
    divergence_unclean,
    loss_restart_truncation,
    sync_fetch_after_produce,
)


def test_a_lost_record_is_explained_from_its_sending_to_its_end() -> None:
    remedy = "truncation=leader-epoch keeps it"
    answer = explain(loss_restart_truncation(), 2, [remedy])
    (account,) = answer.accounts
    assert (account.record, account.outcome, account.acks) == ("m2", "lost", "all")
    assert account.sent is not None
    assert account.acknowledged is not None
    assert account.acknowledged.line == "A acknowledges offset=2"
    assert (account.isr, account.holders) == (("A", "B"), ("A", "B"))
    ends = {copy.replica: copy.ends.kind for copy in account.copies if copy.ends is not None}
    assert ends == {"A": "truncated", "B": "truncated"}
    assert [moment.kind for moment in account.causes] == [
        "truncated",
        "became-follower",
        "restarted",
    ]
    assert remedy in answer.to_text()


def test_each_record_at_an_offset_has_its_own_account() -> None:
    lost, kept = explain(divergence_unclean(), 1).accounts
    assert (lost.record, lost.leader_epoch, lost.outcome) == ("m1", 1, "lost")
    assert lost.never == ("B", "C")
    assert (kept.record, kept.leader_epoch, kept.outcome) == ("m2", 2, "kept")
    assert kept.never == ("A",)


def test_a_record_can_be_asked_for_by_its_label() -> None:
    (account,) = explain(divergence_unclean(), "m1").accounts
    assert account.offset == 1


def test_a_record_that_is_still_there_says_where() -> None:
    answer = explain(sync_fetch_after_produce(), 0)
    assert answer.accounts[0].outcome == "kept"
    assert answer.sentence == (
        "m0 (offset 0) is where it should be: in the log of the leader on A and B."
    )
    assert "and is still there" in answer.to_text()


def test_a_record_on_a_dead_replica_is_out_of_reach() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.produce(1, "m0", 0, 1, acks="1")
    trace.acknowledge(1, "m0", 0, acks="1")
    trace.add("crashed", 1)
    trace.elect(2, 2, (2,), rule="unclean")
    (account,) = explain(trace.events, 0).accounts
    assert account.outcome == "unavailable"
    assert [moment.kind for moment in account.causes] == ["elected"]
    trace.verdict("invalid", "lost", ("m0",), "")
    (account,) = explain(trace.events, 0).accounts
    assert account.outcome == "lost"


def test_a_record_that_never_reached_a_log() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.add("sent", 1, producer="p1", record="m0", acks=0)
    trace.add("message-lost", what="ProduceRequest", source="p1", target="A")
    answer = explain(trace.events, "m0")
    assert answer.accounts[0].outcome == "never-written"
    assert answer.sentence == "m0 was taken for written, and never reached any log."


def test_a_refused_record_that_stayed() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.produce(1, "m0", 0, 1)
    error = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    trace.add("refused", 1, producer="p1", record="m0", error=error, offset=0)
    (account,) = explain(trace.events, 0).accounts
    assert account.outcome == "refused-kept"
    assert account.refused is not None


def test_a_record_that_was_read_and_never_acknowledged() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.produce(1, "m0", 0, 1)
    trace.add("consumed", 1, consumer="c1", offset=0, record="m0")
    trace.add("power-lost", 1, kept=0, was=1, torn=False)
    assert explain(trace.events, 0).accounts[0].outcome == "exposed-lost"


def test_a_record_that_nobody_counted_on_is_only_dropped() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.produce(1, "m0", 0, 1)
    trace.truncate(1, 0, 1, "m0")
    assert explain(trace.events, 0).accounts[0].outcome == "dropped"


def test_a_label_that_only_the_producer_knows() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.add("sent", 1, producer="p1", record="order-17", acks="all")
    trace.add(
        "appended", 1, base_offset=0, end_offset=1, leader_epoch=1, records=[], as_leader=True
    )
    trace.acknowledge(1, "order-17", 0)
    (account,) = explain(trace.events, "order-17").accounts
    assert (account.record, account.offset, account.outcome) == ("order-17", 0, "kept")
    assert account.sent is not None


def test_an_offset_that_was_never_written() -> None:
    assert explain(sync_fetch_after_produce(), 9).to_text() == (
        "No record was ever written or sent as offset 9."
    )


def test_the_answer_is_json_with_stable_keys() -> None:
    answer = json.loads(json.dumps(explain(loss_restart_truncation(), 2).to_dict()))
    assert list(answer) == ["schema", "asked", "records", "remedies", "sentence"]
    assert answer["schema"] == "holdfast-explain/1"
    assert list(answer["records"][0]) == [
        "record",
        "offset",
        "leader_epoch",
        "outcome",
        "sent",
        "promised",
        "refused",
        "unanswered",
        "acks",
        "isr_at_promise",
        "holders_at_promise",
        "lives",
        "never",
        "causes",
        "sentence",
    ]
