"""Causes from checkpoints and from made-up traces: what real brokers do too rarely for a test."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.pipeline.audit.causes import explain
from holdfast.pipeline.audit.causes.leader_epochs import broker_id
from holdfast.pipeline.audit.causes.traces import read_traces, trace_files
from holdfast.pipeline.audit.findings.findings import (
    CONSUMED,
    DIFFER,
    DUPLICATE,
    LOST,
    PHANTOM,
    REORDERED,
    TABLE,
    TOO_FEW,
    UNSEEN_TAIL,
    Cause,
    EpochStart,
    Finding,
    LedgerRow,
    PartitionFacts,
    ReplicaFacts,
)

T = "events-0"


def row(acks: str = "all", acked_ms: int | None = 50, *, idempotent: bool = False) -> LedgerRow:
    return LedgerRow(
        run="r",
        producer="p",
        sequence=0,
        result="acked",
        acks=acks,
        idempotent=idempotent,
        sent_ms=1,
        acked_ms=acked_ms,
    )


def lost(first: int, last: int, **more: Any) -> Finding:
    given = {"kind": LOST, "ledger": row(), "count": last - first + 1, **more}
    return Finding(topic="events", partition=0, offset=first, last_offset=last, **given)


def facts(*replicas: ReplicaFacts) -> PartitionFacts:
    return PartitionFacts(
        topic="events", partition=0, leader=None, replicas=replicas, acked=0, found=0, lost=0
    )


def replica(
    broker: str, end: int, *epochs: tuple[int, int], high_watermark: int | None = None
) -> ReplicaFacts:
    return ReplicaFacts(
        broker=broker,
        path=f"{broker}/{T}",
        log_start_offset=0,
        log_end_offset=end,
        high_watermark=high_watermark,
        flushed=None,
        epochs=tuple(EpochStart(epoch=one, start_offset=start) for one, start in epochs),
    )


class Traces:
    """Writes traces as brokers do: one file per broker, one line per event."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lines: dict[int, int] = {}

    def write(self, t: int, b: int, k: str, p: str = T, **numbers: object) -> None:
        line = self._lines.get(b, 0)
        self._lines[b] = line + 1
        event = {"id": line, "t": t, "b": b, "be": 1, "p": p, "k": k, "why": None, **numbers}
        with self.file(b).open("a", encoding="utf-8") as file:
            file.write(json.dumps(event, separators=(",", ":")) + "\n")

    def file(self, b: int) -> Path:
        return self.folder / f"broker-{b}.trace"

    def elected(self, t: int, leader: int, epoch: int, start: int, rule: str = "isr") -> None:
        self.write(
            t,
            3,
            "elected",
            leader=leader,
            leader_epoch=epoch,
            partition_epoch=epoch,
            isr=[leader],
            eligible=[],
            rule=rule,
        )
        self.write(
            t,
            leader,
            "became-leader",
            leader_epoch=epoch,
            start_offset=start,
            log_end_offset=start,
            high_watermark=start,
            isr=[leader],
        )

    def appended(self, t: int, b: int, base: int, end: int, epoch: int, *, leads: bool) -> None:
        self.write(
            t,
            b,
            "appended",
            base_offset=base,
            end_offset=end,
            leader_epoch=epoch,
            records=[],
            as_leader=leads,
        )

    def acknowledged(self, t: int, b: int, offset: int, acks: int = -1) -> None:
        self.write(t, b, "acknowledged", producer="p", record="", offset=offset, acks=acks)


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    return Traces(tmp_path)


def cause_of(finding: Finding) -> Cause:
    assert finding.cause is not None
    return finding.cause


LOGS = {"b1": Path("b1"), "b2": Path("b2"), "b3": Path("b3")}


# From checkpoints.


def from_files(finding: Finding, *replicas: ReplicaFacts) -> Finding:
    [result] = explain([finding], LOGS, (), [facts(*replicas)])
    return result


