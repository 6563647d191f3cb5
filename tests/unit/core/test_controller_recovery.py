"""KIP-966: eligible leaders, unclean restarts, and the comparison of logs."""

from __future__ import annotations

import pytest

from holdfast.core import AskLogEnd, Controller, Rules, SendStateTo, Settings
from holdfast.model import BrokerId, LeaderEpoch, TopicPartition
from tests.unit.core.controllers import (
    MAJORITY,
    P,
    answer_end,
    come_back,
    controller,
    end,
    lose,
    of,
    only,
    proposal,
    rule_of,
    settle,
)
from tests.unit.core.support import TWO, A, B, C, without

# Eligible leaders.


def test_a_replica_that_leaves_a_large_enough_isr_is_not_eligible() -> None:
    core = controller()
    lose(core, C)
    assert (of(core).isr, of(core).eligible_leaders) == ((A, B), ())


def test_a_replica_that_leaves_a_too_small_isr_stays_eligible() -> None:
    core = controller()
    lose(core, C, B)
    assert (of(core).isr, of(core).eligible_leaders) == ((A,), (B,))


def test_the_last_member_stays_eligible_though_dead() -> None:
    core = controller()
    lose(core, C, B, A)
    assert (of(core).isr, of(core).eligible_leaders, of(core).leader) == ((), (B, A), -1)


def test_an_eligible_leader_is_elected_when_no_member_is_live() -> None:
    # last-replica-standing: C is last, B left below the minimum and has everything committed.
    core = controller()
    lose(core, A, B)
    assert (of(core).isr, of(core).eligible_leaders) == ((C,), (B,))
    lose(core, C)
    commands = come_back(core, B, epoch=9, intact_since=B)
    state = of(core)
    assert (state.leader, state.isr, state.eligible_leaders) == (B, (B,), (C,))
    assert rule_of(commands) == "eligible"


def test_a_broker_that_was_never_eligible_is_not_elected() -> None:
    core = controller()
    lose(core, A, B, C)
    come_back(core, A, epoch=9, intact_since=A)
    assert of(core).leader == -1


def test_before_kip_966_the_last_member_led_with_what_it_had_left() -> None:
    core = controller(rules=without("eligible-leaders"))
    lose(core, A, B, C)
    come_back(core, B, epoch=9, intact_since=B)
    assert of(core).leader == -1
    come_back(core, C, epoch=10)
    assert of(core).leader == C


def test_a_large_enough_isr_clears_the_eligible_leaders() -> None:
    core = controller()
    lose(core, C, B)
    come_back(core, C, epoch=9)
    settle(core, core.alter_partition(P, A, proposal(core, (A, -1), (C, 9)), "waiter"))
    assert (of(core).isr, of(core).eligible_leaders) == ((A, C), ())


# Unclean restarts.


def test_an_eligible_leader_that_restarted_uncleanly_is_only_last_known() -> None:
    core = controller()
    lose(core, C, B)
    come_back(core, B, epoch=9)
    state = of(core)
    assert (state.isr, state.eligible_leaders, state.last_known_eligible) == ((A,), (), (B,))


def test_an_eligible_leader_back_from_a_clean_stop_stays_eligible() -> None:
    core = controller()
    lose(core, C, B)
    come_back(core, B, epoch=9, intact_since=B)
    assert of(core).eligible_leaders == (B,)


def test_a_member_that_restarted_uncleanly_leaves_the_isr() -> None:
    core = controller()
    come_back(core, C, epoch=9)
    assert of(core).isr == (A, B)


def test_a_member_back_from_a_clean_stop_stays_in_the_isr() -> None:
    core = controller()
    come_back(core, C, epoch=9, intact_since=C)
    assert of(core).isr == (A, B, C)


def test_a_replica_that_joined_after_its_restart_is_intact() -> None:
    core = controller()
    lose(core, C)
    come_back(core, C, epoch=9)
    settle(core, core.alter_partition(P, A, proposal(core, (A, -1), (B, 2), (C, 9)), "waiter"))
    lose(core, B)
    assert of(core).isr == (A, C)


# Comparing logs.


