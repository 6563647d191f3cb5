"""Offsets: who may commit, when a commit counts, who may delete."""

from __future__ import annotations

import pytest

from holdfast.core.groups import (
    AnswerDelete,
    AnswerOffsetDelete,
    Caller,
    Commit,
    GroupState,
    MemberProtocol,
)
from holdfast.model import (
    CommittedOffset,
    ErrorCode,
    GroupRecord,
    Offset,
    OffsetRecord,
    TopicPartition,
)
from tests.unit.core.groups.support import T0, T1, U0, G, Office, stable

OK = [ErrorCode.NONE]


def test_a_member_commits_in_its_generation() -> None:
    office = stable("a")
    assert office.commit_errors(office.commit(7, office.caller("a"))) == OK
    assert office.offset() == 7


def test_a_simple_consumer_commits_without_a_group() -> None:
    office = Office()
    assert office.commit_errors(office.commit(7)) == OK
    assert office.offset() == 7
    listed = office.groups.list_groups()
    assert [(each.group_id, each.protocol_type) for each in listed] == [(G, "")]
    assert listed[0].state is GroupState.EMPTY


def test_a_commit_is_answered_and_seen_when_it_is_stored() -> None:
    office = stable("a")
    office.commit(1, office.caller("a"))
    office.holds_writes = True
    waiter = office.commit(2, office.caller("a"))
    assert office.waits(waiter)
    assert office.offset() == 1
    office.finish()
    assert office.commit_errors(waiter) == OK
    assert office.offset() == 2


def test_a_commit_is_stamped_with_its_time() -> None:
    office = Office()
    office.commit(1)
    committed = office.groups.fetch_offsets(G).offsets[T0]
    assert committed == CommittedOffset(Offset(1), commit_timestamp_ms=office.now_ms)


def test_a_commit_may_go_back() -> None:
    office = Office()
    office.commit(9)
    office.commit(3)
    assert office.offset() == 3


def test_a_commit_keeps_a_member_in() -> None:
    office = stable("a")
    office.pass_time(9_000)
    office.commit(1, office.caller("a"))
    office.pass_time(9_000)
    assert office.heartbeat("a") is ErrorCode.NONE


def test_a_member_may_commit_while_the_others_join() -> None:
    office = stable("a", "b")
    office.join("a")
    assert office.commit_errors(office.commit(4, office.caller("b"))) == OK