@pytest.mark.parametrize(
    ("acks", "kind", "setting"),
    [
        ("all", "unclean-election", "unclean.leader.election.enable"),
        ("1", "leader-alone", "acks"),
        ("0", "leader-alone", "acks"),
    ],
)
def test_a_later_epoch_that_begins_below_overruled_the_record(
    acks: str, kind: str, setting: str
) -> None:
    finding = lost(5, 6, ledger=row(acks), has=("b1",), lacks=("b2",))
    result = from_files(finding, replica("b1", 7, (0, 0)), replica("b2", 9, (0, 0), (2, 4)))
    assert (cause_of(result).kind, cause_of(result).event_id) == (kind, None)
    assert result.remedy is not None
    assert result.remedy.setting == setting
    assert result.evidence[0] == f"b2/{T}/leader-epoch-checkpoint:4"
    assert "Epoch 2 begins at offset 4 in the log of b2" in cause_of(result).sentence
    assert "b1 still has what was acknowledged" in cause_of(result).sentence


def test_a_new_leader_that_has_no_record_yet_has_its_epoch_in_the_checkpoint() -> None:
    finding = lost(5, 6, has=("b1",), lacks=("b2",))
    result = from_files(finding, replica("b1", 7, (0, 0)), replica("b2", 5, (0, 0), (1, 5)))
    assert cause_of(result).kind == "unclean-election"


def test_a_log_shorter_than_its_own_high_watermark_lost_what_was_not_flushed() -> None:
    result = from_files(lost(5, 6), replica("b1", 5, (0, 0), high_watermark=7))
    assert cause_of(result).kind == "lost-flush"
    assert result.remedy is not None
    assert result.remedy.setting == "flush.messages"


def test_a_tail_that_is_gone_everywhere_is_not_explained_by_guessing() -> None:
    result = from_files(lost(5, 6), replica("b1", 5, (0, 0), (1, 3)), replica("b2", 4, (0, 0)))
    assert cause_of(result).kind == "unknown"
    assert result.remedy is None


def test_without_a_later_epoch_no_election_is_blamed() -> None:
    result = from_files(lost(5, 6), replica("b1", 9, (3, 0)), replica("b2", 9, (3, 0)))
    assert cause_of(result).kind == "outside"


def test_two_logs_that_name_one_epoch_and_differ_were_changed_from_outside() -> None:
    finding = lost(5, 5, kind=DIFFER, ledger=None)
    result = from_files(finding, replica("b1", 9, (3, 0)), replica("b2", 9, (3, 0)))
    assert cause_of(result).kind == "outside"


def test_nothing_is_said_where_nothing_is_known() -> None:
    finding = lost(5, 6)
    assert explain([finding], {}, (), []) == [finding]


# From traces.


def two_leaders(traces: Traces, rule: str = "unclean") -> None:
    """b1 leads epoch 0 and has offsets 0 to 9; b2 has 0 to 4 and leads epoch 1."""
    traces.elected(1, 1, 0, 0)
    traces.appended(10, 1, 0, 5, 0, leads=True)
    traces.acknowledged(11, 1, 0)
    traces.appended(12, 2, 0, 5, 0, leads=False)
    traces.appended(20, 1, 5, 10, 0, leads=True)
    traces.acknowledged(21, 1, 5)
    traces.write(30, 1, "crashed", p="")
    traces.elected(40, 2, 1, 5, rule)


def test_a_trace_names_the_event_and_its_line(traces: Traces) -> None:
    two_leaders(traces)
    [result] = explain([lost(5, 9)], LOGS, [traces.folder])
    assert cause_of(result).kind == "unclean-election"
    path, _, line = result.evidence[0].rpartition(":")
    event = json.loads(Path(path).read_text(encoding="utf-8").splitlines()[int(line) - 1])
    assert (event["k"], event["leader"], event["id"]) == ("elected", 2, cause_of(result).event_id)
    first = cause_of(result).chain[0]
    assert (first.kind, first.offset, first.time_ms) == ("acknowledged", 5, 21)


def test_torn_lines_and_other_partitions_are_passed_over(traces: Traces) -> None:
    two_leaders(traces)
    traces.write(35, 1, "truncated", p="events-1", end_offset=0, was=10, records=[])
    for file in trace_files([traces.folder]):
        with file.open("a", encoding="utf-8") as out:
            out.write('{"id":99,"t":50,"b":1,"be":1,"p":"events-0","k":"truncated","end_of')
    [result] = explain([lost(5, 9)], LOGS, [traces.folder])
    assert cause_of(result).kind == "unclean-election"
    assert "b1 still has them" in cause_of(result).sentence


