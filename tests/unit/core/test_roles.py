"""Roles: which moves are allowed, and what a change of role ends."""

from __future__ import annotations

import pytest

from holdfast.core import (
    ACKS_LEADER,
    Acknowledge,
    Follower,
    Leader,
    LogState,
    Offline,
    Refuse,
    Replica,
    Settings,
    WakeFetch,
    WriteEpoch,
)
from holdfast.core.replica.roles import MOVES, check_move
from holdfast.model import BatchHeader, EpochEntry, ErrorCode, LeaderEpoch, Offset
from tests.unit.core.support import (
    A,
    B,
    C,
    fetches,
    following,
    leading,
    log,
    only,
    produce,
    role_of,
    state,
    without,
)


def test_a_replica_starts_offline_and_refuses_requests() -> None:
    replica = Replica(A, log())
    assert isinstance(replica.role, Offline)
    assert not replica.has_failed
    assert not replica.presumes_leadership
    answer = replica.append_as_leader(BatchHeader(1), ACKS_LEADER)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert replica.next_fetch() is None
    assert replica.tick(99) == ()


def test_a_new_leader_records_its_epoch_before_it_writes() -> None:
    # KAFKA-7415: an epoch without records has an end too.
    replica = Replica(A, log(5, epochs=[(0, 0)]))
    effects = replica.become_leader(state(epoch=3), 0)
    assert effects == (WriteEpoch(EpochEntry(LeaderEpoch(3), Offset(5))),)
    assert replica.presumes_leadership
    assert replica.end_offset_for(LeaderEpoch(3)) == (ErrorCode.NONE, (3, 5))


def test_without_that_guard_an_epoch_without_records_has_no_entry() -> None:
    replica = Replica(A, log(5, epochs=[(0, 0)]), without("epoch-at-election"))
    assert replica.become_leader(state(epoch=3), 0) == ()
    assert replica.log.epochs.latest_epoch == 0
    replica.append_as_leader(BatchHeader(1), ACKS_LEADER)
    assert replica.log.epochs.latest_epoch == 3


def test_a_leader_that_has_its_epoch_on_record_does_not_write_it_again() -> None:
    replica = Replica(A, log(5, epochs=[(3, 0)]))
    assert replica.become_leader(state(epoch=3), 0) == ()


# Older and equal epochs.


def test_an_older_epoch_changes_nothing() -> None:
    replica = leading(state(epoch=3))
    assert replica.become_follower(state(B, 2)) == ()
    assert replica.become_leader(state(A, 2), 0) == ()
    assert replica.leader_epoch == 3
    assert replica.presumes_leadership


def test_without_that_guard_a_delayed_command_makes_a_stale_follower() -> None:
    # truncate-against-stale-leader begins like this.
    replica = leading(state(epoch=3), rules=without("higher-epoch-only"))
    replica.become_follower(state(B, 2))
    assert replica.leader_epoch == 2
    assert isinstance(replica.role, Follower)


def test_a_follower_that_receives_its_epoch_again_keeps_its_role() -> None:
    follower = following(state(A, 1))
    role = follower.role
    assert follower.become_follower(state(A, 1, version=9)) == ()
    assert follower.role is role


def test_a_leader_must_be_the_broker_in_the_state() -> None:
    with pytest.raises(AssertionError):
        Replica(A, log()).become_leader(state(B), 0)
    with pytest.raises(AssertionError):
        Replica(A, log()).become_follower(state(A))


# What a change of role ends.


def waiting_leader() -> Replica:
    """One acks=all producer, one acks=1 batch not yet written, two parked fetches."""
    leader = leading()
    produce(leader, "all")
    leader.append_as_leader(BatchHeader(1), ACKS_LEADER, "one")
    leader.park_fetch("follower", 500, at_end=True)
    leader.park_fetch("consumer", 500, at_end=False)
    return leader


