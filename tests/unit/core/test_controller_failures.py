"""Failed logs, deleted partitions, changed settings."""

from __future__ import annotations

from dataclasses import replace

from holdfast.core import AnswerAlter, SendStateTo, WriteState
from holdfast.model import BrokerEpoch, ErrorCode
from tests.unit.core.controllers import P, alive, controller, lose, of, only, proposal, settle
from tests.unit.core.support import ONE, TWO, A, B, C


def test_a_leader_whose_log_failed_is_replaced_and_receives_the_state() -> None:
    core = controller()
    commands = settle(core, core.replica_failed(P, A, BrokerEpoch(A)))
    assert (of(core).leader, of(core).isr, of(core).leader_epoch) == (B, (B, C), 1)
    assert [one.broker for one in only(SendStateTo, commands)] == [A, B, C]


def test_a_failure_counts_once_and_only_in_this_broker_epoch() -> None:
    core = controller()
    assert core.replica_failed(P, A, BrokerEpoch(77)) == ()
    settle(core, core.replica_failed(P, A, BrokerEpoch(A)))
    assert core.replica_failed(P, A, BrokerEpoch(A)) == ()
    assert core.replica_failed(P._replace(topic="other"), A, BrokerEpoch(A)) == ()


def test_a_failed_log_cannot_rejoin_until_its_broker_registers_again() -> None:
    core = controller()
    settle(core, core.replica_failed(P, C, BrokerEpoch(C)))
    asked = proposal(core, (A, -1), (B, 2), (C, 3))
    commands = settle(core, core.alter_partition(P, A, asked, "waiter"))
    assert [one.error for one in only(AnswerAlter, commands)] == [ErrorCode.INELIGIBLE_REPLICA]
    settle(core, core.broker_registered(alive(C, epoch=30)))
    asked = proposal(core, (A, -1), (B, 2), (C, 30))
    settle(core, core.alter_partition(P, A, asked, "waiter"))
    assert of(core).isr == (A, B, C)


def test_a_failure_during_a_write_is_seen_afterwards() -> None:
    core = controller()
    writes = core.alter_partition(P, A, proposal(core, (A, -1), (B, 2)), "waiter")
    assert core.replica_failed(P, A, BrokerEpoch(A)) == ()
    settle(core, writes)
    assert (of(core).leader, of(core).isr) == (B, (B,))


def test_a_deleted_partition_answers_the_waiting_proposals() -> None:
    core = controller()
    asked = proposal(core, (A, -1), (B, 2))
    core.alter_partition(P, A, asked, "first")
    core.alter_partition(P, A, asked, "second")
    assert core.is_pending(P)
    answers = only(AnswerAlter, core.forget(P))
    assert [one.waiter for one in answers] == ["first", "second"]
    assert {one.error for one in answers} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert not core.is_pending(P)
    assert core.broker_lost(A) == ()


def test_a_lower_minimum_ends_eligibility_in_the_store() -> None:
    core = controller()
    lose(core, B, C)
    assert (of(core).isr, of(core).eligible_leaders) == ((A,), (C,))
    [write] = core.settings_changed(P, ONE)
    assert isinstance(write, WriteState)
    assert (write.state.eligible_leaders, write.state.isr) == ((), (A,))
    core.store_confirmed(P)
    settle(core, core.settings_changed(P, TWO))
    assert of(core).eligible_leaders == ()


def test_a_lower_minimum_that_the_isr_still_misses_keeps_eligibility() -> None:
    core = controller(replace(TWO, min_insync_replicas=3))
    lose(core, B, C)
    assert of(core).eligible_leaders == (B, C)
    assert core.settings_changed(P, TWO) == ()


def test_without_a_member_the_eligible_stay_whatever_the_minimum() -> None:
    core = controller()
    lose(core, B, C, A)
    assert of(core).isr == ()
    assert core.settings_changed(P, ONE) == ()
    assert of(core).eligible_leaders


def test_a_higher_minimum_begins_with_a_new_leader_epoch() -> None:
    """In the old epoch the leader may still commit alone, so no replica is eligible by it."""
    core = controller(settings=ONE)
    settle(core, core.alter_partition(P, A, proposal(core, (A, -1), (B, 2)), "waiter"))
    epoch = of(core).leader_epoch
    commands = settle(core, core.settings_changed(P, TWO))
    assert (of(core).leader, of(core).isr, of(core).leader_epoch) == (A, (A, B), epoch + 1)
    assert [one.broker for one in only(SendStateTo, commands)] == [A, B, C]
    lose(core, B)
    assert of(core).eligible_leaders == (B,), "now the high watermark stands still without B"


def test_a_higher_minimum_waits_for_the_decision_under_way() -> None:
    core = controller(settings=ONE)
    writes = core.alter_partition(P, A, proposal(core, (A, -1)), "waiter")
    assert core.settings_changed(P, TWO) == (), "it waits"
    settle(core, writes)
    assert (of(core).isr, of(core).eligible_leaders) == ((A,), ()), "they left under the old one"
    assert of(core).leader_epoch == 1