def test_events_come_in_the_order_of_their_time(traces: Traces) -> None:
    two_leaders(traces)
    times = [seen.event.t for seen in read_traces(trace_files([traces.folder]), [T])]
    assert times == sorted(times)
    assert len(times) == 10, "none is left out"


def test_the_last_lines_of_a_killed_broker_may_be_missing(traces: Traces) -> None:
    """b1 was killed before it could write of offsets 5 to 9: the ledger knows of them all the same.

    The producer noted its acknowledgement only after the next election.
    """
    traces.elected(1, 1, 0, 0)
    traces.appended(10, 1, 0, 5, 0, leads=True)
    traces.appended(12, 2, 0, 5, 0, leads=False)
    traces.elected(40, 2, 1, 5)
    traces.appended(45, 2, 5, 8, 1, leads=True)
    traces.acknowledged(46, 2, 5)
    [result] = explain([lost(5, 9, ledger=row("1", 48))], LOGS, [traces.folder])
    assert cause_of(result).kind == "leader-alone"
    assert "b2 began epoch 1 at offset 5 without them" in cause_of(result).sentence


def test_of_two_losses_at_one_offset_each_has_its_own_election(traces: Traces) -> None:
    two_leaders(traces)
    traces.appended(50, 2, 5, 7, 1, leads=True)
    traces.acknowledged(51, 2, 5)
    traces.elected(60, 1, 2, 5)
    first, second = explain(
        [lost(5, 9, ledger=row("all", 22)), lost(5, 6, ledger=row("1", 52))], LOGS, [traces.folder]
    )
    assert "began epoch 1" in cause_of(first).sentence
    assert "began epoch 2" in cause_of(second).sentence


def test_an_older_acknowledgement_at_one_offset_does_not_hide_the_cause(traces: Traces) -> None:
    two_leaders(traces, rule="isr")  # And epoch 1's acknowledgement is missing.
    traces.appended(50, 2, 5, 10, 1, leads=True)
    traces.write(60, 2, "power-lost", kept=0, was=10, torn=0)
    traces.elected(70, 2, 2, 0, "unclean")
    [result] = explain([lost(5, 9, ledger=row(acked_ms=62))], LOGS, [traces.folder])
    assert cause_of(result).kind == "lost-flush"


def test_records_of_two_power_failures_are_two_findings(traces: Traces) -> None:
    traces.elected(1, 1, 0, 0)
    traces.appended(10, 1, 0, 10, 0, leads=True)
    traces.acknowledged(11, 1, 0)
    for t, kept, was in ((20, 7, 10), (40, 4, 7)):
        traces.write(t, 1, "power-lost", kept=kept, was=was, torn=0)
        traces.elected(t + 5, 1, t, kept)
    low, high = explain([lost(4, 9, ledger=row("1", 12))], LOGS, [traces.folder])
    assert (low.offset, low.last_offset, low.count) == (4, 6, 3)
    assert (high.offset, high.last_offset, high.count) == (7, 9, 3)
    assert (low.ledger, low.last_ledger) == (row("1", 12), None)
    assert "offsets 4 to 6 were in its page cache only" in cause_of(low).sentence
    assert "offsets 7 to 9 were in its page cache only" in cause_of(high).sentence


def test_later_records_may_be_of_a_producer_that_asked_for_less(traces: Traces) -> None:
    """Only the first record's row is known; who led alone later is known by the trace."""
    traces.elected(1, 1, 0, 0)
    traces.appended(10, 1, 0, 5, 0, leads=True)
    traces.appended(12, 2, 0, 5, 0, leads=False)
    traces.acknowledged(13, 1, 0)
    traces.appended(20, 1, 5, 10, 0, leads=True)
    traces.acknowledged(21, 1, 5, acks=1)
    traces.write(30, 1, "crashed", p="")
    traces.elected(40, 2, 1, 5)
    traces.write(50, 2, "power-lost", kept=0, was=5, torn=0)
    traces.elected(60, 2, 2, 0)
    low, high = explain([lost(0, 9, ledger=row("all", 14))], LOGS, [traces.folder])
    assert (low.last_offset, cause_of(low).kind) == (4, "lost-flush")
    assert (high.offset, cause_of(high).kind) == (5, "leader-alone")


