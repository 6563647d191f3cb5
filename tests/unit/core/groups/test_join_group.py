"""JoinGroup: who comes in, under which name, and when a generation begins."""

from __future__ import annotations

import pytest

from holdfast.core.groups import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    AnswerSync,
    GroupSettings,
    GroupState,
    JoinedMember,
    MemberProtocol,
)
from holdfast.model import ErrorCode
from tests.unit.core.groups.support import RANGE, ROUND, G, Office, stable


def test_the_first_member_leads_and_is_told_of_everybody() -> None:
    office = Office()
    answer = office.joined(office.join(new_id="a"))
    assert answer.error is ErrorCode.NONE
    assert (answer.member_id, answer.leader, answer.generation) == ("a", "a", 1)
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert answer.members == (JoinedMember("a", None, RANGE.metadata),)
    assert office.state() is GroupState.COMPLETING_REBALANCE


def test_a_follower_is_told_of_the_leader_but_not_of_the_members() -> None:
    office = stable("a")
    waiter = office.join(new_id="b")
    leader = office.join("a")
    assert office.joined(waiter).leader == "a"
    assert office.joined(waiter).members == ()
    assert [each.member_id for each in office.joined(leader).members] == ["a", "b"]


def test_a_newcomer_is_told_its_id_first() -> None:
    office = Office()
    refused = office.joined(office.join(new_id="a", requires_member_id=True))
    assert (refused.error, refused.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "a")
    assert office.state() is GroupState.EMPTY
    assert office.joined(office.join("a", requires_member_id=True)).error is ErrorCode.NONE


