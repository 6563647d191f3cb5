"""Offsets: which caller may commit or delete, and when a commit counts."""

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
from tests.unit.core.groups.support import T0, T1, U0, Coordinator, G, stable

OK = [ErrorCode.NONE]


def test_a_member_commits_in_its_generation() -> None:
    coordinator = stable("a")
    assert coordinator.commit_errors(coordinator.commit(7, coordinator.caller("a"))) == OK
    assert coordinator.offset() == 7


def test_a_simple_consumer_commits_without_a_group() -> None:
    coordinator = Coordinator()
    assert coordinator.commit_errors(coordinator.commit(7)) == OK
    assert coordinator.offset() == 7
    listed = coordinator.groups.list_groups()
    assert [(each.group_id, each.protocol_type) for each in listed] == [(G, "")]
    assert listed[0].state is GroupState.EMPTY


def test_a_commit_is_answered_and_seen_when_it_is_stored() -> None:
    coordinator = stable("a")
    coordinator.commit(1, coordinator.caller("a"))
    coordinator.holds_writes = True
    waiter = coordinator.commit(2, coordinator.caller("a"))
    assert coordinator.waits(waiter)
    assert coordinator.offset() == 1
    coordinator.finish()
    assert coordinator.commit_errors(waiter) == OK
    assert coordinator.offset() == 2


def test_a_commit_is_stamped_with_its_time() -> None:
    coordinator = Coordinator()
    coordinator.commit(1)
    committed = coordinator.groups.fetch_offsets(G).offsets[T0]
    assert committed == CommittedOffset(Offset(1), commit_timestamp_ms=coordinator.now_ms)


def test_a_commit_may_go_back() -> None:
    coordinator = Coordinator()
    coordinator.commit(9)
    coordinator.commit(3)
    assert coordinator.offset() == 3


def test_a_commit_keeps_a_member_in() -> None:
    coordinator = stable("a")
    coordinator.pass_time(9_000)
    coordinator.commit(1, coordinator.caller("a"))
    coordinator.pass_time(9_000)
    assert coordinator.heartbeat("a") is ErrorCode.NONE


def test_a_member_may_commit_while_the_others_join() -> None:
    coordinator = stable("a", "b")
    coordinator.join("a")
    assert coordinator.commit_errors(coordinator.commit(4, coordinator.caller("b"))) == OK


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
    coordinator = stable("a")
    assert coordinator.commit_errors(coordinator.commit(1, caller)) == [error]
    assert coordinator.offset() is None


def test_a_generation_without_an_assignment_may_not_commit() -> None:
    coordinator = Coordinator()
    coordinator.join(new_id="a")
    errors = coordinator.commit_errors(coordinator.commit(1, coordinator.caller("a")))
    assert errors == [ErrorCode.REBALANCE_IN_PROGRESS]


def test_a_generation_without_a_group_is_refused_with_the_error_of_its_version() -> None:
    coordinator = Coordinator()
    lost = Caller(G, "a", 3)
    assert coordinator.commit_errors(coordinator.commit(1, lost)) == [ErrorCode.ILLEGAL_GENERATION]
    waiter = coordinator.waiter()
    request = Commit(lost, ((T0, CommittedOffset(Offset(1))),), names_missing_group=True)
    coordinator.run(coordinator.groups.commit_offsets(request, waiter, coordinator.now_ms))
    assert coordinator.commit_errors(waiter) == [ErrorCode.GROUP_ID_NOT_FOUND]


def test_a_note_that_is_too_long_is_refused_alone() -> None:
    coordinator = Coordinator()
    assert coordinator.commit_errors(coordinator.commit(1, metadata="x" * 4_096)) == OK
    too_long = coordinator.commit(2, metadata="x" * 4_097)
    assert coordinator.commit_errors(too_long) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    waiter = coordinator.waiter()
    offsets = (
        (T0, CommittedOffset(Offset(3), metadata="x" * 5_000)),
        (T1, CommittedOffset(Offset(3))),
    )
    request = Commit(Caller(G, ""), offsets)
    coordinator.run(coordinator.groups.commit_offsets(request, waiter, coordinator.now_ms))
    assert coordinator.commit_errors(waiter) == [
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.NONE,
    ]
    assert (coordinator.offset(T0), coordinator.offset(T1)) == (1, 3)