def all_restarted(rules: Rules = Rules(), settings: Settings = TWO) -> Controller:  # noqa: B008
    """ISR {A, B} lost power together, both are back; C was out of sync."""
    core = controller(settings, rules)
    lose(core, C, B, A)
    come_back(core, B, epoch=8)
    come_back(core, A, epoch=9)
    return core


def test_the_logs_are_compared_when_all_candidates_are_back() -> None:
    core = controller()
    lose(core, C, B, A)
    assert only(AskLogEnd, come_back(core, B, epoch=8)) == []
    asked = only(AskLogEnd, come_back(core, A, epoch=9))
    assert [one.broker for one in asked] == [B, A]
    assert asked[0].leader_epoch == of(core).leader_epoch


def test_candidates_receive_the_epoch_before_they_are_asked() -> None:
    core = controller()
    lose(core, C, B, A)
    come_back(core, B, epoch=8)
    kinds = [type(one) for one in come_back(core, A, epoch=9)]
    last_sent = max(place for place, kind in enumerate(kinds) if kind is SendStateTo)
    assert last_sent < kinds.index(AskLogEnd)


def test_the_best_log_leads() -> None:
    core = all_restarted()
    assert answer_end(core, A, 0, 10) == ()
    commands = answer_end(core, B, 0, 12)
    assert (of(core).leader, of(core).isr) == (B, (B,))
    assert rule_of(commands) == "best-log"


def test_a_later_epoch_is_better_than_a_longer_log() -> None:
    core = all_restarted()
    answer_end(core, A, 1, 10)
    answer_end(core, B, 0, 12)
    assert of(core).leader == A


def test_among_equal_logs_the_first_of_the_assignment_leads() -> None:
    core = all_restarted()
    answer_end(core, B, 0, 10)
    answer_end(core, A, 0, 10)
    assert of(core).leader == A


def test_after_the_comparison_the_others_stay_candidates() -> None:
    # Should the best one lose its tail now, another still has what was committed.
    core = all_restarted()
    answer_end(core, A, 0, 12)
    answer_end(core, B, 0, 12)
    assert (of(core).leader, of(core).last_known_eligible) == (A, (B,))
    lose(core, A)
    come_back(core, A, epoch=10)
    answer_end(core, A, 0, 3)
    answer_end(core, B, 0, 12)
    assert of(core).leader == B


def test_a_log_end_from_an_earlier_broker_epoch_does_not_count() -> None:
    core = all_restarted()
    answer_end(core, A, 0, 12)
    asked = only(AskLogEnd, come_back(core, A, epoch=10))
    assert [one.broker for one in asked] == [B, A]
    answer_end(core, B, 0, 10)
    assert of(core).leader == -1
    answer_end(core, A, 0, 8)
    assert of(core).leader == B


def test_a_candidate_that_goes_away_again_is_waited_for() -> None:
    core = all_restarted()
    answer_end(core, A, 0, 10)
    lose(core, B)
    assert answer_end(core, B, 0, 12) == ()
    assert of(core).leader == -1


def test_a_candidate_that_answered_and_died_is_not_elected() -> None:
    core = all_restarted()
    answer_end(core, A, 0, 12)
    lose(core, A)
    assert answer_end(core, B, 0, 10) == ()
    assert of(core).leader == -1


def test_other_registrations_do_not_start_the_comparison_again() -> None:
    core = all_restarted()
    answer_end(core, A, 0, 12)
    assert only(AskLogEnd, come_back(core, C, epoch=10)) == []
    answer_end(core, B, 0, 10)
    assert of(core).leader == A


def test_an_answer_from_another_epoch_means_nothing() -> None:
    core = all_restarted()
    epoch = LeaderEpoch(of(core).leader_epoch - 1)
    assert core.log_end_answered(P, A, epoch, end(0, 10)) == ()
    assert core.log_end_answered(P, B, epoch, end(0, 10)) == ()
    assert of(core).leader == -1


def test_an_unexpected_log_end_is_ignored() -> None:
    core = controller()
    assert core.log_end_answered(P, A, LeaderEpoch(0), end(0, 10)) == ()
    assert core.log_end_answered(TopicPartition("x", 0), A, LeaderEpoch(0), end(0, 10)) == ()


