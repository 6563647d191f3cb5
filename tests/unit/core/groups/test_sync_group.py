"""SyncGroup: assignments are stored first, then sent, each to its member and generation."""

from __future__ import annotations

import pytest

from holdfast.core.groups import AnswerSync, Caller, GroupState, Sync
from holdfast.model import ErrorCode, GroupRecord
from tests.unit.core.groups.support import Coordinator, G, stable


def completing(*member_ids: str) -> Coordinator:
    """A generation whose leader has yet to send the assignments."""
    coordinator = stable(*member_ids)
    for member_id in member_ids:  # The leader first: its joining is what begins the rebalance.
        coordinator.join(member_id)
    assert coordinator.state() is GroupState.COMPLETING_REBALANCE
    return coordinator


def test_each_member_gets_the_leaders_assignment() -> None:
    coordinator = completing("a", "b")
    follower = coordinator.sync("b")
    assert coordinator.waits(follower)
    leader = coordinator.sync("a", {"a": b"A", "b": b"B"})
    answer = coordinator.answer(leader, AnswerSync)
    assert answer == AnswerSync(leader, ErrorCode.NONE, "consumer", "range", b"A")
    assert coordinator.answer(follower, AnswerSync).assignment == b"B"
    assert coordinator.state() is GroupState.STABLE


def test_no_member_gets_an_assignment_before_it_is_stored() -> None:
    coordinator = completing("a", "b")
    coordinator.holds_writes = True
    follower, leader = coordinator.sync("b"), coordinator.sync("a", {"a": b"A", "b": b"B"})
    assert coordinator.waits(follower)
    assert coordinator.waits(leader)
    coordinator.finish()
    assert not coordinator.waits(follower)
    stored = coordinator.log[-1]
    assert isinstance(stored, GroupRecord)
    assert stored.metadata is not None
    assert [each.assignment for each in stored.metadata.members] == [b"A", b"B"]


def test_a_late_sync_gets_its_assignment_immediately() -> None:
    coordinator = completing("a", "b")
    coordinator.sync("a", {"b": b"B"})
    assert coordinator.answer(coordinator.sync("b"), AnswerSync).assignment == b"B"
    assert coordinator.answer(coordinator.sync("b"), AnswerSync).assignment == b"B"


def test_a_member_that_the_leader_forgot_gets_nothing_and_a_stranger_is_ignored() -> None:
    coordinator = completing("a", "b")
    coordinator.sync("a", {"a": b"A", "x": b"X"})
    assert coordinator.answer(coordinator.sync("b"), AnswerSync).assignment == b""


