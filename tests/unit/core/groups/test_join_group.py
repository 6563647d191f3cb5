"""JoinGroup: which client joins, under which member id, and when a generation begins."""

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
from tests.unit.core.groups.support import RANGE, ROUND, Coordinator, G, stable


def test_the_first_member_leads_and_receives_the_members() -> None:
    coordinator = Coordinator()
    answer = coordinator.joined(coordinator.join(new_id="a"))
    assert answer.error is ErrorCode.NONE
    assert (answer.member_id, answer.leader, answer.generation) == ("a", "a", 1)
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert answer.members == (JoinedMember("a", None, RANGE.metadata),)
    assert coordinator.state() is GroupState.COMPLETING_REBALANCE


def test_a_follower_receives_the_leader_but_not_the_members() -> None:
    coordinator = stable("a")
    waiter = coordinator.join(new_id="b")
    leader = coordinator.join("a")
    assert coordinator.joined(waiter).leader == "a"
    assert coordinator.joined(waiter).members == ()
    assert [each.member_id for each in coordinator.joined(leader).members] == ["a", "b"]


def test_a_new_client_first_receives_its_member_id() -> None:
    coordinator = Coordinator()
    refused = coordinator.joined(coordinator.join(new_id="a", requires_member_id=True))
    assert (refused.error, refused.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "a")
    assert coordinator.state() is GroupState.EMPTY
    assert (
        coordinator.joined(coordinator.join("a", requires_member_id=True)).error is ErrorCode.NONE
    )