def test_a_log_end_from_another_broker_is_ignored() -> None:
    core = all_restarted()
    come_back(core, C, epoch=10)
    assert answer_end(core, C, 9, 99) == ()
    answer_end(core, A, 0, 10)
    answer_end(core, B, 0, 10)
    assert of(core).leader == A


def test_an_answer_while_the_store_writes_means_nothing() -> None:
    core = all_restarted()
    answer_end(core, A, 0, 10)
    assert core.reassign(P, (A, B, C, BrokerId(4)))
    assert core.log_end_answered(P, B, of(core).leader_epoch, end(0, 12)) == ()


def test_a_candidate_that_has_not_answered_is_asked_again() -> None:
    core = all_restarted()
    answer_end(core, A, 0, 10)
    assert core.ask_again() == (AskLogEnd(B, P, of(core).leader_epoch),)


def test_no_candidate_is_asked_once_there_is_a_leader() -> None:
    core = all_restarted()
    answer_end(core, A, 0, 10)
    answer_end(core, B, 0, 10)
    assert core.ask_again() == ()


def test_an_operator_may_stop_the_comparison_with_an_unclean_election() -> None:
    core = all_restarted()
    settle(core, core.elect(P, unclean=True))
    assert (of(core).leader, of(core).last_known_eligible) == (A, ())
    assert core.ask_again() == ()
    assert core.log_end_answered(P, B, of(core).leader_epoch, end(0, 10)) == ()


def test_without_the_comparison_the_first_one_up_leads() -> None:
    core = controller(rules=without("best-log-recovery"))
    lose(core, C, B, A)
    come_back(core, B, epoch=8)
    asked = only(AskLogEnd, come_back(core, A, epoch=9))
    assert [one.broker for one in asked] == [B]
    commands = answer_end(core, B, 0, 3)
    assert (of(core).leader, rule_of(commands)) == (B, "first-up")


def test_without_the_comparison_there_is_no_leader_while_no_candidate_is_up() -> None:
    core = controller(rules=without("best-log-recovery"))
    lose(core, C, B, A)
    come_back(core, A, epoch=8)
    assert of(core).last_known_eligible == (A,)
    lose(core, A)
    assert core.ask_again() == ()


# The majority rule, for comparison.


def test_a_majority_elects_the_best_log_of_a_majority() -> None:
    core = controller(rules=MAJORITY)
    asked = only(AskLogEnd, lose(core, A))
    assert [one.broker for one in asked] == [B, C]
    answer_end(core, B, 0, 10)
    commands = answer_end(core, C, 0, 12)
    assert (of(core).leader, of(core).isr) == (C, (A, B, C))
    assert rule_of(commands) == "majority"


def test_a_replica_that_comes_back_in_time_is_compared_too() -> None:
    core = controller(rules=MAJORITY)
    lose(core, A)
    asked = only(AskLogEnd, come_back(core, A, epoch=9))
    assert [one.broker for one in asked] == [A, B, C]
    answer_end(core, B, 0, 10)
    assert answer_end(core, C, 0, 10) == ()


def test_a_majority_needs_no_isr_to_go_on_with_its_leader() -> None:
    core = controller(rules=MAJORITY, up=(A, B))
    come_back(core, C, epoch=9)
    lose(core, A)
    answer_end(core, B, 0, 10)
    answer_end(core, C, 0, 12)
    assert (of(core).leader, of(core).isr) == (C, (A, B))
    assert core.broker_lost(B) == ()


def test_less_than_a_majority_elects_no_leader() -> None:
    core = controller(rules=MAJORITY)
    lose(core, B)
    assert of(core).leader == A
    assert only(AskLogEnd, lose(core, A)) == []
    assert of(core).leader == -1


@pytest.mark.parametrize("broker", [B, C])
def test_under_the_majority_rule_a_lost_follower_changes_nothing(broker: BrokerId) -> None:
    core = controller(rules=MAJORITY)
    assert core.broker_lost(broker) == ()
