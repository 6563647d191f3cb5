"""How members go: LeaveGroup, an administrator, silence. And how heartbeats keep them."""

from __future__ import annotations

from holdfast.core.groups import AnswerLeave, Caller, GroupSettings, GroupState, Leaver
from holdfast.model import ErrorCode, GroupRecord
from tests.unit.core.groups.support import G, Office, stable, stable_static


def test_a_heartbeat_keeps_a_member_in() -> None:
    office = stable("a")
    for _ in range(5):
        office.pass_time(9_999)
        assert office.heartbeat("a") is ErrorCode.NONE


def test_a_silent_member_is_out_after_its_session_timeout() -> None:
    office = stable("a", "b")
    office.pass_time(5_000)
    office.heartbeat("a")
    office.pass_time(5_000)
    assert list(office.group.members) == ["a"]
    assert office.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    assert office.heartbeat("b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_name_their_generation_and_member() -> None:
    office = stable("a")
    assert office.heartbeat("a", generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert office.heartbeat("x") is ErrorCode.UNKNOWN_MEMBER_ID
    elsewhere = Caller("other", "a", 1)
    assert office.groups.heartbeat(elsewhere, office.now_ms) is ErrorCode.UNKNOWN_MEMBER_ID
    nowhere = Caller("", "a", 1)
    assert office.groups.heartbeat(nowhere, office.now_ms) is ErrorCode.INVALID_GROUP_ID


def test_heartbeats_are_welcome_before_the_assignment() -> None:
    office = Office()
    office.join(new_id="a")
    assert office.heartbeat("a") is ErrorCode.NONE


def test_who_waits_for_an_answer_need_not_send_heartbeats() -> None:
    office = stable("a", "b")
    waiter = office.join("a")
    for _ in range(11):
        office.heartbeat("b")
        office.pass_time(5_000)
    assert office.waits(waiter)
    office.join("b")
    assert office.joined(waiter).generation == 3


def test_the_clock_of_who_waited_starts_with_the_answer() -> None:
    office = stable("a", "b")
    office.join("a")
    for _ in range(4):
        office.heartbeat("b")
        office.pass_time(5_000)
    office.join("b")
    assert office.state() is GroupState.COMPLETING_REBALANCE
    office.pass_time(9_999)
    assert list(office.group.members) == ["a", "b"]
    office.pass_time(1)
    assert office.state() is GroupState.EMPTY


# LeaveGroup.


def test_a_leaving_member_makes_the_others_rebalance() -> None:
    office = stable("a", "b")
    assert office.left(office.leave("b")) == [ErrorCode.NONE]
    assert office.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    assert office.joined(office.join("a")).generation == 3


def test_the_last_one_leaves_an_empty_group_that_is_stored() -> None:
    office = stable("a")
    office.leave("a")
    assert office.state() is GroupState.EMPTY
    stored = office.log[-1]
    assert isinstance(stored, GroupRecord)
    assert stored.metadata is not None
    assert (stored.metadata.generation, stored.metadata.members) == (2, ())
    assert (stored.metadata.protocol_type, stored.metadata.protocol_name) == ("consumer", None)
    assert (stored.metadata.leader, stored.metadata.state_timestamp_ms) == (None, office.now_ms)


def test_several_leave_at_once_with_a_verdict_for_each() -> None:
    office = stable("a", "b", "c")
    waiter = office.leave("b", "x", "c")
    assert office.left(waiter) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert list(office.group.members) == ["a"]


def test_nobody_left_means_no_rebalance() -> None:
    office = stable("a")
    office.leave("x")
    assert office.state() is GroupState.STABLE


def test_an_administrator_removes_a_static_member_by_its_instance_alone() -> None:
    office = stable_static("i", "j")
    assert office.left(office.leave(Leaver("", "j"))) == [ErrorCode.NONE]
    assert list(office.group.members) == ["i-1"]
    unknown = [ErrorCode.UNKNOWN_MEMBER_ID]
    assert office.left(office.leave(Leaver("", "j"))) == unknown
    assert office.left(office.leave(Leaver("", None))) == unknown


def test_who_is_removed_while_it_waits_is_told() -> None:
    office = stable("a", "b")
    join = office.join("a")
    office.leave("a")
    assert office.join_error(join) is ErrorCode.UNKNOWN_MEMBER_ID
    office.settle_group()
    office.join("b")
    office.join(new_id="c")
    office.join("b")
    sync = office.sync("c")
    office.leave("c")
    assert office.sync_error(sync) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_ends_when_the_one_it_waited_for_leaves() -> None:
    office = stable("a", "b")
    waiter = office.join("a")
    office.leave("b")
    assert office.joined(waiter).generation == 3


def test_a_given_id_can_be_handed_back() -> None:
    office = stable("a")
    office.join(new_id="b", requires_member_id=True)
    assert office.left(office.leave("b")) == [ErrorCode.NONE]
    assert office.state() is GroupState.STABLE
    office.join(new_id="b", requires_member_id=True)
    waiter = office.join("a")
    office.leave("b")
    assert office.joined(waiter).generation == 2


def test_leaving_a_group_that_is_not_there_is_refused() -> None:
    office = Office()
    waiter = office.leave("a")
    assert office.answer(waiter, AnswerLeave).error is ErrorCode.UNKNOWN_MEMBER_ID
    waiter = office.waiter()
    office.run(office.groups.leave("", (), waiter, office.now_ms))
    assert office.answer(waiter, AnswerLeave).error is ErrorCode.INVALID_GROUP_ID


def test_all_members_may_leave_during_the_initial_delay() -> None:
    office = Office(GroupSettings())
    office.join(new_id="a")
    office.leave("a")
    assert office.state() is GroupState.EMPTY
    assert office.groups.list_groups()[0].group_id == G


def test_a_sign_of_life_of_who_waited_too_long_starts_its_clock_again() -> None:
    office = stable("a")
    office.join("a")
    office.holds_writes = True
    office.sync("a", {})
    office.pass_time(10_000)
    assert office.group.members["a"].session_deadline_ms is None
    assert office.heartbeat("a") is ErrorCode.NONE
    office.finish()
    office.pass_time(10_000)
    assert office.state() is GroupState.EMPTY