def test_an_id_that_is_never_used_is_forgotten_with_the_session_timeout() -> None:
    office = Office()
    office.join(new_id="a", requires_member_id=True, session_ms=6_000)
    office.pass_time(6_000)
    assert office.join_error(office.join("a")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_those_who_were_given_an_id() -> None:
    office = stable("a")
    office.join(new_id="b", requires_member_id=True)
    waiter = office.join("a")
    assert office.waits(waiter)
    office.join("b")
    assert not office.waits(waiter)


def test_a_rebalance_goes_on_when_a_given_id_runs_out() -> None:
    office = stable("a")
    office.join(new_id="b", requires_member_id=True)
    waiter = office.join("a")
    office.pass_time(10_000)
    assert office.joined(waiter).generation == 2


def test_a_pending_member_cannot_turn_static() -> None:
    office = Office()
    office.join(new_id="a", requires_member_id=True)
    assert office.join_error(office.join("a", instance="i")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unknown_member_id_is_refused() -> None:
    office = Office()
    assert office.join_error(office.join("x")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert office.groups.group(G) is None
    office.join(new_id="a")
    assert office.join_error(office.join("x")) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_a_session_timeout_out_of_range_is_refused(session_ms: int) -> None:
    office = Office()
    waiter = office.join(session_ms=session_ms)
    assert office.join_error(waiter) is ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_the_bounds_of_a_session_timeout_are_in_range(session_ms: int) -> None:
    office = Office()
    assert office.join_error(office.join(session_ms=session_ms)) is ErrorCode.NONE


def test_an_empty_group_id_is_refused() -> None:
    office = Office()
    assert office.join_error(office.join(group_id="")) is ErrorCode.INVALID_GROUP_ID


# Protocols.


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", (RANGE,)), ("consumer", ())])
def test_a_member_needs_a_protocol(
    protocol_type: str, protocols: tuple[MemberProtocol, ...]
) -> None:
    office = Office()
    waiter = office.join(protocol_type=protocol_type, protocols=protocols)
    assert office.join_error(waiter) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert office.groups.group(G) is None


def test_members_must_share_a_protocol_and_its_type() -> None:
    office = stable("a")
    other = office.join(protocols=(ROUND,))
    assert office.join_error(other) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    other = office.join(protocol_type="connect")
    assert office.join_error(other) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert office.state() is GroupState.STABLE


def test_an_empty_group_takes_any_protocol_type() -> None:
    office = stable("a")
    office.leave("a")
    assert office.join_error(office.join(protocol_type="connect")) is ErrorCode.NONE
    assert office.group.protocol_type == "connect"


def test_the_protocol_with_most_votes_is_chosen_of_those_that_all_know() -> None:
    office = Office(GroupSettings(group_initial_rebalance_delay_ms=100))
    sticky = MemberProtocol("sticky", b"topics:s")
    waiters = [
        office.join(protocols=(sticky, RANGE, ROUND)),
        office.join(protocols=(ROUND, RANGE)),
        office.join(protocols=(ROUND, RANGE)),
    ]
    office.pass_time(60_000)
    assert {office.joined(each).protocol_name for each in waiters} == {"roundrobin"}


def test_a_tie_goes_to_the_first_members_choice() -> None:
    office = stable("a")
    office.join("a", protocols=(RANGE, ROUND))
    office.settle_group()
    office.join(new_id="b", protocols=(ROUND, RANGE))
    office.settle_group()
    assert office.group.protocol_name == "range"


def test_a_protocol_named_twice_counts_once() -> None:
    office = Office()
    office.join(new_id="a", protocols=(RANGE, MemberProtocol("range", b"other")))
    assert office.group.members["a"].protocols == (RANGE,)


# The initial delay.


def test_a_new_group_waits_for_more_members() -> None:
    office = Office(GroupSettings())
    first = office.join(new_id="a")
    office.pass_time(2_999)
    assert office.waits(first)
    office.pass_time(1)
    assert office.joined(first).generation == 1


def test_newcomers_extend_the_delay() -> None:
    office = Office(GroupSettings())
    first = office.join(new_id="a")
    office.pass_time(2_000)
    second = office.join(new_id="b")
    office.pass_time(3_999)
    assert office.waits(first)
    office.pass_time(1)
    assert office.joined(first).generation == office.joined(second).generation == 1


def test_the_delay_is_never_extended_beyond_the_rebalance_timeout() -> None:
    office = Office(GroupSettings())
    first = office.join(new_id="m0", rebalance_ms=7_000)
    started = office.now_ms
    for number in range(1, 12):
        office.pass_time(1_000)
        if not office.waits(first):
            break
        office.join(new_id=f"m{number}", rebalance_ms=7_000)
    assert office.now_ms - started == 7_000


def test_all_joined_does_not_end_the_initial_delay() -> None:
    office = Office(GroupSettings())
    office.join(new_id="a")
    office.join("a")
    assert office.state() is GroupState.PREPARING_REBALANCE


# Joining again.


def test_a_follower_that_repeats_itself_is_told_of_the_present_generation() -> None:
    office = stable("a", "b")
    answer = office.joined(office.join("b"))
    assert (answer.generation, answer.leader, answer.members) == (2, "a", ())
    assert office.state() is GroupState.STABLE


def test_a_follower_with_new_metadata_begins_a_rebalance() -> None:
    office = stable("a", "b")
    changed = MemberProtocol("range", b"topics:u")
    waiter = office.join("b", protocols=(changed,))
    assert office.waits(waiter)
    assert office.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    told = office.joined(office.join("a"))
    assert told.members[1].metadata == changed.metadata


def test_the_leader_begins_a_rebalance_by_joining_again() -> None:
    office = stable("a", "b")
    assert office.waits(office.join("a"))
    assert office.state() is GroupState.PREPARING_REBALANCE


def test_a_lost_answer_is_given_again_while_the_generation_is_being_completed() -> None:
    office = Office()
    office.join(new_id="a")
    again = office.joined(office.join("a"))
    assert (again.generation, len(again.members)) == (1, 1)
    assert office.state() is GroupState.COMPLETING_REBALANCE


def test_new_metadata_in_a_generation_being_completed_begins_another() -> None:
    office = stable("a", "b")
    office.join("a")
    office.join("b")
    waiting = office.sync("b")
    office.join("a", protocols=(MemberProtocol("range", b"topics:u"),))
    assert office.answer(waiting, AnswerSync).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert office.state() is GroupState.PREPARING_REBALANCE


def test_a_repeated_request_releases_the_first_one() -> None:
    office = stable("a", "b")
    first = office.join("a")
    second = office.join("a")
    assert office.join_error(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert office.waits(second)


# Rebalances that somebody misses.


def test_who_does_not_join_in_time_is_out() -> None:
    office = stable("a", "b")
    waiter = office.join("a", rebalance_ms=20_000)
    for _ in range(12):
        office.pass_time(5_000)
        if office.waits(waiter):
            office.heartbeat("b")
    assert office.joined(waiter).generation == 3
    assert list(office.group.members) == ["a"]
    assert office.heartbeat("b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_does_not_join_is_replaced() -> None:
    office = stable("a", "b")
    waiter = office.join("b", protocols=(MemberProtocol("range", b"topics:u"),))
    office.pass_time(60_000)
    assert office.joined(waiter).leader == "b"


def test_a_newcomer_that_is_never_answered_is_forgotten_after_five_minutes() -> None:
    office = stable("a", settings=GroupSettings(group_initial_rebalance_delay_ms=0))
    office.join("a", rebalance_ms=NEW_MEMBER_JOIN_TIMEOUT_MS * 2)
    office.settle_group()
    waiter = office.join(new_id="b", rebalance_ms=NEW_MEMBER_JOIN_TIMEOUT_MS * 2)
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // 5_000):
        office.heartbeat("a")
        office.pass_time(5_000)
    assert office.join_error(waiter) is ErrorCode.UNKNOWN_MEMBER_ID
    assert office.joined(waiter).member_id == ""


# The size of a group.

TWO = GroupSettings(group_initial_rebalance_delay_ms=0, group_max_size=2)


def test_a_full_group_takes_no_more_members() -> None:
    office = stable("a", "b", settings=TWO)
    assert office.join_error(office.join(new_id="c")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert office.state() is GroupState.STABLE
    assert office.join_error(office.join("b")) is ErrorCode.NONE


def test_the_last_ones_to_join_again_lose_their_place_when_the_limit_was_lowered() -> None:
    before = stable("a", "b", "c")
    office = Office(TWO, before.log)
    assert office.state() is GroupState.PREPARING_REBALANCE
    first, second = office.join("c"), office.join("b")
    assert office.waits(first)
    assert office.join_error(office.join("a")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert office.joined(second).generation == 4
    assert sorted(office.group.members) == ["b", "c"]


def test_a_static_member_comes_back_to_a_full_group() -> None:
    office = Office(TWO)
    office.join(new_id="a", instance="i")
    office.settle_group()
    office.join(new_id="b")
    office.settle_group()
    assert office.join_error(office.join(new_id="a2", instance="i")) is ErrorCode.NONE
