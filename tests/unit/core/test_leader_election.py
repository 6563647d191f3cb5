"""Elections as pure functions: members, candidates, and the logs that decide."""

from __future__ import annotations

from holdfast.core import Rules, Settings
from holdfast.core.controller.leader_election import (
    Choice,
    best_log,
    choose_leader,
    lead_by,
    leads_on,
    member_epoch,
    minimum_isr,
    next_version,
    recovery_candidates,
    settle_members,
    with_isr,
    without_leader,
)
from holdfast.model import NO_BROKER, BrokerEpoch, BrokerId, ReplicaBroker
from tests.unit.core.controllers import MAJORITY, alive, end
from tests.unit.core.support import ONE, TWO, A, B, C, D, state, without

SAFE = Rules()
UP = {one: alive(one, epoch=1) for one in (A, B, C)}
"""Every broker is in the broker epoch in which it joined in `state`."""


def test_the_minimum_is_never_more_than_the_replicas() -> None:
    assert minimum_isr(state(), Settings(min_insync_replicas=5)) == 3
    assert minimum_isr(state(), TWO) == 2


def test_every_change_is_one_version_later() -> None:
    assert next_version(state(version=4)).partition_epoch == 5


def test_a_broker_that_is_no_member_has_no_member_epoch() -> None:
    assert member_epoch(state(isr=(A,)), B) == -1
    assert member_epoch(state(), B) == 1


# Members.


def test_a_replica_that_leaves_below_the_minimum_is_eligible_and_keeps_its_epoch() -> None:
    changed = with_isr(state(), (A,), UP, TWO, SAFE)
    assert (changed.isr, changed.eligible_leaders) == ((A,), (B, C))
    assert dict(changed.member_epochs) == {A: 1, B: 1, C: 1}


def test_a_joiner_is_a_member_in_its_current_broker_epoch() -> None:
    brokers = {**UP, C: alive(C, 9)}
    changed = with_isr(state(isr=(A, B)), (A, B, C), brokers, TWO, SAFE)
    assert changed.member_epochs[-1] == ReplicaBroker(C, BrokerEpoch(9))


def test_before_kip_966_no_replica_was_eligible() -> None:
    changed = with_isr(state(), (A,), UP, TWO, without("eligible-leaders"))
    assert changed.eligible_leaders == ()


def test_dead_members_leave_the_isr() -> None:
    settled = settle_members(state(), {A: UP[A], B: UP[B]}, TWO, SAFE)
    assert settled.isr == (A, B)


def test_living_intact_members_change_nothing() -> None:
    assert settle_members(state(), UP, TWO, SAFE) == state()


def test_members_that_restarted_uncleanly_leave_the_isr_though_alive() -> None:
    settled = settle_members(state(), {**UP, A: alive(A, 9), B: alive(B, 8)}, TWO, SAFE)
    assert (settled.isr, settled.last_known_eligible) == ((C,), (A, B))


def test_under_the_majority_rule_there_are_no_members_to_settle() -> None:
    assert settle_members(state(), {}, TWO, MAJORITY) == state()


# Candidates.


def test_members_come_before_eligible_leaders_and_both_before_the_rest() -> None:
    known = state(isr=(C,))._replace(eligible_leaders=(B,))
    assert choose_leader(known, UP, ONE) == Choice(C, "isr")
    assert choose_leader(known, {A: UP[A], B: UP[B]}, ONE) == Choice(B, "eligible")
    assert choose_leader(known, {A: UP[A]}, ONE) is None
    assert choose_leader(known, {A: UP[A]}, ONE, unclean=True) == Choice(A, "unclean")


def test_an_avoided_broker_is_not_chosen() -> None:
    assert choose_leader(state(), UP, ONE, avoid=(A,)) == Choice(B, "isr")


def test_a_leader_leads_on_only_in_the_broker_epoch_of_its_election() -> None:
    led = lead_by(state(), Choice(B, "isr"), UP, TWO, SAFE)
    assert leads_on(led, UP)
    assert not leads_on(led, {**UP, B: alive(B, 9, intact_since=1)})
    assert not leads_on(led, {A: UP[A]})


def test_a_clean_leader_keeps_the_isr_in_a_new_epoch() -> None:
    led = lead_by(state(), Choice(B, "isr"), UP, TWO, SAFE)
    assert (led.leader, led.leader_epoch, led.isr) == (B, 1, (A, B, C))


def test_an_unclean_leader_is_alone_and_there_is_no_other_candidate() -> None:
    known = state(isr=(), epoch=3)._replace(last_known_eligible=(B,), eligible_leaders=(A,))
    led = lead_by(known, Choice(C, "unclean"), UP, TWO, SAFE)
    assert (led.isr, led.eligible_leaders, led.last_known_eligible) == ((C,), (), ())


def test_the_best_log_is_alone_and_the_others_stay_candidates() -> None:
    known = state(isr=(), epoch=3)._replace(last_known_eligible=(A, B))
    led = lead_by(known, Choice(A, "best-log"), UP, TWO, SAFE)
    assert (led.isr, led.last_known_eligible) == ((A,), (B,))


def test_losing_the_leader_begins_one_new_epoch() -> None:
    gone = without_leader(state(epoch=3))
    assert (gone.leader, gone.leader_epoch) == (NO_BROKER, 4)
    assert without_leader(gone) == gone


# Whose logs decide.


def test_logs_decide_only_when_no_member_and_no_eligible_leader_is_left() -> None:
    last = state(leader=-1, isr=())._replace(last_known_eligible=(A, B))
    assert recovery_candidates(last, UP, SAFE) == (A, B)
    assert recovery_candidates(last._replace(isr=(C,)), UP, SAFE) is None
    assert recovery_candidates(last._replace(eligible_leaders=(C,)), UP, SAFE) is None
    assert recovery_candidates(last._replace(last_known_eligible=()), UP, SAFE) is None


def test_logs_decide_only_when_all_of_them_can_be_read() -> None:
    last = state(leader=-1, isr=())._replace(last_known_eligible=(A, B))
    assert recovery_candidates(last, {A: UP[A]}, SAFE) is None
    first_up = without("best-log-recovery")
    assert recovery_candidates(last, {B: UP[B]}, first_up) == (B,)
    assert recovery_candidates(last, {C: UP[C]}, first_up) is None


def test_a_majority_is_more_than_half() -> None:
    four = state(replicas=(A, B, C, D))
    assert recovery_candidates(four, {A: UP[A], B: UP[B]}, MAJORITY) is None
    assert recovery_candidates(four, UP, MAJORITY) == (A, B, C)


def test_the_best_log_has_the_latest_epoch_then_the_greatest_end() -> None:
    ends = {A: end(0, 9), B: end(1, 5), C: end(1, 6)}
    assert best_log(state(), ends, SAFE).leader == C
    equal = {one: end(1, 5) for one in (C, B)}
    assert best_log(state(), equal, SAFE) == Choice(BrokerId(2), "best-log")