def test_a_deposed_leader_answers_all_waiters() -> None:
    effects = waiting_leader().become_follower(state(B, 1))
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert effects == (
        Refuse("all", error, Offset(0)),
        Refuse("one", error, Offset(1)),
        WakeFetch("follower"),
        WakeFetch("consumer"),
    )


def test_a_re_elected_leader_lets_them_wait_on() -> None:
    leader = waiting_leader()
    effects = leader.become_leader(state(epoch=2, isr=(A, B), version=3), 0)
    assert only(Refuse, effects) == []
    leader.appended(0)
    answered = only(Acknowledge, fetches(leader, B, 2).effects)
    assert answered == [("all", 0)]


def test_a_re_elected_leader_begins_a_new_epoch_at_its_end() -> None:
    leader = leading()
    produce(leader)
    leader.become_leader(state(epoch=2, version=3), 7)
    assert role_of(leader).epoch_start_offset == 1
    assert leader.log.epochs.latest_epoch == 2


# A failed log.


def test_a_failed_log_refuses_everything_and_everyone() -> None:
    leader = waiting_leader()
    effects = leader.log_failed("disk full")
    assert [one.error for one in only(Refuse, effects)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert leader.has_failed
    # KAFKA-10778: the next append arrives before anybody else has noticed.
    answer = leader.append_as_leader(BatchHeader(1), ACKS_LEADER)
    assert answer.error is ErrorCode.KAFKA_STORAGE_ERROR


def test_without_that_guard_the_next_append_is_accepted() -> None:
    leader = leading(rules=without("offline-on-io-error"))
    assert leader.log_failed("disk full") == ()
    assert leader.append_as_leader(BatchHeader(1), ACKS_LEADER).error is ErrorCode.NONE


def test_a_failed_log_stays_offline_until_the_process_starts_again() -> None:
    replica = following()
    assert replica.go_offline("torn") == ()
    assert replica.go_offline("again") == ()
    assert replica.become_leader(state(B, 1), 0) == ()
    assert replica.become_follower(state(C, 2)) == ()
    assert replica.has_failed


# The table of moves.


ROLES = {
    "Leader": leading().role,
    "Follower": following().role,
    "Offline": Offline("started", failed=False),
}


@pytest.mark.parametrize("move", MOVES)
def test_every_move_of_the_table_is_allowed(move: tuple[str, str]) -> None:
    before, after = move
    check_move(ROLES[before], ROLES[after])


def test_the_table_has_every_pair_of_roles() -> None:
    assert sorted(MOVES) == sorted((before, after) for before in ROLES for after in ROLES)


def test_a_move_that_is_not_in_the_table_is_a_bug() -> None:
    class Candidate(Leader):
        __slots__ = ()

    unknown = Candidate.__new__(Candidate)
    with pytest.raises(AssertionError, match="illegal move"):
        check_move(unknown, ROLES["Leader"])


def test_leaving_a_failed_log_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="stays offline"):
        check_move(Offline("torn", failed=True), ROLES["Follower"])


def test_a_leader_in_another_epoch_than_its_replica_is_a_bug() -> None:
    leader = leading()
    leader.check_invariants()
    leader.leader_epoch = LeaderEpoch(9)
    with pytest.raises(AssertionError):
        leader.check_invariants()


def test_an_epoch_cache_out_of_order_is_a_bug() -> None:
    follower = following(held=log(5, epochs=[(0, 0), (2, 3)]))
    follower.log.epochs.entries.reverse()
    with pytest.raises(AssertionError, match="do not rise"):
        follower.check_invariants()


def test_a_follower_keeps_its_invariants_too() -> None:
    follower = following()
    follower.check_invariants()
    follower.log.high_watermark = Offset(9)
    with pytest.raises(AssertionError):
        follower.check_invariants()


def test_a_leader_is_in_its_own_isr() -> None:
    leader = Replica(A, LogState(Settings()))
    leader.become_leader(state(isr=(B,)), 0)
    with pytest.raises(AssertionError, match="own ISR"):
        leader.check_invariants()
