"""Changes of settings: the store has no eligible leaders before it has a lower minimum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core import Controller, SendStateTo, StoreSettings, WriteState
from holdfast.model import PartitionEpoch, TopicPartition
from tests.unit.core.controllers import P, controller, lose, of, only, proposal, settle
from tests.unit.core.support import ONE, TWO, A, B, C, without

OTHER = P._replace(partition=1)


def below_the_minimum(core: Controller | None = None) -> Controller:
    """A leads alone, and C is eligible."""
    core = core or controller()
    lose(core, B, C)
    assert (of(core).isr, of(core).eligible_leaders) == ((A,), (C,))
    return core


def test_a_lower_minimum_is_stored_only_after_the_store_has_no_eligible_leaders() -> None:
    core = below_the_minimum()
    [write] = core.alter_settings({P.topic: ONE}, "waiter")
    assert isinstance(write, WriteState)
    assert (write.state.isr, write.state.eligible_leaders) == ((A,), ())
    *_, last = core.store_confirmed(P)
    assert last == StoreSettings("waiter")
    assert core.settings_stored() == ()
    assert core.settings[P] == ONE


def test_the_state_is_sent_before_the_settings_are_stored() -> None:
    core = below_the_minimum()
    commands = settle(core, core.alter_settings({P.topic: ONE}, "waiter"))
    kinds = [type(one) for one in commands if isinstance(one, SendStateTo | StoreSettings)]
    assert kinds == [SendStateTo, StoreSettings]


def test_meanwhile_the_controller_decides_by_the_lower_minimum() -> None:
    core = controller(replicas=(A, B, C))
    lose(core, C)
    assert core.alter_settings({P.topic: ONE}, "waiter") == (StoreSettings("waiter"),)
    lose(core, B)
    assert (of(core).isr, of(core).eligible_leaders) == ((A,), ())


def test_other_settings_hold_only_when_they_are_stored() -> None:
    core = controller()
    changed = replace(ONE, unclean_leader_election_enable=True)
    core.alter_settings({P.topic: changed}, "waiter")
    assert core.settings[P] == ONE
    core.settings_stored()
    assert core.settings[P] == changed


def test_a_write_in_flight_is_awaited_and_followed_by_the_removal() -> None:
    core = controller()
    lose(core, C)
    core.alter_partition(P, A, proposal(core, (A, -1)), "isr")
    assert core.alter_settings({P.topic: ONE}, "waiter") == ()
    first = core.store_confirmed(P)
    assert of(core).eligible_leaders == (B,), "decided by the higher minimum"
    assert only(StoreSettings, first) == []
    [write] = only(WriteState, first)
    assert write.state.eligible_leaders == ()
    assert only(StoreSettings, core.store_confirmed(P)) == [StoreSettings("waiter")]


def test_a_refused_removal_is_made_again_before_the_settings_are_stored() -> None:
    core = below_the_minimum()
    core.alter_settings({P.topic: ONE}, "waiter")
    newer = of(core)._replace(partition_epoch=PartitionEpoch(of(core).partition_epoch + 5))
    again = core.store_refused(P, newer)
    assert only(StoreSettings, again) == []
    [write] = only(WriteState, again)
    assert (write.expected, write.state.eligible_leaders) == (newer.partition_epoch, ())
    assert only(StoreSettings, core.store_confirmed(P)) == [StoreSettings("waiter")]


def two_partitions() -> Controller:
    core = controller()
    core.create(OTHER, (A, B, C), TWO)
    core.store_confirmed(OTHER)
    for broker in (B, C):
        for one in only(WriteState, core.broker_lost(broker)):
            core.store_confirmed(one.partition)
    return core


def test_the_settings_wait_for_every_partition_of_the_topics() -> None:
    core = two_partitions()
    core.alter_settings({P.topic: ONE}, "waiter")
    assert only(StoreSettings, core.store_confirmed(OTHER)) == []
    assert only(StoreSettings, core.store_confirmed(P)) == [StoreSettings("waiter")]


def test_the_settings_do_not_wait_for_a_deleted_partition() -> None:
    core = two_partitions()
    core.alter_settings({P.topic: ONE}, "waiter")
    core.store_confirmed(P)
    assert only(StoreSettings, core.forget(OTHER)) == [StoreSettings("waiter")]


def test_a_partition_created_meanwhile_has_no_eligible_leaders_by_the_old_minimum() -> None:
    core = controller()
    core.alter_settings({P.topic: ONE}, "waiter")
    core.create(OTHER, (A, B), TWO)
    core.store_confirmed(OTHER)
    assert core.settings[OTHER].min_insync_replicas == 1


def test_topics_that_are_not_named_keep_their_settings() -> None:
    core = controller()
    named = TopicPartition("named", 0)
    core.create(named, (A, B), TWO)
    core.store_confirmed(named)
    core.alter_settings({"named": ONE}, "waiter")
    core.settings_stored()
    assert (core.settings[P], core.settings[named]) == (TWO, ONE)


def test_a_higher_minimum_is_stored_first_and_then_begins_with_a_leader_epoch() -> None:
    core = controller(settings=ONE)
    assert core.alter_settings({P.topic: TWO}, "waiter") == (StoreSettings("waiter"),)
    assert core.settings[P] == ONE
    settle(core, core.settings_stored())
    assert (of(core).leader_epoch, core.settings[P]) == (1, TWO)


def test_after_an_abandoned_change_the_next_one_still_waits_for_the_store() -> None:
    """The first attempt timed out while the removal of the eligible leaders was in flight."""
    core = below_the_minimum()
    core.alter_settings({P.topic: ONE}, "first")
    core.settings_abandoned()
    assert core.alter_settings({P.topic: ONE}, "second") == ()
    assert only(StoreSettings, core.store_confirmed(P)) == [StoreSettings("second")]


def test_an_abandoned_change_is_not_stored_later() -> None:
    core = below_the_minimum()
    core.alter_settings({P.topic: ONE}, "waiter")
    core.settings_abandoned()
    assert only(StoreSettings, core.store_confirmed(P)) == []


def test_a_second_change_waits_for_the_first() -> None:
    core = controller()
    core.alter_settings({P.topic: ONE}, "first")
    with pytest.raises(AssertionError, match="in progress"):
        core.alter_settings({P.topic: TWO}, "second")


def test_without_the_guard_the_settings_are_stored_first() -> None:
    core = below_the_minimum(controller(rules=without("eligible-cleared-first")))
    assert core.alter_settings({P.topic: ONE}, "waiter") == (StoreSettings("waiter"),)
    assert of(core).eligible_leaders == (C,)
    settle(core, core.settings_stored())
    assert of(core).eligible_leaders == ()