def test_the_leaders_first_word_counts() -> None:
    coordinator = completing("a")
    coordinator.holds_writes = True
    first = coordinator.sync("a", {"a": b"1"})
    second = coordinator.sync("a", {"a": b"2"})
    assert coordinator.sync_error(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert len(coordinator.writes) == 1
    coordinator.finish()
    assert coordinator.answer(second, AnswerSync).assignment == b"1"


def test_a_repeated_request_of_a_follower_releases_the_first_one() -> None:
    coordinator = completing("a", "b")
    first, second = coordinator.sync("b"), coordinator.sync("b")
    assert coordinator.sync_error(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.waits(second)


@pytest.mark.parametrize(
    ("refused", "answered"),
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
    refused: ErrorCode, answered: ErrorCode
) -> None:
    coordinator = completing("a", "b")
    coordinator.holds_writes = True
    follower, leader = coordinator.sync("b"), coordinator.sync("a", {"a": b"A", "b": b"B"})
    coordinator.finish(refused)
    assert coordinator.sync_error(leader) is answered
    assert coordinator.sync_error(follower) is answered
    assert coordinator.state() is GroupState.PREPARING_REBALANCE
    assert all(each.assignment == b"" for each in coordinator.group.members.values())


def test_an_assignment_of_an_earlier_generation_is_sent_to_no_member() -> None:
    coordinator = completing("a", "b")
    coordinator.holds_writes = True
    leader = coordinator.sync("a", {"a": b"A", "b": b"B"})
    newcomer = coordinator.join(new_id="c")
    assert coordinator.sync_error(leader) is ErrorCode.REBALANCE_IN_PROGRESS
    coordinator.finish()
    assert coordinator.state() is GroupState.PREPARING_REBALANCE
    assert coordinator.waits(newcomer)
    assert coordinator.group.members["a"].assignment == b""


def test_a_stale_verdict_does_not_complete_the_next_generation() -> None:
    coordinator = completing("a")
    coordinator.holds_writes = True
    coordinator.sync("a", {"a": b"old"})
    coordinator.join(new_id="b")
    coordinator.join("a")
    assert coordinator.state() is GroupState.COMPLETING_REBALANCE
    coordinator.finish()
    assert coordinator.state() is GroupState.COMPLETING_REBALANCE


# Refusals.


def test_other_generations_are_refused() -> None:
    coordinator = completing("a")
    for generation in (0, 1, 3):
        error = coordinator.sync_error(coordinator.sync("a", generation=generation))
        assert error is ErrorCode.ILLEGAL_GENERATION


def test_strangers_are_refused() -> None:
    coordinator = completing("a")
    assert coordinator.sync_error(coordinator.sync("x")) is ErrorCode.UNKNOWN_MEMBER_ID
    waiter = coordinator.waiter()
    coordinator.run(
        coordinator.groups.sync(Sync(Caller("other", "a", 1)), waiter, coordinator.now_ms)
    )
    assert coordinator.sync_error(waiter) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_sends_members_back_to_join() -> None:
    coordinator = stable("a", "b")
    coordinator.join("a")
    assert coordinator.sync_error(coordinator.sync("b")) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_protocol_must_be_the_groups_if_it_is_named() -> None:
    coordinator = completing("a")
    wrong_type = coordinator.sync("a", protocol_type="connect", protocol_name="range")
    wrong_name = coordinator.sync("a", protocol_type="consumer", protocol_name="roundrobin")
    for waiter in (wrong_type, wrong_name):
        assert coordinator.sync_error(waiter) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    right = coordinator.sync("a", {}, protocol_type="consumer", protocol_name="range")
    assert coordinator.sync_error(right) is ErrorCode.NONE


def test_an_empty_group_id_is_refused() -> None:
    coordinator = Coordinator()
    waiter = coordinator.waiter()
    coordinator.run(coordinator.groups.sync(Sync(Caller("", "a", 1)), waiter, coordinator.now_ms))
    assert coordinator.sync_error(waiter) is ErrorCode.INVALID_GROUP_ID


# Time.


def test_a_member_that_never_syncs_is_removed_after_the_rebalance_timeout() -> None:
    coordinator = completing("a", "b")
    coordinator.sync("a", {"a": b"A"})
    for _ in range(12):
        coordinator.heartbeat("a")
        coordinator.heartbeat("b")
        coordinator.pass_time(5_000)
    assert list(coordinator.group.members) == ["a"]
    assert coordinator.state() is GroupState.PREPARING_REBALANCE


def test_a_leader_that_never_deals_out_is_out() -> None:
    coordinator = completing("a", "b")
    waiter = coordinator.sync("b")
    for _ in range(12):
        coordinator.heartbeat("a")
        coordinator.pass_time(5_000)
    assert coordinator.sync_error(waiter) is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.group.leader == "b"


def test_no_member_is_removed_when_all_have_synced() -> None:
    coordinator = completing("a")
    coordinator.sync("a", {})
    for _ in range(30):
        coordinator.heartbeat("a")
        coordinator.pass_time(5_000)
    assert coordinator.state() is GroupState.STABLE


def test_a_refused_write_of_a_deleted_group_changes_nothing() -> None:
    coordinator = stable("a")
    coordinator.join("a")
    coordinator.holds_writes = True
    coordinator.sync("a", {})
    coordinator.leave("a")
    coordinator.holds_writes = False
    coordinator.delete()
    assert coordinator.groups.group(G) is None
    coordinator.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
