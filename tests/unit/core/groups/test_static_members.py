"""Static members (KIP-345): a restart is no rebalance, and a second instance is fenced."""

from __future__ import annotations

from holdfast.core.groups import Caller, GroupState, Leaver, MemberProtocol
from holdfast.model import ErrorCode, GroupRecord
from tests.unit.core.groups.support import RANGE, ROUND, Coordinator, G, stable_static


def test_a_returning_member_takes_its_place_without_a_rebalance() -> None:
    coordinator = stable_static("i", "j")
    waiter = coordinator.join(new_id="j-2", instance="j")
    answer = coordinator.joined(waiter)
    assert (answer.member_id, answer.generation, answer.leader) == ("j-2", 2, "i-1")
    assert coordinator.state() is GroupState.STABLE
    assert coordinator.heartbeat("i-1") is ErrorCode.NONE
    assert coordinator.group.members["j-2"].assignment == b"j-1"


def test_the_new_id_is_stored_before_the_member_learns_it() -> None:
    coordinator = stable_static("i", "j")
    coordinator.holds_writes = True
    waiter = coordinator.join(new_id="j-2", instance="j")
    assert coordinator.waits(waiter)
    coordinator.finish()
    assert not coordinator.waits(waiter)
    newest = coordinator.log[-1]
    assert isinstance(newest, GroupRecord)
    assert newest.metadata is not None
    assert [each.member_id for each in newest.metadata.members] == ["i-1", "j-2"]


def test_the_old_self_is_fenced() -> None:
    coordinator = stable_static("i", "j")
    coordinator.join(new_id="j-2", instance="j")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert coordinator.heartbeat("j-1", instance="j") is fenced
    assert coordinator.join_error(coordinator.join("j-1", instance="j")) is fenced
    assert coordinator.sync_error(coordinator.sync("j-1", instance="j")) is fenced
    commit = coordinator.commit(1, Caller(G, "j-1", coordinator.group.generation, "j"))
    assert coordinator.commit_errors(commit) == [fenced]
    assert coordinator.left(coordinator.leave(Leaver("j-1", "j"))) == [fenced]


def test_an_unknown_instance_is_an_unknown_member() -> None:
    coordinator = stable_static("i")
    assert coordinator.heartbeat("i-1", instance="x") is ErrorCode.UNKNOWN_MEMBER_ID
    waiter = coordinator.join("i-1", instance="x")
    assert coordinator.join_error(waiter) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rejoining_leader_is_asked_to_skip_the_assignment() -> None:
    coordinator = stable_static("i", "j")
    answer = coordinator.joined(
        coordinator.join(new_id="i-2", instance="i", may_skip_assignment=True)
    )
    assert answer.skip_assignment
    assert answer.leader == "i-2"
    assert [each.member_id for each in answer.members] == ["i-2", "j-1"]


def test_a_returning_follower_skips_nothing() -> None:
    coordinator = stable_static("i", "j")
    answer = coordinator.joined(
        coordinator.join(new_id="j-2", instance="j", may_skip_assignment=True)
    )
    assert not answer.skip_assignment
    assert answer.members == ()


def test_an_old_client_that_rejoins_as_leader_gets_no_leadership() -> None:
    coordinator = stable_static("i", "j")
    answer = coordinator.joined(coordinator.join(new_id="i-2", instance="i"))
    assert (answer.leader, answer.members, answer.skip_assignment) == ("i-1", (), False)
    assert coordinator.group.leader == "i-2"


def test_another_choice_of_protocol_means_a_rebalance() -> None:
    coordinator = Coordinator()
    coordinator.join(new_id="i-1", instance="i", protocols=(RANGE, ROUND))
    coordinator.settle_group()
    waiter = coordinator.join(new_id="i-2", instance="i", protocols=(ROUND, RANGE))
    assert coordinator.joined(waiter).generation == 2
    assert coordinator.joined(waiter).protocol_name == "roundrobin"


def test_a_return_while_assignments_are_awaited_means_another_rebalance() -> None:
    coordinator = stable_static("i", "j")
    coordinator.join("i-1", instance="i")
    coordinator.join("j-1", instance="j")
    sync = coordinator.sync("j-1", instance="j")
    waiter = coordinator.join(new_id="j-2", instance="j")
    assert coordinator.sync_error(sync) is ErrorCode.FENCED_INSTANCE_ID
    assert coordinator.waits(waiter)
    assert coordinator.state() is GroupState.PREPARING_REBALANCE


def test_a_waiting_old_self_is_fenced_at_once() -> None:
    coordinator = stable_static("i", "j")
    old = coordinator.join("i-1", instance="i")
    coordinator.join(new_id="i-2", instance="i")
    assert coordinator.join_error(old) is ErrorCode.FENCED_INSTANCE_ID
    assert coordinator.joined(old).member_id == "i-1"


