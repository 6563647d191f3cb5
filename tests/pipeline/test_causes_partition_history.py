"""Causes from what the controllers decided, and from files that say what became of a copy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.pipeline.audit.causes import Past, explain
from holdfast.pipeline.audit.controllers.kraft_metadata import Election, TopicIncarnation
from holdfast.pipeline.audit.findings.findings import (
    CONSUMED,
    DIFFER,
    TABLE,
    Damage,
    Finding,
    ReplicaFacts,
)
from holdfast.pipeline.audit.replicas.truth import Stranger
from tests.pipeline.test_causes import LOGS, cause_of, facts, lost, replica, row

A, B = b"a" * 16, b"b" * 16


def election(leader: int, epoch: int, time_ms: int, *, unclean: bool = False) -> Election:
    return Election(leader, epoch, time_ms, (1,), unclean, f"metadata, offset {epoch}")


def explained(finding: Finding, past: Past, *replicas: ReplicaFacts) -> Finding:
    [result] = explain([finding], LOGS, (), [facts(*replicas)], {("events", 0): past})
    return result


def kind_and_setting(finding: Finding) -> tuple[str, str | None]:
    return cause_of(finding).kind, finding.remedy.setting if finding.remedy else None


UNCLEAN = ("unclean-election", "unclean.leader.election.enable")
PAST = Past(elections=(election(1, 0, 10), election(2, 1, 60, unclean=True)))


@pytest.mark.parametrize("acks", ["all", "1", "0"])
@pytest.mark.parametrize("end", [9, 4], ids=["written over", "log ends before"])
def test_the_controllers_say_that_an_election_was_unclean(acks: str, end: int) -> None:
    finding = lost(5, 6, ledger=row(acks))
    result = explained(finding, PAST, replica("b2", end, (0, 0), (1, 4)))
    assert kind_and_setting(result) == UNCLEAN
    assert result.evidence[:2] == ("metadata, offset 1", "b2/events-0/leader-epoch-checkpoint:4")


def test_an_epoch_that_left_no_line_is_blamed_all_the_same() -> None:
    """It wrote nothing, so that the next epoch begins at the same offset, and took its place."""
    past = Past(elections=(*PAST.elections, election(1, 2, 70)))
    result = explained(lost(5, 6), past, replica("b1", 9, (0, 0), (2, 4)))
    assert kind_and_setting(result) == UNCLEAN
    assert "b2 was elected for epoch 1" in cause_of(result).sentence


def test_an_unclean_election_before_the_acknowledgement_is_not_blamed() -> None:
    past = Past(elections=(election(1, 0, 10), election(2, 1, 20, unclean=True)))
    result = explained(lost(5, 6), past, replica("b2", 4, (0, 0), (1, 4), high_watermark=7))
    assert cause_of(result).kind == "lost-flush"


@pytest.mark.parametrize(
    ("acks", "expected"),
    [("1", ("leader-alone", "acks")), ("all", ("lost-flush", "flush.messages"))],
)
def test_a_clean_election_is_called_clean(acks: str, expected: tuple[str, str]) -> None:
    past = Past(elections=(election(1, 0, 10), election(2, 1, 60)))
    result = explained(lost(5, 6, ledger=row(acks)), past, replica("b2", 9, (0, 0), (1, 4)))
    assert kind_and_setting(result) == expected
    assert "cleanly" in cause_of(result).sentence


# Topics by their ids.

INCARNATIONS = (
    TopicIncarnation(A, 10, 55, "metadata, offset 1"),
    TopicIncarnation(B, 60, None, "metadata, offset 2"),
)


def test_a_record_of_a_topic_that_was_deleted() -> None:
    strangers = (Stranger("b3", "b3/events-0", A), Stranger("b2", "b2/events-0.x-delete", A))
    past = Past(topic_id=B, incarnations=INCARNATIONS, strangers=strangers)
    result = explained(lost(5, 6), past, replica("b1", 9, (0, 0)))
    assert kind_and_setting(result) == ("recreated-topic", None)
    assert "b2 and b3 still have a log of the deleted topic" in cause_of(result).sentence
    assert result.evidence[:2] == ("metadata, offset 1", "metadata, offset 2")


def test_a_record_of_the_present_topic_was_lost_otherwise() -> None:
    past = Past(topic_id=B, incarnations=INCARNATIONS)
    result = explained(lost(5, 6, ledger=row(acked_ms=65)), past, replica("b1", 9, (0, 0)))
    assert cause_of(result).kind == "outside"


def test_a_producer_whose_clock_is_behind_does_not_make_a_topic_recreated() -> None:
    """No other topic ever had the name."""
    past = Past(topic_id=B, incarnations=INCARNATIONS[1:])
    assert cause_of(explained(lost(5, 6), past, replica("b1", 9, (0, 0)))).kind == "outside"


@pytest.mark.parametrize(
    ("began_ms", "others", "kind"),
    [
        (60, (Stranger("b3", "x", A),), "recreated-topic"),
        (40, (Stranger("b3", "x", A),), "outside"),
        (60, (Stranger("b3", "x", B),), "outside"),
        (None, (Stranger("b3", "x", A),), "outside"),
        (60, (), "outside"),
    ],
)
def test_folders_of_another_id_show_it_without_controllers(
    began_ms: int | None, others: tuple[Stranger, ...], kind: str
) -> None:
    past = Past(topic_id=B, began_ms=began_ms, strangers=others)
    assert cause_of(explained(lost(5, 6), past, replica("b1", 9, (0, 0)))).kind == kind


# Before it was read.


@pytest.mark.parametrize("place", [TABLE, CONSUMED])
@pytest.mark.parametrize(
    ("first_segment", "expected"),
    [(500, ("retention", "retention.ms")), (0, ("deleted-records", None))],
)
def test_what_left_the_log_before_it_was_read(
    place: str, first_segment: int, expected: tuple[str, str | None]
) -> None:
    log = replace(replica("b1", 900, (0, 500)), log_start_offset=500, first_segment=first_segment)
    follower = replace(log, broker="b2", first_segment=0)
    result = explained(lost(0, 499, place=place), Past(), log, follower)
    assert kind_and_setting(result) == expected
    assert "below offset 500" in cause_of(result).sentence


def test_what_the_log_still_has_was_passed_over() -> None:
    log = replace(replica("b1", 900, (0, 500)), log_start_offset=500, first_segment=500)
    assert cause_of(explained(lost(500, 501, place=TABLE), Past(), log)).kind == "passed-over"


# A copy that lacks what it had.


@pytest.mark.parametrize(
    ("end", "more", "kind"),
    [
        (5, {"high_watermark": 9}, "lost-flush"),
        (5, {"flushed": 9}, "outside"),
        (0, {"high_watermark": 9}, "lost-disk"),
        (0, {"is_absent": True}, "outside"),
    ],
)
def test_why_a_copy_is_short(end: int, more: dict[str, int], kind: str) -> None:
    short = replace(replica("b2", end, (0, 0)), **more)  # type: ignore[arg-type]
    finding = lost(5, 8, kind=DIFFER, ledger=None, lacks=("b2",))
    result = explained(finding, Past(), replica("b1", 9, (0, 0)), short)
    assert cause_of(result).kind == kind
    assert result.evidence[0] == "b2/events-0"


def test_a_damaged_batch_is_not_blamed_on_an_election() -> None:
    damage = Damage(first=5, until=7, place="b1/events-0/0.log:99", reason="the CRC")
    log = replace(replica("b1", 9, (0, 0), (1, 4)), damages=(damage,))
    result = explained(lost(5, 6), Past(), log)
    assert cause_of(result).kind == "outside"
    assert result.evidence[0] == "b1/events-0/0.log:99"
