"""Static members (KIP-345): a restart is not a rebalance, and of two twins one is fenced."""

from __future__ import annotations

from holdfast.core.groups import Caller, GroupState, Leaver, MemberProtocol
from holdfast.model import ErrorCode, GroupRecord
from tests.unit.core.groups.support import RANGE, ROUND, G, Office, stable_static


def test_a_returning_member_takes_its_place_without_a_rebalance() -> None:
    office = stable_static("i", "j")
    waiter = office.join(new_id="j-2", instance="j")
    answer = office.joined(waiter)
    assert (answer.member_id, answer.generation, answer.leader) == ("j-2", 2, "i-1")
    assert office.state() is GroupState.STABLE
    assert office.heartbeat("i-1") is ErrorCode.NONE
    assert office.group.members["j-2"].assignment == b"j-1"


def test_the_new_id_is_stored_before_the_member_learns_it() -> None:
    office = stable_static("i", "j")
    office.holds_writes = True
    waiter = office.join(new_id="j-2", instance="j")
    assert office.waits(waiter)
    office.finish()
    assert not office.waits(waiter)
    newest = office.log[-1]
    assert isinstance(newest, GroupRecord)
    assert newest.metadata is not None
    assert [each.member_id for each in newest.metadata.members] == ["i-1", "j-2"]


def test_the_old_self_is_fenced() -> None:
    office = stable_static("i", "j")
    office.join(new_id="j-2", instance="j")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert office.heartbeat("j-1", instance="j") is fenced
    assert office.join_error(office.join("j-1", instance="j")) is fenced
    assert office.sync_error(office.sync("j-1", instance="j")) is fenced
    commit = office.commit(1, Caller(G, "j-1", office.group.generation, "j"))
    assert office.commit_errors(commit) == [fenced]
    assert office.left(office.leave(Leaver("j-1", "j"))) == [fenced]


def test_an_unknown_instance_is_an_unknown_member() -> None:
    office = stable_static("i")
    assert office.heartbeat("i-1", instance="x") is ErrorCode.UNKNOWN_MEMBER_ID
    waiter = office.join("i-1", instance="x")
    assert office.join_error(waiter) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_returning_leader_is_told_to_skip_the_assignment() -> None:
    office = stable_static("i", "j")
    answer = office.joined(office.join(new_id="i-2", instance="i", may_skip_assignment=True))
    assert answer.skip_assignment
    assert answer.leader == "i-2"
    assert [each.member_id for each in answer.members] == ["i-2", "j-1"]


def test_a_returning_follower_skips_nothing() -> None:
    office = stable_static("i", "j")
    answer = office.joined(office.join(new_id="j-2", instance="j", may_skip_assignment=True))
    assert not answer.skip_assignment
    assert answer.members == ()


def test_an_old_client_that_returns_as_leader_is_not_told_that_it_leads() -> None:
    office = stable_static("i", "j")
    answer = office.joined(office.join(new_id="i-2", instance="i"))
    assert (answer.leader, answer.members, answer.skip_assignment) == ("i-1", (), False)
    assert office.group.leader == "i-2"


def test_another_choice_of_protocol_means_a_rebalance() -> None:
    office = Office()
    office.join(new_id="i-1", instance="i", protocols=(RANGE, ROUND))
    office.settle_group()
    waiter = office.join(new_id="i-2", instance="i", protocols=(ROUND, RANGE))
    assert office.joined(waiter).generation == 2
    assert office.joined(waiter).protocol_name == "roundrobin"


def test_a_return_while_assignments_are_awaited_means_another_rebalance() -> None:
    office = stable_static("i", "j")
    office.join("i-1", instance="i")
    office.join("j-1", instance="j")
    sync = office.sync("j-1", instance="j")
    waiter = office.join(new_id="j-2", instance="j")
    assert office.sync_error(sync) is ErrorCode.FENCED_INSTANCE_ID
    assert office.waits(waiter)
    assert office.state() is GroupState.PREPARING_REBALANCE


def test_a_waiting_old_self_is_fenced_at_once() -> None:
    office = stable_static("i", "j")
    old = office.join("i-1", instance="i")
    office.join(new_id="i-2", instance="i")
    assert office.join_error(old) is ErrorCode.FENCED_INSTANCE_ID
    assert office.joined(old).member_id == "i-1"