@pytest.mark.parametrize(
    ("caller", "error"),
    [
        (Caller(G, "a", 0), ErrorCode.ILLEGAL_GENERATION),
        (Caller(G, "a", 2), ErrorCode.ILLEGAL_GENERATION),
        (Caller(G, "a", -1), ErrorCode.ILLEGAL_GENERATION),
        (Caller(G, "x", 1), ErrorCode.UNKNOWN_MEMBER_ID),
        (Caller(G, "", -1), ErrorCode.UNKNOWN_MEMBER_ID),
        (Caller(G, "a", 1, "i"), ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_others_may_not_commit_while_there_are_members(caller: Caller, error: ErrorCode) -> None:
    office = stable("a")
    assert office.commit_errors(office.commit(1, caller)) == [error]
    assert office.offset() is None


def test_a_generation_without_an_assignment_may_not_commit() -> None:
    office = Office()
    office.join(new_id="a")
    errors = office.commit_errors(office.commit(1, office.caller("a")))
    assert errors == [ErrorCode.REBALANCE_IN_PROGRESS]


def test_a_generation_without_a_group_is_refused_by_the_name_its_version_knows() -> None:
    office = Office()
    lost = Caller(G, "a", 3)
    assert office.commit_errors(office.commit(1, lost)) == [ErrorCode.ILLEGAL_GENERATION]
    waiter = office.waiter()
    request = Commit(lost, ((T0, CommittedOffset(Offset(1))),), names_missing_group=True)
    office.run(office.groups.commit_offsets(request, waiter, office.now_ms))
    assert office.commit_errors(waiter) == [ErrorCode.GROUP_ID_NOT_FOUND]


def test_a_note_that_is_too_long_is_refused_alone() -> None:
    office = Office()
    assert office.commit_errors(office.commit(1, metadata="x" * 4_096)) == OK
    too_long = office.commit(2, metadata="x" * 4_097)
    assert office.commit_errors(too_long) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    waiter = office.waiter()
    offsets = (
        (T0, CommittedOffset(Offset(3), metadata="x" * 5_000)),
        (T1, CommittedOffset(Offset(3))),
    )
    request = Commit(Caller(G, ""), offsets)
    office.run(office.groups.commit_offsets(request, waiter, office.now_ms))
    assert office.commit_errors(waiter) == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    assert (office.offset(T0), office.offset(T1)) == (1, 3)


def test_a_commit_of_nothing_is_answered() -> None:
    office = Office()
    assert office.commit_errors(office.commit(1, partitions=())) == []


def test_offsets_are_fetched_by_partition_or_all() -> None:
    office = Office()
    office.commit(5, partitions=(T0, U0))
    assert list(office.groups.fetch_offsets(G).offsets) == [T0, U0]
    assert list(office.groups.fetch_offsets(G, (T1, U0)).offsets) == [U0]
    assert office.groups.fetch_offsets("nobody").offsets == {}


# Writes that fail.


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
def test_a_refused_commit_never_counts(refused: ErrorCode, told: ErrorCode) -> None:
    office = Office()
    office.commit(1)
    office.holds_writes = True
    waiter = office.commit(2)
    office.finish(refused)
    assert office.commit_errors(waiter) == [told]
    office.commit(3)
    office.finish()
    assert office.offset() == 3


@pytest.mark.parametrize(
    "error", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
)
def test_a_commit_that_timed_out_counts_if_the_log_commits_it_after_all(error: ErrorCode) -> None:
    office = Office()
    office.holds_writes = True
    waiter = office.commit(2)
    [write] = office.writes
    office.finish(error)
    assert office.commit_errors(waiter) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert office.offset() is None
    office.run(office.groups.persisted(write.token, ErrorCode.NONE, office.now_ms))
    assert office.offset() == 2


def test_what_is_committed_commits_everything_before_it() -> None:
    office = Office()
    office.holds_writes = True
    first, second = office.commit(1, partitions=(T0, T1)), office.commit(2)
    office.finish(place=1)
    assert office.commit_errors(first) == [ErrorCode.NONE, ErrorCode.NONE]
    assert office.commit_errors(second) == OK
    assert (office.offset(T0), office.offset(T1)) == (2, 1)
    office.finish()
    assert office.offset(T0) == 2


# OffsetDelete.


def deleted(office: Office, *partitions: TopicPartition) -> list[ErrorCode]:
    answer = office.answer(office.delete_offsets(*partitions), AnswerOffsetDelete)
    assert answer.error is ErrorCode.NONE
    return [error for _, error in answer.results]


def test_offsets_of_topics_that_nobody_reads_can_be_deleted() -> None:
    office = stable("a")
    office.commit(1, office.caller("a"), partitions=(T0, U0))
    in_use = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert deleted(office, T0, U0) == [in_use, ErrorCode.NONE]
    assert (office.offset(T0), office.offset(U0)) == (1, None)


def test_offsets_that_are_not_there_are_deleted_without_a_record() -> None:
    office = Office()
    office.commit(1)
    written = len(office.log)
    assert deleted(office, U0) == OK
    assert len(office.log) == written


def test_an_empty_group_reads_nothing() -> None:
    office = stable("a")
    office.commit(1, office.caller("a"))
    office.leave("a")
    assert deleted(office, T0, T0) == [ErrorCode.NONE, ErrorCode.NONE]
    assert office.offset() is None


def test_consumers_that_cannot_be_understood_read_everything() -> None:
    office = Office()
    office.join(new_id="a", protocols=(MemberProtocol("range", b"gibberish"),))
    office.settle_group()
    office.commit(1, office.caller("a"), partitions=(U0,))
    assert deleted(office, U0) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]


def test_members_of_another_kind_may_use_anything() -> None:
    office = Office()
    office.join(new_id="a", protocol_type="connect")
    office.settle_group()
    answer = office.answer(office.delete_offsets(T0), AnswerOffsetDelete)
    assert (answer.error, answer.results) == (ErrorCode.NON_EMPTY_GROUP, ())


def test_offsets_of_no_group_cannot_be_deleted() -> None:
    office = Office()
    answer = office.answer(office.delete_offsets(T0), AnswerOffsetDelete)
    assert answer.error is ErrorCode.GROUP_ID_NOT_FOUND
    waiter = office.waiter()
    office.run(office.groups.delete_offsets("", (T0,), waiter, office.now_ms))
    assert office.answer(waiter, AnswerOffsetDelete).error is ErrorCode.INVALID_GROUP_ID


def test_a_refused_deletion_deletes_nothing() -> None:
    office = Office()
    office.commit(1)
    office.holds_writes = True
    waiter = office.delete_offsets(T0)
    office.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
    answer = office.answer(waiter, AnswerOffsetDelete)
    assert answer.results == ((T0, ErrorCode.COORDINATOR_NOT_AVAILABLE),)
    assert office.offset() == 1


# DeleteGroups.


def delete_error(office: Office, waiter: int) -> ErrorCode:
    return office.answer(waiter, AnswerDelete).error


def test_an_empty_group_is_deleted_with_its_offsets() -> None:
    office = stable("a")
    office.commit(1, office.caller("a"), partitions=(T0, U0))
    office.leave("a")
    assert delete_error(office, office.delete()) is ErrorCode.NONE
    assert office.groups.group(G) is None
    assert office.groups.fetch_offsets(G).offsets == {}
    assert office.log[-3:] == [
        OffsetRecord(G, T0, None),
        OffsetRecord(G, U0, None),
        GroupRecord(G, None),
    ]


def test_a_group_with_members_is_not_deleted() -> None:
    office = stable("a")
    assert delete_error(office, office.delete()) is ErrorCode.NON_EMPTY_GROUP
    office.join("a")
    assert delete_error(office, office.delete()) is ErrorCode.NON_EMPTY_GROUP


def test_no_group_is_not_deleted() -> None:
    office = Office()
    assert delete_error(office, office.delete()) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_is_dead_while_its_tombstones_are_written() -> None:
    office = Office()
    office.commit(1)
    office.holds_writes = True
    waiter = office.delete()
    assert office.state() is GroupState.DEAD
    away = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert office.join_error(office.join()) is away
    assert office.sync_error(office.sync("a")) is away
    assert office.heartbeat("a") is away
    assert office.commit_errors(office.commit(2)) == [away]
    assert delete_error(office, office.delete()) is ErrorCode.GROUP_ID_NOT_FOUND
    leave = office.leave("a")
    assert office.answers[leave][1] is away
    office.finish()
    assert delete_error(office, waiter) is ErrorCode.NONE


def test_a_group_whose_tombstones_are_refused_lives_on() -> None:
    office = stable("a")
    office.commit(1, office.caller("a"))
    office.leave("a")
    since_ms = office.group.state_timestamp_ms
    office.pass_time(5)
    office.holds_writes = True
    waiter = office.delete()
    office.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert delete_error(office, waiter) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (office.state(), office.offset()) == (GroupState.EMPTY, 1)
    assert office.group.state_timestamp_ms == since_ms


def test_a_deletion_covers_commits_that_are_still_under_way() -> None:
    office = Office()
    office.commit(1)
    office.holds_writes = True
    commit, delete = office.commit(2, partitions=(U0,)), office.delete()
    office.finish()
    office.finish()
    assert office.commit_errors(commit) == OK
    assert delete_error(office, delete) is ErrorCode.NONE
    assert office.groups.fetch_offsets(G).offsets == {}


def test_offsets_in_deleted_partitions_are_forgotten() -> None:
    office = Office()
    office.commit(1, partitions=(T0, T1))
    office.run(office.groups.partitions_deleted((T0, U0), office.now_ms))
    assert (office.offset(T0), office.offset(T1)) == (None, 1)
    assert office.log[-1] == OffsetRecord(G, T0, None)