def test_a_static_member_keeps_its_place_through_a_rebalance_that_it_misses() -> None:
    coordinator = stable_static("i", "j")
    coordinator.group.members["j-1"].rebalance_timeout_ms = 8_000
    coordinator.join("i-1", instance="i", rebalance_ms=8_000)
    coordinator.pass_time(8_000)
    assert coordinator.state() is GroupState.COMPLETING_REBALANCE
    assert list(coordinator.group.members) == ["i-1", "j-1"]


def test_only_silent_static_members_put_the_generation_off_until_their_sessions_end() -> None:
    coordinator = stable_static("i", "j")
    coordinator.join("i-1", instance="i", session_ms=30_000, rebalance_ms=8_000)
    coordinator.join("j-1", instance="j", session_ms=30_000, rebalance_ms=8_000)
    coordinator.settle_group()
    coordinator.leave("i-1")
    coordinator.pass_time(29_000)
    assert coordinator.state() is GroupState.PREPARING_REBALANCE
    coordinator.pass_time(1_000)
    assert coordinator.state() is GroupState.EMPTY


def test_a_silent_static_leader_keeps_its_place_but_not_its_leadership() -> None:
    coordinator = stable_static("i", "j")
    for member in coordinator.group.members.values():
        member.rebalance_timeout_ms = 8_000
    changed = (MemberProtocol("range", b"topics:u"),)
    waiter = coordinator.join("j-1", instance="j", protocols=changed, rebalance_ms=8_000)
    coordinator.pass_time(8_000)
    assert coordinator.joined(waiter).leader == "j-1"
    assert [each.member_id for each in coordinator.joined(waiter).members] == ["i-1", "j-1"]


def test_no_time_to_rebalance_is_no_reason_to_look_all_the_time() -> None:
    coordinator = stable_static("i", "j")
    for member in coordinator.group.members.values():
        member.rebalance_timeout_ms = 0
    coordinator.leave("i-1")
    coordinator.pass_time(9_000)
    assert coordinator.state() is GroupState.PREPARING_REBALANCE
    coordinator.pass_time(1_000)
    assert coordinator.state() is GroupState.EMPTY


# Writes that fail.


def test_a_refused_write_leaves_the_old_self_in_place() -> None:
    coordinator = stable_static("i", "j")
    coordinator.holds_writes = True
    changed = MemberProtocol("range", b"topics:u")
    waiter = coordinator.join(new_id="i-2", instance="i", protocols=(changed,))
    coordinator.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert coordinator.join_error(waiter) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert coordinator.group.leader == "i-1"
    assert coordinator.heartbeat("i-1", instance="i") is ErrorCode.NONE
    assert coordinator.group.members["i-1"].protocols == (RANGE,)


def test_a_write_that_timed_out_may_count_so_the_new_self_stays() -> None:
    coordinator = stable_static("i")
    coordinator.holds_writes = True
    waiter = coordinator.join(new_id="i-2", instance="i")
    coordinator.finish(ErrorCode.REQUEST_TIMED_OUT)
    assert coordinator.join_error(waiter) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(coordinator.group.members) == ["i-2"]


def test_two_returns_at_once_take_turns() -> None:
    coordinator = stable_static("i")
    coordinator.holds_writes = True
    first = coordinator.join(new_id="i-2", instance="i")
    second = coordinator.join(new_id="i-3", instance="i")
    assert coordinator.join_error(second) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    coordinator.finish()
    assert coordinator.join_error(first) is ErrorCode.NONE


def test_a_rebalance_that_begins_meanwhile_takes_the_returning_member_along() -> None:
    coordinator = stable_static("i", "j")
    coordinator.holds_writes = True
    waiter = coordinator.join(new_id="j-2", instance="j")
    coordinator.join("i-1", instance="i")
    assert coordinator.joined(waiter).generation == 3
    coordinator.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert list(coordinator.group.members) == ["i-1", "j-2"]


def test_a_rejoining_member_that_is_removed_meanwhile_is_answered() -> None:
    coordinator = stable_static("i", "j")
    coordinator.holds_writes = True
    waiter = coordinator.join(new_id="j-2", instance="j")
    coordinator.leave(Leaver("", "j"))
    assert coordinator.join_error(waiter) is ErrorCode.UNKNOWN_MEMBER_ID
    coordinator.finish()
    assert list(coordinator.group.members) == ["i-1"]


def test_a_member_that_came_back_need_not_sync_in_time() -> None:
    coordinator = stable_static("i", "j")
    coordinator.join("i-1", instance="i")
    coordinator.join("j-1", instance="j")
    coordinator.sync("i-1", {}, instance="i")
    coordinator.join(new_id="j-2", instance="j")
    for _ in range(20):
        coordinator.heartbeat("i-1")
        coordinator.heartbeat("j-2")
        coordinator.pass_time(5_000)
    assert coordinator.state() is GroupState.STABLE


def test_a_write_of_a_deleted_group_changes_nothing() -> None:
    coordinator = stable_static("i")
    coordinator.holds_writes = True
    coordinator.join(new_id="i-2", instance="i")
    coordinator.leave(Leaver("", "i"))
    coordinator.holds_writes = False
    coordinator.delete()
    coordinator.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert coordinator.groups.group(G) is None