def test_an_id_that_is_never_used_is_forgotten_with_the_session_timeout() -> None:
    coordinator = Coordinator()
    coordinator.join(new_id="a", requires_member_id=True, session_ms=6_000)
    coordinator.pass_time(6_000)
    assert coordinator.join_error(coordinator.join("a")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_pending_members() -> None:
    coordinator = stable("a")
    coordinator.join(new_id="b", requires_member_id=True)
    waiter = coordinator.join("a")
    assert coordinator.waits(waiter)
    coordinator.join("b")
    assert not coordinator.waits(waiter)


def test_a_rebalance_goes_on_when_a_given_id_runs_out() -> None:
    coordinator = stable("a")
    coordinator.join(new_id="b", requires_member_id=True)
    waiter = coordinator.join("a")
    coordinator.pass_time(10_000)
    assert coordinator.joined(waiter).generation == 2


def test_a_pending_member_cannot_turn_static() -> None:
    coordinator = Coordinator()
    coordinator.join(new_id="a", requires_member_id=True)
    assert (
        coordinator.join_error(coordinator.join("a", instance="i")) is ErrorCode.UNKNOWN_MEMBER_ID
    )


def test_an_unknown_member_id_is_refused() -> None:
    coordinator = Coordinator()
    assert coordinator.join_error(coordinator.join("x")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.groups.group(G) is None
    coordinator.join(new_id="a")
    assert coordinator.join_error(coordinator.join("x")) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_a_session_timeout_out_of_range_is_refused(session_ms: int) -> None:
    coordinator = Coordinator()
    waiter = coordinator.join(session_ms=session_ms)
    assert coordinator.join_error(waiter) is ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_the_bounds_of_a_session_timeout_are_in_range(session_ms: int) -> None:
    coordinator = Coordinator()
    assert coordinator.join_error(coordinator.join(session_ms=session_ms)) is ErrorCode.NONE


def test_an_empty_group_id_is_refused() -> None:
    coordinator = Coordinator()
    assert coordinator.join_error(coordinator.join(group_id="")) is ErrorCode.INVALID_GROUP_ID


# Protocols.


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", (RANGE,)), ("consumer", ())])
def test_a_member_needs_a_protocol(
    protocol_type: str, protocols: tuple[MemberProtocol, ...]
) -> None:
    coordinator = Coordinator()
    waiter = coordinator.join(protocol_type=protocol_type, protocols=protocols)
    assert coordinator.join_error(waiter) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert coordinator.groups.group(G) is None


def test_members_must_share_a_protocol_and_its_type() -> None:
    coordinator = stable("a")
    other = coordinator.join(protocols=(ROUND,))
    assert coordinator.join_error(other) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    other = coordinator.join(protocol_type="connect")
    assert coordinator.join_error(other) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert coordinator.state() is GroupState.STABLE


def test_an_empty_group_takes_any_protocol_type() -> None:
    coordinator = stable("a")
    coordinator.leave("a")
    assert coordinator.join_error(coordinator.join(protocol_type="connect")) is ErrorCode.NONE
    assert coordinator.group.protocol_type == "connect"


def test_the_protocol_with_most_votes_is_chosen_of_those_that_all_know() -> None:
    coordinator = Coordinator(GroupSettings(group_initial_rebalance_delay_ms=100))
    sticky = MemberProtocol("sticky", b"topics:s")
    waiters = [
        coordinator.join(protocols=(sticky, RANGE, ROUND)),
        coordinator.join(protocols=(ROUND, RANGE)),
        coordinator.join(protocols=(ROUND, RANGE)),
    ]
    coordinator.pass_time(60_000)
    assert {coordinator.joined(each).protocol_name for each in waiters} == {"roundrobin"}


def test_a_tie_goes_to_the_first_members_choice() -> None:
    coordinator = stable("a")
    coordinator.join("a", protocols=(RANGE, ROUND))
    coordinator.settle_group()
    coordinator.join(new_id="b", protocols=(ROUND, RANGE))
    coordinator.settle_group()
    assert coordinator.group.protocol_name == "range"


def test_a_protocol_named_twice_counts_once() -> None:
    coordinator = Coordinator()
    coordinator.join(new_id="a", protocols=(RANGE, MemberProtocol("range", b"other")))
    assert coordinator.group.members["a"].protocols == (RANGE,)


# The initial delay.


def test_a_new_group_waits_for_more_members() -> None:
    coordinator = Coordinator(GroupSettings())
    first = coordinator.join(new_id="a")
    coordinator.pass_time(2_999)
    assert coordinator.waits(first)
    coordinator.pass_time(1)
    assert coordinator.joined(first).generation == 1


def test_newcomers_extend_the_delay() -> None:
    coordinator = Coordinator(GroupSettings())
    first = coordinator.join(new_id="a")
    coordinator.pass_time(2_000)
    second = coordinator.join(new_id="b")
    coordinator.pass_time(3_999)
    assert coordinator.waits(first)
    coordinator.pass_time(1)
    assert coordinator.joined(first).generation == coordinator.joined(second).generation == 1


def test_the_delay_is_never_extended_beyond_the_rebalance_timeout() -> None:
    coordinator = Coordinator(GroupSettings())
    first = coordinator.join(new_id="m0", rebalance_ms=7_000)
    started = coordinator.now_ms
    for number in range(1, 12):
        coordinator.pass_time(1_000)
        if not coordinator.waits(first):
            break
        coordinator.join(new_id=f"m{number}", rebalance_ms=7_000)
    assert coordinator.now_ms - started == 7_000


def test_all_joined_does_not_end_the_initial_delay() -> None:
    coordinator = Coordinator(GroupSettings())
    coordinator.join(new_id="a")
    coordinator.join("a")
    assert coordinator.state() is GroupState.PREPARING_REBALANCE


# Joining again.


def test_a_follower_that_repeats_its_join_receives_the_current_generation() -> None:
    coordinator = stable("a", "b")
    answer = coordinator.joined(coordinator.join("b"))
    assert (answer.generation, answer.leader, answer.members) == (2, "a", ())
    assert coordinator.state() is GroupState.STABLE


def test_a_follower_with_new_metadata_begins_a_rebalance() -> None:
    coordinator = stable("a", "b")
    changed = MemberProtocol("range", b"topics:u")
    waiter = coordinator.join("b", protocols=(changed,))
    assert coordinator.waits(waiter)
    assert coordinator.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    answer = coordinator.joined(coordinator.join("a"))
    assert answer.members[1].metadata == changed.metadata


def test_the_leader_begins_a_rebalance_by_joining_again() -> None:
    coordinator = stable("a", "b")
    assert coordinator.waits(coordinator.join("a"))
    assert coordinator.state() is GroupState.PREPARING_REBALANCE


def test_a_lost_answer_is_given_again_while_the_generation_is_being_completed() -> None:
    coordinator = Coordinator()
    coordinator.join(new_id="a")
    again = coordinator.joined(coordinator.join("a"))
    assert (again.generation, len(again.members)) == (1, 1)
    assert coordinator.state() is GroupState.COMPLETING_REBALANCE


def test_new_metadata_in_a_generation_being_completed_begins_another() -> None:
    coordinator = stable("a", "b")
    coordinator.join("a")
    coordinator.join("b")
    waiting = coordinator.sync("b")
    coordinator.join("a", protocols=(MemberProtocol("range", b"topics:u"),))
    assert coordinator.answer(waiting, AnswerSync).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.state() is GroupState.PREPARING_REBALANCE


def test_a_repeated_request_releases_the_first_one() -> None:
    coordinator = stable("a", "b")
    first = coordinator.join("a")
    second = coordinator.join("a")
    assert coordinator.join_error(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.waits(second)


# Rebalances that somebody misses.


def test_a_member_that_does_not_join_in_time_is_removed() -> None:
    coordinator = stable("a", "b")
    waiter = coordinator.join("a", rebalance_ms=20_000)
    for _ in range(12):
        coordinator.pass_time(5_000)
        if coordinator.waits(waiter):
            coordinator.heartbeat("b")
    assert coordinator.joined(waiter).generation == 3
    assert list(coordinator.group.members) == ["a"]
    assert coordinator.heartbeat("b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_does_not_join_is_replaced() -> None:
    coordinator = stable("a", "b")
    waiter = coordinator.join("b", protocols=(MemberProtocol("range", b"topics:u"),))
    coordinator.pass_time(60_000)
    assert coordinator.joined(waiter).leader == "b"


def test_a_newcomer_that_is_never_answered_is_forgotten_after_five_minutes() -> None:
    coordinator = stable("a", settings=GroupSettings(group_initial_rebalance_delay_ms=0))
    coordinator.join("a", rebalance_ms=NEW_MEMBER_JOIN_TIMEOUT_MS * 2)
    coordinator.settle_group()
    waiter = coordinator.join(new_id="b", rebalance_ms=NEW_MEMBER_JOIN_TIMEOUT_MS * 2)
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // 5_000):
        coordinator.heartbeat("a")
        coordinator.pass_time(5_000)
    assert coordinator.join_error(waiter) is ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.joined(waiter).member_id == ""


# The size of a group.

TWO = GroupSettings(group_initial_rebalance_delay_ms=0, group_max_size=2)


def test_a_full_group_takes_no_more_members() -> None:
    coordinator = stable("a", "b", settings=TWO)
    assert coordinator.join_error(coordinator.join(new_id="c")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert coordinator.state() is GroupState.STABLE
    assert coordinator.join_error(coordinator.join("b")) is ErrorCode.NONE


def test_the_last_ones_to_join_again_lose_their_place_when_the_limit_was_lowered() -> None:
    before = stable("a", "b", "c")
    coordinator = Coordinator(TWO, before.log)
    assert coordinator.state() is GroupState.PREPARING_REBALANCE
    first, second = coordinator.join("c"), coordinator.join("b")
    assert coordinator.waits(first)
    assert coordinator.join_error(coordinator.join("a")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert coordinator.joined(second).generation == 4
    assert sorted(coordinator.group.members) == ["b", "c"]


def test_a_static_member_comes_back_to_a_full_group() -> None:
    coordinator = Coordinator(TWO)
    coordinator.join(new_id="a", instance="i")
    coordinator.settle_group()
    coordinator.join(new_id="b")
    coordinator.settle_group()
    assert coordinator.join_error(coordinator.join(new_id="a2", instance="i")) is ErrorCode.NONE