def test_a_run_with_holes_stays_one_finding(traces: Traces) -> None:
    two_leaders(traces)
    [result] = explain([lost(3, 9, count=4)], LOGS, [traces.folder])
    assert result.count == 4


def test_neighbours_are_one_finding_with_one_cause(traces: Traces) -> None:
    two_leaders(traces)
    rows = [replace(row(acked_ms=22), sequence=place) for place in range(5)]
    single = [lost(5 + place, 5 + place, ledger=rows[place]) for place in range(5)]
    [result] = explain(single, LOGS, [traces.folder])
    assert (result.offset, result.last_offset, result.count) == (5, 9, 5)
    assert (result.ledger, result.last_ledger) == (rows[0], rows[4])
    assert "the 5 records at offsets 5 to 9" in cause_of(result).sentence
    other = replace(single[2], ledger=replace(rows[2], producer="another"))
    assert len(explain([*single[:2], other], LOGS, [traces.folder])) == 2
    assert len(explain([single[0], single[2]], LOGS, [traces.folder])) == 2, "not neighbours"


def test_the_losses_of_one_election_have_one_cause(traces: Traces) -> None:
    two_leaders(traces)
    parts = [lost(5, 6, detail="another is there"), lost(7, 7, detail="the log ends before")]
    one, other = explain([*parts], LOGS, [traces.folder])
    assert (one.count, other.count) == (2, 1)
    assert one.cause == other.cause
    assert "the 3 records at offsets 5 to 7" in cause_of(one).sentence
    apart = explain([lost(5, 6), lost(9, 9)], LOGS, [traces.folder])
    assert "3 records between offsets 5 and 9" in cause_of(apart[1]).sentence


def test_a_row_that_was_read_before_its_log_was_truncated(traces: Traces) -> None:
    two_leaders(traces)
    phantom = lost(5, 9, kind=PHANTOM, ledger=None, place=TABLE)
    traces.write(70, 1, "truncated", end_offset=5, was=10, records=[])
    [result] = explain([phantom], LOGS, [traces.folder])
    assert cause_of(result).kind == "unclean-election"


def test_acks_0_that_never_arrived(traces: Traces) -> None:
    nowhere = replace(lost(0, 0, ledger=row("0", None)), offset=None, last_offset=None)
    [result] = explain([nowhere], LOGS, [traces.folder])
    assert cause_of(result).kind == "never-written"
    assert result.remedy is not None
    assert (result.remedy.setting, result.remedy.value) == ("acks", "all")


# Without either.


@pytest.mark.parametrize(
    ("finding", "kind", "setting"),
    [
        (lost(1, 1, kind=DUPLICATE), "resent", "enable.idempotence"),
        (lost(1, 1, kind=DUPLICATE, ledger=row(idempotent=True)), "resent", "transactional.id"),
        (lost(1, 1, kind=REORDERED), "resent", "enable.idempotence"),
        (lost(1, 1, kind=DUPLICATE, place=CONSUMED), "read-again", None),
        (lost(1, 1, place=CONSUMED), "passed-over", "enable.auto.commit"),
        (lost(1, 1, place=TABLE), "passed-over", None),
        (lost(1, 1, kind=TOO_FEW, lacks=("b3",)), "few-copies", "min.insync.replicas"),
    ],
)
def test_what_needs_no_log_to_be_explained(
    finding: Finding, kind: str, setting: str | None
) -> None:
    [result] = explain([finding], LOGS)
    assert cause_of(result).kind == kind
    assert (result.remedy.setting if result.remedy else None) == setting


def test_what_has_no_cause_is_left_as_it_is() -> None:
    finding = lost(1, 1, kind=UNSEEN_TAIL)
    assert explain([finding], LOGS) == [finding]


def test_a_broker_is_known_by_its_files_or_else_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=7\n")
    assert broker_id("b2", tmp_path) == 7
    assert broker_id("b2", tmp_path / "nowhere") == 2
    assert broker_id("north", tmp_path / "nowhere") is None
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert broker_id("broker-4", tmp_path) == 4
