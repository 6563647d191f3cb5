"""SyncGroup: assignments are stored first, then given out; each to its member and generation."""

from __future__ import annotations

import pytest

from holdfast.core.groups import AnswerSync, Caller, GroupState, Sync
from holdfast.model import ErrorCode, GroupRecord
from tests.unit.core.groups.support import G, Office, stable


def completing(*member_ids: str) -> Office:
    """A generation whose leader has yet to deal out."""
    office = stable(*member_ids)
    for member_id in member_ids:  # The leader first: its joining is what begins the rebalance.
        office.join(member_id)
    assert office.state() is GroupState.COMPLETING_REBALANCE
    return office


def test_everybody_gets_what_the_leader_dealt_out() -> None:
    office = completing("a", "b")
    follower = office.sync("b")
    assert office.waits(follower)
    leader = office.sync("a", {"a": b"A", "b": b"B"})
    answer = office.answer(leader, AnswerSync)
    assert answer == AnswerSync(leader, ErrorCode.NONE, "consumer", "range", b"A")
    assert office.answer(follower, AnswerSync).assignment == b"B"
    assert office.state() is GroupState.STABLE


def test_nobody_learns_of_an_assignment_before_it_is_stored() -> None:
    office = completing("a", "b")
    office.holds_writes = True
    follower, leader = office.sync("b"), office.sync("a", {"a": b"A", "b": b"B"})
    assert office.waits(follower)
    assert office.waits(leader)
    office.finish()
    assert not office.waits(follower)
    stored = office.log[-1]
    assert isinstance(stored, GroupRecord)
    assert stored.metadata is not None
    assert [each.assignment for each in stored.metadata.members] == [b"A", b"B"]


def test_who_asks_late_gets_its_assignment_at_once() -> None:
    office = completing("a", "b")
    office.sync("a", {"b": b"B"})
    assert office.answer(office.sync("b"), AnswerSync).assignment == b"B"
    assert office.answer(office.sync("b"), AnswerSync).assignment == b"B"


def test_a_member_that_the_leader_forgot_gets_nothing_and_a_stranger_is_ignored() -> None:
    office = completing("a", "b")
    office.sync("a", {"a": b"A", "x": b"X"})
    assert office.answer(office.sync("b"), AnswerSync).assignment == b""


def test_the_leaders_first_word_counts() -> None:
    office = completing("a")
    office.holds_writes = True
    first = office.sync("a", {"a": b"1"})
    second = office.sync("a", {"a": b"2"})
    assert office.sync_error(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert len(office.writes) == 1
    office.finish()
    assert office.answer(second, AnswerSync).assignment == b"1"


def test_a_repeated_request_of_a_follower_releases_the_first_one() -> None:
    office = completing("a", "b")
    first, second = office.sync("b"), office.sync("b")
    assert office.sync_error(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert office.waits(second)


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_an_assignment_that_cannot_be_stored_means_another_rebalance(
    refused: ErrorCode, told: ErrorCode
) -> None:
    office = completing("a", "b")
    office.holds_writes = True
    follower, leader = office.sync("b"), office.sync("a", {"a": b"A", "b": b"B"})
    office.finish(refused)
    assert office.sync_error(leader) is told
    assert office.sync_error(follower) is told
    assert office.state() is GroupState.PREPARING_REBALANCE
    assert all(each.assignment == b"" for each in office.group.members.values())


def test_an_assignment_of_a_generation_that_has_passed_is_given_to_nobody() -> None:
    office = completing("a", "b")
    office.holds_writes = True
    leader = office.sync("a", {"a": b"A", "b": b"B"})
    newcomer = office.join(new_id="c")
    assert office.sync_error(leader) is ErrorCode.REBALANCE_IN_PROGRESS
    office.finish()
    assert office.state() is GroupState.PREPARING_REBALANCE
    assert office.waits(newcomer)
    assert office.group.members["a"].assignment == b""


def test_a_stale_verdict_does_not_complete_the_next_generation() -> None:
    office = completing("a")
    office.holds_writes = True
    office.sync("a", {"a": b"old"})
    office.join(new_id="b")
    office.join("a")
    assert office.state() is GroupState.COMPLETING_REBALANCE
    office.finish()
    assert office.state() is GroupState.COMPLETING_REBALANCE


# Refusals.


def test_other_generations_are_refused() -> None:
    office = completing("a")
    for generation in (0, 1, 3):
        error = office.sync_error(office.sync("a", generation=generation))
        assert error is ErrorCode.ILLEGAL_GENERATION


def test_strangers_are_refused() -> None:
    office = completing("a")
    assert office.sync_error(office.sync("x")) is ErrorCode.UNKNOWN_MEMBER_ID
    waiter = office.waiter()
    office.run(office.groups.sync(Sync(Caller("other", "a", 1)), waiter, office.now_ms))
    assert office.sync_error(waiter) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_sends_members_back_to_join() -> None:
    office = stable("a", "b")
    office.join("a")
    assert office.sync_error(office.sync("b")) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_protocol_must_be_the_groups_if_it_is_named() -> None:
    office = completing("a")
    wrong_type = office.sync("a", protocol_type="connect", protocol_name="range")
    wrong_name = office.sync("a", protocol_type="consumer", protocol_name="roundrobin")
    for waiter in (wrong_type, wrong_name):
        assert office.sync_error(waiter) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    right = office.sync("a", {}, protocol_type="consumer", protocol_name="range")
    assert office.sync_error(right) is ErrorCode.NONE


def test_an_empty_group_id_is_refused() -> None:
    office = Office()
    waiter = office.waiter()
    office.run(office.groups.sync(Sync(Caller("", "a", 1)), waiter, office.now_ms))
    assert office.sync_error(waiter) is ErrorCode.INVALID_GROUP_ID


# Time.


def test_who_never_asks_for_its_assignment_is_out_after_the_rebalance_timeout() -> None:
    office = completing("a", "b")
    office.sync("a", {"a": b"A"})
    for _ in range(12):
        office.heartbeat("a")
        office.heartbeat("b")
        office.pass_time(5_000)
    assert list(office.group.members) == ["a"]
    assert office.state() is GroupState.PREPARING_REBALANCE


def test_a_leader_that_never_deals_out_is_out() -> None:
    office = completing("a", "b")
    waiter = office.sync("b")
    for _ in range(12):
        office.heartbeat("a")
        office.pass_time(5_000)
    assert office.sync_error(waiter) is ErrorCode.REBALANCE_IN_PROGRESS
    assert office.group.leader == "b"


def test_nobody_is_out_when_all_have_asked() -> None:
    office = completing("a")
    office.sync("a", {})
    for _ in range(30):
        office.heartbeat("a")
        office.pass_time(5_000)
    assert office.state() is GroupState.STABLE


def test_a_refused_write_of_a_group_that_is_gone_concerns_nobody() -> None:
    office = stable("a")
    office.join("a")
    office.holds_writes = True
    office.sync("a", {})
    office.leave("a")
    office.holds_writes = False
    office.delete()
    assert office.groups.group(G) is None
    office.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