def test_a_commit_of_nothing_is_answered() -> None:
    coordinator = Coordinator()
    assert coordinator.commit_errors(coordinator.commit(1, partitions=())) == []


def test_offsets_are_fetched_by_partition_or_all() -> None:
    coordinator = Coordinator()
    coordinator.commit(5, partitions=(T0, U0))
    assert list(coordinator.groups.fetch_offsets(G).offsets) == [T0, U0]
    assert list(coordinator.groups.fetch_offsets(G, (T1, U0)).offsets) == [U0]
    assert coordinator.groups.fetch_offsets("nobody").offsets == {}


# Writes that fail.


@pytest.mark.parametrize(
    ("refused", "answered"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
def test_a_refused_commit_never_counts(refused: ErrorCode, answered: ErrorCode) -> None:
    coordinator = Coordinator()
    coordinator.commit(1)
    coordinator.holds_writes = True
    waiter = coordinator.commit(2)
    coordinator.finish(refused)
    assert coordinator.commit_errors(waiter) == [answered]
    coordinator.commit(3)
    coordinator.finish()
    assert coordinator.offset() == 3


@pytest.mark.parametrize(
    "error", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
)
def test_a_commit_that_timed_out_counts_if_the_log_commits_it_after_all(error: ErrorCode) -> None:
    coordinator = Coordinator()
    coordinator.holds_writes = True
    waiter = coordinator.commit(2)
    [write] = coordinator.writes
    coordinator.finish(error)
    assert coordinator.commit_errors(waiter) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert coordinator.offset() is None
    coordinator.run(coordinator.groups.persisted(write.token, ErrorCode.NONE, coordinator.now_ms))
    assert coordinator.offset() == 2


def test_what_is_committed_commits_everything_before_it() -> None:
    coordinator = Coordinator()
    coordinator.holds_writes = True
    first, second = coordinator.commit(1, partitions=(T0, T1)), coordinator.commit(2)
    coordinator.finish(place=1)
    assert coordinator.commit_errors(first) == [ErrorCode.NONE, ErrorCode.NONE]
    assert coordinator.commit_errors(second) == OK
    assert (coordinator.offset(T0), coordinator.offset(T1)) == (2, 1)
    coordinator.finish()
    assert coordinator.offset(T0) == 2


# OffsetDelete.


def deleted(coordinator: Coordinator, *partitions: TopicPartition) -> list[ErrorCode]:
    answer = coordinator.answer(coordinator.delete_offsets(*partitions), AnswerOffsetDelete)
    assert answer.error is ErrorCode.NONE
    return [error for _, error in answer.results]


def test_offsets_of_topics_that_nobody_reads_can_be_deleted() -> None:
    coordinator = stable("a")
    coordinator.commit(1, coordinator.caller("a"), partitions=(T0, U0))
    in_use = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert deleted(coordinator, T0, U0) == [in_use, ErrorCode.NONE]
    assert (coordinator.offset(T0), coordinator.offset(U0)) == (1, None)


def test_offsets_that_are_not_there_are_deleted_without_a_record() -> None:
    coordinator = Coordinator()
    coordinator.commit(1)
    written = len(coordinator.log)
    assert deleted(coordinator, U0) == OK
    assert len(coordinator.log) == written


def test_an_empty_group_reads_nothing() -> None:
    coordinator = stable("a")
    coordinator.commit(1, coordinator.caller("a"))
    coordinator.leave("a")
    assert deleted(coordinator, T0, T0) == [ErrorCode.NONE, ErrorCode.NONE]
    assert coordinator.offset() is None


def test_consumers_that_cannot_be_understood_read_everything() -> None:
    coordinator = Coordinator()
    coordinator.join(new_id="a", protocols=(MemberProtocol("range", b"gibberish"),))
    coordinator.settle_group()
    coordinator.commit(1, coordinator.caller("a"), partitions=(U0,))
    assert deleted(coordinator, U0) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]


def test_members_of_another_kind_may_use_anything() -> None:
    coordinator = Coordinator()
    coordinator.join(new_id="a", protocol_type="connect")
    coordinator.settle_group()
    answer = coordinator.answer(coordinator.delete_offsets(T0), AnswerOffsetDelete)
    assert (answer.error, answer.results) == (ErrorCode.NON_EMPTY_GROUP, ())


def test_offsets_of_no_group_cannot_be_deleted() -> None:
    coordinator = Coordinator()
    answer = coordinator.answer(coordinator.delete_offsets(T0), AnswerOffsetDelete)
    assert answer.error is ErrorCode.GROUP_ID_NOT_FOUND
    waiter = coordinator.waiter()
    coordinator.run(coordinator.groups.delete_offsets("", (T0,), waiter, coordinator.now_ms))
    assert coordinator.answer(waiter, AnswerOffsetDelete).error is ErrorCode.INVALID_GROUP_ID


def test_a_refused_deletion_deletes_nothing() -> None:
    coordinator = Coordinator()
    coordinator.commit(1)
    coordinator.holds_writes = True
    waiter = coordinator.delete_offsets(T0)
    coordinator.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
    answer = coordinator.answer(waiter, AnswerOffsetDelete)
    assert answer.results == ((T0, ErrorCode.COORDINATOR_NOT_AVAILABLE),)
    assert coordinator.offset() == 1


# DeleteGroups.


def delete_error(coordinator: Coordinator, waiter: int) -> ErrorCode:
    return coordinator.answer(waiter, AnswerDelete).error


def test_an_empty_group_is_deleted_with_its_offsets() -> None:
    coordinator = stable("a")
    coordinator.commit(1, coordinator.caller("a"), partitions=(T0, U0))
    coordinator.leave("a")
    assert delete_error(coordinator, coordinator.delete()) is ErrorCode.NONE
    assert coordinator.groups.group(G) is None
    assert coordinator.groups.fetch_offsets(G).offsets == {}
    assert coordinator.log[-3:] == [
        OffsetRecord(G, T0, None),
        OffsetRecord(G, U0, None),
        GroupRecord(G, None),
    ]


def test_a_group_with_members_is_not_deleted() -> None:
    coordinator = stable("a")
    assert delete_error(coordinator, coordinator.delete()) is ErrorCode.NON_EMPTY_GROUP
    coordinator.join("a")
    assert delete_error(coordinator, coordinator.delete()) is ErrorCode.NON_EMPTY_GROUP


def test_no_group_is_not_deleted() -> None:
    coordinator = Coordinator()
    assert delete_error(coordinator, coordinator.delete()) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_is_dead_while_its_tombstones_are_written() -> None:
    coordinator = Coordinator()
    coordinator.commit(1)
    coordinator.holds_writes = True
    waiter = coordinator.delete()
    assert coordinator.state() is GroupState.DEAD
    away = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert coordinator.join_error(coordinator.join()) is away
    assert coordinator.sync_error(coordinator.sync("a")) is away
    assert coordinator.heartbeat("a") is away
    assert coordinator.commit_errors(coordinator.commit(2)) == [away]
    assert delete_error(coordinator, coordinator.delete()) is ErrorCode.GROUP_ID_NOT_FOUND
    leave = coordinator.leave("a")
    assert coordinator.answers[leave][1] is away
    coordinator.finish()
    assert delete_error(coordinator, waiter) is ErrorCode.NONE


def test_a_group_whose_tombstones_are_refused_stays() -> None:
    coordinator = stable("a")
    coordinator.commit(1, coordinator.caller("a"))
    coordinator.leave("a")
    since_ms = coordinator.group.state_timestamp_ms
    coordinator.pass_time(5)
    coordinator.holds_writes = True
    waiter = coordinator.delete()
    coordinator.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert delete_error(coordinator, waiter) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (coordinator.state(), coordinator.offset()) == (GroupState.EMPTY, 1)
    assert coordinator.group.state_timestamp_ms == since_ms


def test_a_deletion_covers_commits_that_are_still_under_way() -> None:
    coordinator = Coordinator()
    coordinator.commit(1)
    coordinator.holds_writes = True
    commit, delete = coordinator.commit(2, partitions=(U0,)), coordinator.delete()
    coordinator.finish()
    coordinator.finish()
    assert coordinator.commit_errors(commit) == OK
    assert delete_error(coordinator, delete) is ErrorCode.NONE
    assert coordinator.groups.fetch_offsets(G).offsets == {}


def test_offsets_in_deleted_partitions_are_forgotten() -> None:
    coordinator = Coordinator()
    coordinator.commit(1, partitions=(T0, T1))
    coordinator.run(coordinator.groups.partitions_deleted((T0, U0), coordinator.now_ms))
    assert (coordinator.offset(T0), coordinator.offset(T1)) == (None, 1)
    assert coordinator.log[-1] == OffsetRecord(G, T0, None)