def test_a_static_member_keeps_its_place_through_a_rebalance_that_it_misses() -> None:
    office = stable_static("i", "j")
    office.group.members["j-1"].rebalance_timeout_ms = 8_000
    office.join("i-1", instance="i", rebalance_ms=8_000)
    office.pass_time(8_000)
    assert office.state() is GroupState.COMPLETING_REBALANCE
    assert list(office.group.members) == ["i-1", "j-1"]


def test_only_silent_static_members_put_the_generation_off_until_their_sessions_end() -> None:
    office = stable_static("i", "j")
    office.join("i-1", instance="i", session_ms=30_000, rebalance_ms=8_000)
    office.join("j-1", instance="j", session_ms=30_000, rebalance_ms=8_000)
    office.settle_group()
    office.leave("i-1")
    office.pass_time(29_000)
    assert office.state() is GroupState.PREPARING_REBALANCE
    office.pass_time(1_000)
    assert office.state() is GroupState.EMPTY


def test_a_silent_static_leader_keeps_its_place_but_not_its_office() -> None:
    office = stable_static("i", "j")
    for member in office.group.members.values():
        member.rebalance_timeout_ms = 8_000
    changed = (MemberProtocol("range", b"topics:u"),)
    waiter = office.join("j-1", instance="j", protocols=changed, rebalance_ms=8_000)
    office.pass_time(8_000)
    assert office.joined(waiter).leader == "j-1"
    assert [each.member_id for each in office.joined(waiter).members] == ["i-1", "j-1"]


def test_no_time_to_rebalance_is_no_reason_to_look_all_the_time() -> None:
    office = stable_static("i", "j")
    for member in office.group.members.values():
        member.rebalance_timeout_ms = 0
    office.leave("i-1")
    office.pass_time(9_000)
    assert office.state() is GroupState.PREPARING_REBALANCE
    office.pass_time(1_000)
    assert office.state() is GroupState.EMPTY


# Writes that fail.


def test_a_refused_write_leaves_the_old_self_in_place() -> None:
    office = stable_static("i", "j")
    office.holds_writes = True
    changed = MemberProtocol("range", b"topics:u")
    waiter = office.join(new_id="i-2", instance="i", protocols=(changed,))
    office.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert office.join_error(waiter) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert office.group.leader == "i-1"
    assert office.heartbeat("i-1", instance="i") is ErrorCode.NONE
    assert office.group.members["i-1"].protocols == (RANGE,)


def test_a_write_that_timed_out_may_count_so_the_new_self_stays() -> None:
    office = stable_static("i")
    office.holds_writes = True
    waiter = office.join(new_id="i-2", instance="i")
    office.finish(ErrorCode.REQUEST_TIMED_OUT)
    assert office.join_error(waiter) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(office.group.members) == ["i-2"]


def test_two_returns_at_once_take_turns() -> None:
    office = stable_static("i")
    office.holds_writes = True
    first = office.join(new_id="i-2", instance="i")
    second = office.join(new_id="i-3", instance="i")
    assert office.join_error(second) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    office.finish()
    assert office.join_error(first) is ErrorCode.NONE


def test_a_rebalance_that_begins_meanwhile_takes_the_returning_member_along() -> None:
    office = stable_static("i", "j")
    office.holds_writes = True
    waiter = office.join(new_id="j-2", instance="j")
    office.join("i-1", instance="i")
    assert office.joined(waiter).generation == 3
    office.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert list(office.group.members) == ["i-1", "j-2"]


def test_a_returning_member_that_is_removed_meanwhile_is_told() -> None:
    office = stable_static("i", "j")
    office.holds_writes = True
    waiter = office.join(new_id="j-2", instance="j")
    office.leave(Leaver("", "j"))
    assert office.join_error(waiter) is ErrorCode.UNKNOWN_MEMBER_ID
    office.finish()
    assert list(office.group.members) == ["i-1"]


def test_a_member_that_came_back_need_not_sync_in_time() -> None:
    office = stable_static("i", "j")
    office.join("i-1", instance="i")
    office.join("j-1", instance="j")
    office.sync("i-1", {}, instance="i")
    office.join(new_id="j-2", instance="j")
    for _ in range(20):
        office.heartbeat("i-1")
        office.heartbeat("j-2")
        office.pass_time(5_000)
    assert office.state() is GroupState.STABLE


def test_a_write_of_a_group_that_is_gone_concerns_nobody() -> None:
    office = stable_static("i")
    office.holds_writes = True
    office.join(new_id="i-2", instance="i")
    office.leave(Leaver("", "i"))
    office.holds_writes = False
    office.delete()
    office.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert office.groups.group(G) is None
