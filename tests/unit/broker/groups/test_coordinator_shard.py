"""Coordinator shards begin and end, each write gets one verdict, late commits count later."""

from __future__ import annotations

import pytest

from holdfast.broker.groups.offsets_writer import split
from holdfast.core.groups import AnswerCommit, Caller, Commit
from holdfast.model import CommittedOffset, ErrorCode, Offset, OffsetRecord, TopicPartition
from holdfast.protocol.coordinator_records import decode_record
from holdfast.protocol.records import Batch, BatchOptions, read_records
from tests.unit.broker.groups.fakes import FakeBroker, FakePartition

WHERE = TopicPartition("topic", 0)


def _commit(broker: FakeBroker, offset: int) -> list[ErrorCode]:
    """Commit an offset; the list gets its verdict."""
    verdicts: list[ErrorCode] = []

    def answered(effect: AnswerCommit) -> None:
        verdicts.extend(error for _, error in effect.results)

    request = Commit(Caller("g", ""), ((WHERE, CommittedOffset(Offset(offset))),))
    broker.groups.ask("g", lambda groups, now: groups.commit_offsets(request, answered, now))
    broker.loop.run()
    return verdicts


def _fetch(broker: FakeBroker) -> int | ErrorCode:
    found = broker.groups.look("g").fetch_offsets("g")
    return found.error or (found.offsets[WHERE].offset if found.offsets else -1)


def _leading(log_end_offset: int = 0) -> FakeBroker:
    broker = FakeBroker(FakePartition(log_end_offset))
    broker.role_changed()
    return broker


def test_a_commit_is_answered_and_seen_when_the_log_has_committed_it() -> None:
    broker = _leading()
    verdicts = _commit(broker, 5)
    assert (verdicts, _fetch(broker)) == ([], -1)
    broker.commit_moved()
    assert (verdicts, _fetch(broker)) == ([ErrorCode.NONE], 5)


def test_a_write_that_timed_out_counts_when_the_high_watermark_passes_it() -> None:
    broker = _leading()
    verdicts = _commit(broker, 5)
    broker.partition.expire()
    broker.loop.run()
    assert (verdicts, _fetch(broker)) == ([ErrorCode.COORDINATOR_NOT_AVAILABLE], -1)
    broker.commit_moved()
    assert _fetch(broker) == 5


def test_a_refused_write_changes_nothing() -> None:
    broker = _leading()
    broker.partition.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    verdicts = _commit(broker, 5)
    assert verdicts == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    broker.partition.refusal = ErrorCode.NONE
    _commit(broker, 6)
    broker.commit_moved()
    assert _fetch(broker) == 6


def test_a_new_leader_waits_until_what_it_found_is_committed() -> None:
    broker = _leading(log_end_offset=3)
    assert _fetch(broker) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.commit_moved()
    assert _fetch(broker) == -1


def test_waiters_get_an_error_when_another_broker_leads() -> None:
    broker = _leading()
    verdicts = _commit(broker, 5)
    broker.partition.replica.presumes_leadership = False
    broker.role_changed()
    assert verdicts == [ErrorCode.NOT_COORDINATOR]
    assert _fetch(broker) is ErrorCode.NOT_COORDINATOR
    broker.commit_moved()
    assert verdicts == [ErrorCode.NOT_COORDINATOR]


def test_a_new_leader_epoch_is_a_new_shard() -> None:
    broker = _leading()
    before = broker.groups.look("g")
    broker.role_changed()
    assert broker.groups.look("g") is before
    broker.partition.replica.leader_epoch = 2
    broker.role_changed()
    assert broker.groups.look("g") is not before


def test_sessions_end_by_the_loops_clock() -> None:
    broker = _leading()
    assert len(broker.loop.timers) == 1
    broker.loop.now_s += 601.0
    broker.loop.run()
    assert [when > broker.loop.now_s for when, _ in broker.loop.timers] == [True]


def test_member_ids_fit_the_wire() -> None:
    class AssignmentStart:
        def getrandbits(self, count: int) -> int:
            return 7

    broker = _leading()
    broker.rng = AssignmentStart()  # type: ignore[attr-defined]
    assert broker.groups.new_member_id("a") == "a-00000000-0000-4000-8000-000000000007"
    assert len(broker.groups.new_member_id("ä" * 32_767).encode()) <= 32_767


@pytest.mark.parametrize(("limit", "batches"), [(100_000, 1), (1_000, 2), (150, 20), (120, 0)])
def test_records_are_split_by_size_and_keep_their_order(limit: int, batches: int) -> None:
    records = [
        OffsetRecord("g", TopicPartition("topic", index), CommittedOffset(Offset(index)))
        for index in range(20)
    ]
    built = split(records, 5, limit, BatchOptions()) or []
    assert len(built) == batches
    assert all(len(one) <= limit for one in built)
    read = [record for one in built for record in read_records(Batch(one))]
    assert [decode_record(one.key, one.value) for one in read] == (records if batches else [])
    assert all(one.timestamp == 5 for one in read)
