"""How members leave: LeaveGroup, an administrator, an expired session; and heartbeats."""

from __future__ import annotations

from holdfast.core.groups import AnswerLeave, Caller, GroupSettings, GroupState, Leaver
from holdfast.model import ErrorCode, GroupRecord
from tests.unit.core.groups.support import Coordinator, G, stable, stable_static


def test_a_heartbeat_keeps_a_member_in() -> None:
    coordinator = stable("a")
    for _ in range(5):
        coordinator.pass_time(9_999)
        assert coordinator.heartbeat("a") is ErrorCode.NONE


def test_a_silent_member_is_out_after_its_session_timeout() -> None:
    coordinator = stable("a", "b")
    coordinator.pass_time(5_000)
    coordinator.heartbeat("a")
    coordinator.pass_time(5_000)
    assert list(coordinator.group.members) == ["a"]
    assert coordinator.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.heartbeat("b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_name_their_generation_and_member() -> None:
    coordinator = stable("a")
    assert coordinator.heartbeat("a", generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert coordinator.heartbeat("x") is ErrorCode.UNKNOWN_MEMBER_ID
    elsewhere = Caller("other", "a", 1)
    assert (
        coordinator.groups.heartbeat(elsewhere, coordinator.now_ms) is ErrorCode.UNKNOWN_MEMBER_ID
    )
    nowhere = Caller("", "a", 1)
    assert coordinator.groups.heartbeat(nowhere, coordinator.now_ms) is ErrorCode.INVALID_GROUP_ID


def test_heartbeats_are_welcome_before_the_assignment() -> None:
    coordinator = Coordinator()
    coordinator.join(new_id="a")
    assert coordinator.heartbeat("a") is ErrorCode.NONE


def test_a_waiting_member_need_not_send_heartbeats() -> None:
    coordinator = stable("a", "b")
    waiter = coordinator.join("a")
    for _ in range(11):
        coordinator.heartbeat("b")
        coordinator.pass_time(5_000)
    assert coordinator.waits(waiter)
    coordinator.join("b")
    assert coordinator.joined(waiter).generation == 3


def test_the_session_of_a_waiting_member_starts_with_the_answer() -> None:
    coordinator = stable("a", "b")
    coordinator.join("a")
    for _ in range(4):
        coordinator.heartbeat("b")
        coordinator.pass_time(5_000)
    coordinator.join("b")
    assert coordinator.state() is GroupState.COMPLETING_REBALANCE
    coordinator.pass_time(9_999)
    assert list(coordinator.group.members) == ["a", "b"]
    coordinator.pass_time(1)
    assert coordinator.state() is GroupState.EMPTY


# LeaveGroup.


def test_a_leaving_member_makes_the_others_rebalance() -> None:
    coordinator = stable("a", "b")
    assert coordinator.left(coordinator.leave("b")) == [ErrorCode.NONE]
    assert coordinator.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.joined(coordinator.join("a")).generation == 3


def test_the_last_one_leaves_an_empty_group_that_is_stored() -> None:
    coordinator = stable("a")
    coordinator.leave("a")
    assert coordinator.state() is GroupState.EMPTY
    stored = coordinator.log[-1]
    assert isinstance(stored, GroupRecord)
    assert stored.metadata is not None
    assert (stored.metadata.generation, stored.metadata.members) == (2, ())
    assert (stored.metadata.protocol_type, stored.metadata.protocol_name) == ("consumer", None)
    assert (stored.metadata.leader, stored.metadata.state_timestamp_ms) == (
        None,
        coordinator.now_ms,
    )


def test_several_leave_at_once_with_a_verdict_for_each() -> None:
    coordinator = stable("a", "b", "c")
    waiter = coordinator.leave("b", "x", "c")
    assert coordinator.left(waiter) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert list(coordinator.group.members) == ["a"]


def test_a_leave_without_a_member_begins_no_rebalance() -> None:
    coordinator = stable("a")
    coordinator.leave("x")
    assert coordinator.state() is GroupState.STABLE


def test_an_administrator_removes_a_static_member_by_its_instance_alone() -> None:
    coordinator = stable_static("i", "j")
    assert coordinator.left(coordinator.leave(Leaver("", "j"))) == [ErrorCode.NONE]
    assert list(coordinator.group.members) == ["i-1"]
    unknown = [ErrorCode.UNKNOWN_MEMBER_ID]
    assert coordinator.left(coordinator.leave(Leaver("", "j"))) == unknown
    assert coordinator.left(coordinator.leave(Leaver("", None))) == unknown


def test_a_member_removed_while_it_waits_is_answered() -> None:
    coordinator = stable("a", "b")
    join = coordinator.join("a")
    coordinator.leave("a")
    assert coordinator.join_error(join) is ErrorCode.UNKNOWN_MEMBER_ID
    coordinator.settle_group()
    coordinator.join("b")
    coordinator.join(new_id="c")
    coordinator.join("b")
    sync = coordinator.sync("c")
    coordinator.leave("c")
    assert coordinator.sync_error(sync) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_ends_when_the_one_it_waited_for_leaves() -> None:
    coordinator = stable("a", "b")
    waiter = coordinator.join("a")
    coordinator.leave("b")
    assert coordinator.joined(waiter).generation == 3


def test_a_given_id_can_be_handed_back() -> None:
    coordinator = stable("a")
    coordinator.join(new_id="b", requires_member_id=True)
    assert coordinator.left(coordinator.leave("b")) == [ErrorCode.NONE]
    assert coordinator.state() is GroupState.STABLE
    coordinator.join(new_id="b", requires_member_id=True)
    waiter = coordinator.join("a")
    coordinator.leave("b")
    assert coordinator.joined(waiter).generation == 2


def test_leaving_a_group_that_is_not_there_is_refused() -> None:
    coordinator = Coordinator()
    waiter = coordinator.leave("a")
    assert coordinator.answer(waiter, AnswerLeave).error is ErrorCode.UNKNOWN_MEMBER_ID
    waiter = coordinator.waiter()
    coordinator.run(coordinator.groups.leave("", (), waiter, coordinator.now_ms))
    assert coordinator.answer(waiter, AnswerLeave).error is ErrorCode.INVALID_GROUP_ID


def test_all_members_may_leave_during_the_initial_delay() -> None:
    coordinator = Coordinator(GroupSettings())
    coordinator.join(new_id="a")
    coordinator.leave("a")
    assert coordinator.state() is GroupState.EMPTY
    assert coordinator.groups.list_groups()[0].group_id == G


def test_a_request_after_too_long_a_wait_starts_the_session_timeout_again() -> None:
    coordinator = stable("a")
    coordinator.join("a")
    coordinator.holds_writes = True
    coordinator.sync("a", {})
    coordinator.pass_time(10_000)
    assert coordinator.group.members["a"].session_deadline_ms is None
    assert coordinator.heartbeat("a") is ErrorCode.NONE
    coordinator.finish()
    coordinator.pass_time(10_000)
    assert coordinator.state() is GroupState.EMPTY
