"""Every anomaly, planted alone in real logs and ledgers, is found, and nothing else is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.model import EpochEntry, LeaderEpoch, Offset
from holdfast.pipeline.audit import AuditInputs, run_here
from holdfast.pipeline.audit.jobs.ledger_owners import consumers, producers
from holdfast.pipeline.audit.jobs.row_sources import DELIVERED, READ, SENT, Gathered, ledger_packs
from holdfast.pipeline.audit.jobs.stretch_job import Context, Pack, Packs
from holdfast.pipeline.audit.judge.stretch_verdict import Expectation
from holdfast.pipeline.audit.replicas.replica_files import find_replicas
from holdfast.storage import RealDisk
from holdfast.storage import file_names as files
from holdfast.storage.checkpoints.checkpoint_file import read_epochs, write_epochs, write_offsets
from tests.pipeline.audit_plants import RECORDS, Estate, make_estate, value, write_consumed
from tests.pipeline.audit_reference import Content, Findings, Line
from tests.pipeline.audit_world import NAME, TOPIC, findings_of, row, rows_of, run_packs

pytestmark = pytest.mark.slow
SPAN = 16


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return make_estate(tmp_path_factory.mktemp("estate") / "original")


@pytest.fixture
def estate(original: Estate, tmp_path: Path) -> Estate:
    return original.copy(tmp_path / "copy")


def audited(
    estate: Estate,
    table: list[tuple[int, Content]] | None = None,
    polls: list[tuple[int, Content]] | None = None,
    logs: dict[str, Path] | None = None,
) -> Findings:
    """The audit without Spark, which only moves packs: test_audit_run.py has it with."""
    sent = producers(estate.ledger)
    given = consumers(estate.consumed(polls)) if polls is not None else None
    cluster = find_replicas(logs or estate.logs, [TOPIC])
    context = Context(
        partitions=cluster.partitions,
        bits={broker: bit for bit, broker in enumerate(cluster.brokers)},
        is_partial=cluster.is_partial,
        min_insync=None,
        is_acks_all=sent.is_acks_all(),
        table=_spans([offset for offset, _ in table], 0) if table is not None else None,
        consumed=_spans([offset for offset, _ in polls], polls[0][0]) if polls else None,
        span=SPAN,
    )

    def look(source: int, is_wanted: Any) -> Packs:
        files = sent.files if source == SENT or given is None else given.files
        found: Packs = {}
        for one in _rows(ledger_packs(files, source, [TOPIC], SPAN, is_wanted)):
            found.setdefault(one[:2], []).append(one[4])
        return found

    packs = list(_rows(ledger_packs(sent.files, SENT, [TOPIC], SPAN)))
    if given is not None:
        packs += _rows(ledger_packs(given.files, DELIVERED, [TOPIC], SPAN))
    if table:
        gathered = Gathered(READ, SPAN)
        rows = rows_of([row(offset, what, who=-1) for offset, what in table])
        packs += _rows([*gathered.add(TOPIC, np.zeros(len(rows), np.int64), rows)])
        packs += _rows(gathered.packs())
    return findings_of(run_packs(packs, context, look))


def _spans(offsets: list[int], first: int) -> dict[tuple[str, int], Expectation]:
    return {(TOPIC, 0): Expectation(first, max(offsets) + 1)} if offsets else {}


def _rows(batches: Any) -> Iterator[Pack]:
    for batch in batches:
        for one in batch.to_pylist():
            yield tuple(one.values())


def findings(kind: str, offsets: Any, place: str = "log") -> Findings:
    return Counter({(kind, place, offset): 1 for offset in offsets})


def reading(estate: Estate, broker: str | None = None) -> list[tuple[int, Content]]:
    return [(offset, what) for offset, (_, what) in estate.line(broker).items()]


def test_nothing_is_found_where_nothing_is_wrong(estate: Estate) -> None:
    assert len(estate.line()) == RECORDS
    assert not audited(estate, reading(estate), reading(estate))


def test_a_record_removed_from_every_copy_is_lost(estate: Estate) -> None:
    estate.edit(lambda line: line.pop(40))
    assert audited(estate) == findings("lost", [40])


def test_a_tail_truncated_from_every_copy_is_lost(estate: Estate) -> None:
    def truncate(line: Line) -> None:
        for offset in range(50, RECORDS):
            del line[offset]

    estate.edit(truncate)
    assert audited(estate, reading(estate)) == findings("lost", range(50, RECORDS))


def test_a_record_changed_on_the_leader_is_lost(estate: Estate) -> None:
    def change(line: Line) -> None:
        line[7] = (line[7][0], (None, b"something else"))

    estate.edit(change, estate.leader)
    assert audited(estate) == findings("lost", [7])


def test_a_record_changed_on_a_follower_is_inconsistent(estate: Estate) -> None:
    def change(line: Line) -> None:
        line[7] = (line[7][0], (None, b"something else"))

    estate.edit(change, estate.followers[0])
    assert audited(estate) == findings("inconsistent offset", [7])


def test_a_record_that_a_follower_lacks_makes_replicas_differ(estate: Estate) -> None:
    estate.edit(lambda line: line.pop(20), estate.followers[0])
    assert audited(estate) == findings("replicas differ", [20])


def test_one_copy_is_too_few(estate: Estate) -> None:
    """And two differ from what they say themselves that they had."""
    estate.edit(lambda line: line.pop(RECORDS - 1), *estate.followers)
    expected = findings("too few copies", [RECORDS - 1])
    expected["replicas differ", "log", RECORDS - 1] = 2
    assert audited(estate) == expected


def test_a_doubled_batch_is_duplicates(estate: Estate) -> None:
    def double(line: Line) -> None:
        for nth in range(3):
            line[RECORDS + nth] = line[nth]

    estate.edit(double)
    assert audited(estate) == findings("duplicate", range(RECORDS, RECORDS + 3))


def test_swapped_records_are_reordered(estate: Estate) -> None:
    def swap(line: Line) -> None:
        line[20], line[21] = line[21], line[20]

    estate.edit(swap)
    assert audited(estate) == findings("reordered send", [20, 21])


@pytest.mark.parametrize("other", [21, 50])
def test_sends_acknowledged_in_another_order_are_reordered(estate: Estate, other: int) -> None:
    """Also across the border of a stretch."""

    def swap(line: Line) -> None:
        line[20], line[other] = line[other], line[20]

    def swap_acknowledged(rows: list[dict[str, Any]]) -> None:
        rows[20]["offset"], rows[other]["offset"] = other, 20

    estate.edit(swap)
    estate.edit_ledger(swap_acknowledged)
    assert audited(estate) == findings("reordered send", range(21, other + 1))


def test_a_gap_is_found_without_any_acknowledgement(estate: Estate) -> None:
    estate.edit(lambda line: line.pop(30))
    estate.edit_ledger(lambda rows: rows.pop(30))
    assert audited(estate) == findings("gap", [30])


def test_refused_but_read_is_reported_and_unknown_but_read_is_not(estate: Estate) -> None:
    def forget(rows: list[dict[str, Any]]) -> None:
        for number, result in ((3, "refused"), (4, "unknown")):
            rows[number] |= {"result": result, "offset": None, "acked_ms": None}
        rows[3]["error"] = 20
        rows[4]["partition"] = rows[4]["partition_asked"] = None

    estate.edit_ledger(forget)
    assert audited(estate) == findings("refused but read", [3])


def test_a_producer_without_a_ledger_is_no_fault(estate: Estate) -> None:
    def add(line: Line) -> None:
        line[RECORDS] = (line[0][0], (b"foreign", b"foreign"))

    estate.edit(add)
    assert not audited(estate)


def test_what_retention_took_is_expired(estate: Estate) -> None:
    for folder in estate.logs.values():
        write_offsets(RealDisk(folder), files.LOG_STARTS, {NAME: 10})
    assert audited(estate, reading(estate)) == findings("expired", range(10))


def test_what_expired_before_the_table_had_it_is_lost(estate: Estate) -> None:
    for folder in estate.logs.values():
        write_offsets(RealDisk(folder), files.LOG_STARTS, {NAME: 10})
    expected = findings("expired", range(10)) + findings("lost", [9], "table")
    assert audited(estate, [one for one in reading(estate) if one[0] != 9]) == expected


def test_what_expired_before_the_table_had_anything_is_no_unseen_tail(estate: Estate) -> None:
    """No ingest will ever see it."""
    for folder in estate.logs.values():
        write_offsets(RealDisk(folder), files.LOG_STARTS, {NAME: 10})
    expected = findings("expired", range(10)) + findings("lost", range(10), "table")
    expected += findings("unseen tail", range(10, RECORDS), "table")
    assert audited(estate, []) == expected


def test_what_expired_before_any_consumer_began_is_not_lost(estate: Estate) -> None:
    """A consumer may begin anywhere. What the log still has may yet be read."""
    for folder in estate.logs.values():
        write_offsets(RealDisk(folder), files.LOG_STARTS, {NAME: 10})
    consumed = write_consumed(estate.root / "consumed", "other", [(0, (None, b"elsewhere"))])
    done = run_here(AuditInputs(ledger=estate.ledger, logs=estate.logs, consumed=consumed))
    assert done.verdict.counts == {"expired": 10, "unseen tail": RECORDS - 10}


def test_what_the_cleaner_took_is_compacted_and_what_it_had_no_right_to_is_lost(
    estate: Estate,
) -> None:
    """Keys come back every seven records: of those above 52 these are the last."""
    gone = (5, 12, 40, RECORDS - 3)
    estate.edit(lambda line: [line.pop(offset) for offset in gone])
    for folder in estate.logs.values():
        write_offsets(RealDisk(folder), files.CLEANER_OFFSETS, {NAME: RECORDS - 1})
    expected = findings("compacted", gone[:3]) + findings("lost", gone[3:])
    assert audited(estate, reading(estate)) == expected


def test_a_copy_speaks_for_a_leader_whose_batch_is_damaged(estate: Estate) -> None:
    damage(estate, estate.leader)
    assert audited(estate, reading(estate, estate.followers[0])) == findings(
        "replicas differ", range(30, 33)
    )


def test_what_is_damaged_in_every_copy_is_lost_and_undecided_if_one_was_not_given(
    estate: Estate,
) -> None:
    damage(estate, *estate.logs)
    assert audited(estate) == findings("lost", range(30, 33))
    logs = {**estate.logs, estate.followers[0]: estate.root / "nowhere"}
    assert audited(estate, logs=logs) == findings("undecided", range(30, 33))


def damage(estate: Estate, *brokers: str) -> None:
    for broker in brokers:
        log = estate.log(broker)
        content = bytearray(log.read_bytes())
        content[content.index(value(30))] ^= 1
        log.write_bytes(content)


def test_a_missing_directory_leaves_losses_undecided(estate: Estate) -> None:
    estate.edit(lambda line: line.pop(40))
    logs = {**estate.logs, estate.followers[0]: estate.root / "nowhere"}
    assert audited(estate, logs=logs) == findings("undecided", [40])


def test_what_is_wrong_with_a_table_is_found(estate: Estate) -> None:
    rows = reading(estate)[: RECORDS - 2]
    del rows[10]
    rows[20] = (rows[20][0], (None, b"another reading"))
    rows += [rows[30], (RECORDS + 5, (None, b"from nowhere"))]
    expected = (
        findings("lost", [10, RECORDS - 2, RECORDS - 1], "table")
        + findings("inconsistent offset", [21], "table")
        + findings("duplicate", [31], "table")
        + findings("phantom", [RECORDS + 5], "table")
    )
    assert audited(estate, rows) == expected


def test_a_table_that_ends_early_has_an_unseen_tail(estate: Estate) -> None:
    found = audited(estate, reading(estate)[:50])
    assert found == findings("unseen tail", range(50, RECORDS), "table")


def test_rows_of_a_truncated_epoch_in_the_table_are_inconsistent(estate: Estate) -> None:
    """The table was filled before an unclean election: the ledger has one of them as unknown."""
    rows = reading(estate)
    last = RECORDS - 1

    def forget(rows: list[dict[str, Any]]) -> None:
        rows[last] |= {"result": "unknown", "offset": None, "acked_ms": None, "partition": None}

    estate.edit(lambda line: line.pop(last))
    estate.edit_ledger(forget)
    assert audited(estate, rows) == findings("inconsistent offset", [last], "table")


def test_a_consumer_that_jumps_is_found(estate: Estate) -> None:
    rows = reading(estate)
    polls = [*rows[5:20], *rows[18:30], *rows[33:]]
    expected = findings("non-monotonic poll", [18, 19], "consumed")
    expected += findings("lost", [30, 31, 32], "consumed")
    assert audited(estate, polls=polls) == expected


def test_an_unacknowledged_record_that_a_reader_passed_over_is_skipped(estate: Estate) -> None:
    estate.edit_ledger(lambda rows: rows.pop(30))
    rows = reading(estate)
    del rows[30]
    assert audited(estate, rows) == findings("skipped", [30], "table")


def test_the_tail_of_an_epoch_that_ended_elsewhere_is_no_fault(estate: Estate) -> None:
    """One follower was down at the last election, and has not come back yet."""
    leader, (follower, other) = estate.leader, estate.followers

    def lead_on(line: Line) -> None:
        line[RECORDS] = (line[0][0] + 1, (None, b"after the election"))

    def stay_behind(line: Line) -> None:
        line[RECORDS] = (line[0][0], (None, b"never committed"))

    estate.edit(lead_on, leader, follower)
    estate.edit(stay_behind, other)
    assert not audited(estate)


def test_a_leader_whose_own_epoch_begins_after_its_end_is_short(estate: Estate) -> None:
    """It was the last leader, and no record says so: its log was truncated since."""
    leader = estate.leader
    estate.edit(lambda line: line.pop(RECORDS - 1), leader)
    begin_epoch(estate, leader, RECORDS)
    assert audited(estate) == findings("replicas differ", [RECORDS - 1])


def plant_cleaned_leader(estate: Estate, last: int) -> None:
    """The cleaner took what lies before the last record; the active segment is empty yet."""
    leader = estate.leader
    estate.edit(lambda line: [line.pop(at) for at in range(52, RECORDS) if at != last], leader)
    (estate.log(leader).parent / f"{RECORDS:020}.log").touch()
    write_offsets(RealDisk(estate.logs[leader]), files.CLEANER_OFFSETS, {NAME: RECORDS})
    estate.edit_ledger(lambda rows: rows.__delitem__(slice(52, RECORDS)))


def stay_behind(estate: Estate, end: int) -> None:
    """The followers are not in sync, and say so."""
    (estate.root / "cluster" / "store.sqlite").unlink()
    for broker in estate.followers:
        estate.edit(lambda line: [line.pop(at) for at in range(end, RECORDS)], broker)
        for file in (files.HIGH_WATERMARKS, files.RECOVERY_POINTS):
            write_offsets(RealDisk(estate.logs[broker]), file, {NAME: end})


@pytest.mark.parametrize(("behind", "last"), [(55, RECORDS - 1), (RECORDS, 52)])
def test_a_leader_whose_tail_was_cleaned_is_the_truth(
    estate: Estate, behind: int, last: int
) -> None:
    """A gap before its last batch, or after it, where its own epoch begins."""
    leader = estate.leader
    stay_behind(estate, behind)
    plant_cleaned_leader(estate, last)
    if behind == RECORDS:
        begin_epoch(estate, leader, RECORDS)
    [replicas] = find_replicas(estate.logs, [TOPIC]).partitions.values()
    assert [replicas[0].broker, replicas[0].end] == [leader, RECORDS]


def begin_epoch(estate: Estate, broker: str, start: int) -> None:
    """As a leader does, before it has any record of its own."""
    [replicas] = find_replicas(estate.logs, [TOPIC]).partitions.values()
    disk, path = RealDisk(estate.logs[broker]), f"{NAME}/{files.EPOCH_CHECKPOINT}"
    begun = EpochEntry(LeaderEpoch(replicas[0].epoch + 1), Offset(start))
    write_epochs(disk, path, [*(read_epochs(disk, path) or []), begun])


def test_a_loss_is_seen_before_the_new_leader_has_written(estate: Estate) -> None:
    """Unclean election: only the epoch checkpoint says that a follower leads now."""
    new = estate.followers[0]
    estate.edit(lambda line: line.pop(RECORDS - 1), new)
    begin_epoch(estate, new, RECORDS - 1)
    assert audited(estate) == findings("lost", [RECORDS - 1])
