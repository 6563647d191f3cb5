"""The controller: elections, states sent, and nothing before the store has confirmed it."""

from __future__ import annotations

import pytest

from holdfast.core import (
    Controller,
    SendStateTo,
    Settings,
    StateConfirmed,
    WriteState,
)
from holdfast.model import BrokerEpoch, BrokerId, ControllerEpoch, PartitionEpoch
from tests.unit.core.controllers import (
    MAJORITY,
    P,
    alive,
    come_back,
    controller,
    lose,
    of,
    only,
    rule_of,
    settle,
)
from tests.unit.core.support import ONE, TWO, A, B, C, without

UNCLEAN = Settings(min_insync_replicas=1, unclean_leader_election_enable=True)


# Creating.


def test_a_new_partition_is_written_before_its_state_is_sent() -> None:
    core = Controller(ControllerEpoch(1), [alive(A), alive(B)], {}, {})
    commands = core.create(P, (A, B), TWO)
    [write] = commands
    assert isinstance(write, WriteState)
    assert (write.state.leader, write.state.isr, write.state.leader_epoch) == (A, (A, B), 0)
    confirmed = core.store_confirmed(P)
    assert [one.broker for one in only(SendStateTo, confirmed)] == [A, B]
    assert rule_of(confirmed) == "created"


def test_dead_replicas_of_a_new_partition_are_not_in_its_isr() -> None:
    core = controller(up=(B, C))
    assert (of(core).leader, of(core).isr) == (B, (B, C))


def test_a_new_partition_without_a_living_replica_has_no_leader() -> None:
    core = controller(up=())
    assert (of(core).leader, of(core).isr) == (-1, ())


def test_a_broker_that_registers_during_a_creation_receives_the_state_afterwards() -> None:
    core = Controller(ControllerEpoch(1), [alive(A)], {}, {})
    core.create(P, (A, B), ONE)
    assert core.broker_registered(alive(B)) == ()
    assert [one.broker for one in only(SendStateTo, core.store_confirmed(P))] == [A, B]


# Electing.


def test_the_first_living_member_of_the_assignment_is_elected() -> None:
    core = controller()
    commands = lose(core, A)
    state = of(core)
    assert (state.leader, state.leader_epoch, state.isr) == (B, 1, (B, C))
    assert rule_of(commands) == "isr"
    assert [one.broker for one in only(SendStateTo, commands)] == [B, C]


def test_the_order_is_the_assignments_and_not_the_isrs() -> None:
    core = controller(replicas=(C, A, B))
    lose(core, C)
    assert of(core).leader == A


def test_a_lost_follower_leaves_the_isr_and_the_leader_stays_in_its_epoch() -> None:
    core = controller()
    lose(core, B)
    state = of(core)
    assert (state.leader, state.leader_epoch, state.isr) == (A, 0, (A, C))


def test_nothing_is_sent_before_the_store_has_confirmed() -> None:
    core = controller()
    commands = core.broker_lost(A)
    assert [type(command) for command in commands] == [WriteState]
    assert of(core).leader == A
    first, *_ = core.store_confirmed(P)
    assert isinstance(first, StateConfirmed)
    assert (first.before.leader, first.after.leader) == (A, B)


def test_what_happens_while_the_store_writes_is_found_afterwards() -> None:
    core = controller()
    core.broker_lost(A)
    assert core.broker_lost(B) == ()
    commands = settle(core, core.store_confirmed(P))
    assert of(core).leader == C
    # B never receives its election, and C receives only the result.
    sent = only(SendStateTo, commands)
    assert [(one.broker, one.state.leader) for one in sent] == [(C, C)]


def test_a_session_that_ended_before_the_present_one_began_means_nothing() -> None:
    core = controller()
    come_back(core, A, epoch=9, intact_since=A)
    assert core.broker_lost(A, BrokerEpoch(1)) == ()
    assert core.broker_lost(BrokerId(99)) == ()
    assert A in core.brokers


def test_without_a_clean_candidate_the_partition_goes_offline_in_a_new_epoch() -> None:
    core = controller(ONE)
    commands = lose(core, B, C, A)
    state = of(core)
    assert (state.leader, state.leader_epoch, state.isr) == (-1, 1, ())
    assert rule_of(commands) == "none"


def test_a_partition_that_is_offline_is_not_written_again() -> None:
    core = controller(ONE)
    lose(core, A, B, C)
    version = of(core).partition_epoch
    come_back(core, 4, epoch=4)
    assert of(core).partition_epoch == version


def test_an_unclean_election_takes_any_living_replica_alone() -> None:
    core = controller(UNCLEAN)
    lose(core, C, B)
    come_back(core, C, epoch=9)
    commands = lose(core, A)
    state = of(core)
    assert (state.leader, state.isr, state.eligible_leaders) == (C, (C,), ())
    assert rule_of(commands) == "unclean"


def test_with_unclean_off_the_same_partition_waits_for_its_member() -> None:
    core = controller(ONE)
    lose(core, C, B)
    come_back(core, C, epoch=9)
    lose(core, A)
    assert of(core).leader == -1
    come_back(core, A, epoch=10, intact_since=A)
    assert (of(core).leader, of(core).isr) == (A, (A,))


def test_before_kip_966_the_last_member_stayed_in_the_isr() -> None:
    core = controller(ONE, without("eligible-leaders"))
    lose(core, C, B, A)
    assert (of(core).leader, of(core).isr) == (-1, (A,))
    come_back(core, A, epoch=9)
    assert of(core).leader == A


# A broker that comes back.


def test_a_broker_that_registers_again_receives_its_partitions() -> None:
    core = controller()
    lose(core, C)
    sent = only(SendStateTo, come_back(core, C, epoch=9))
    assert [one.broker for one in sent] == [C]
    assert sent[0].state == of(core)


def test_a_leader_back_before_its_session_ended_leads_only_in_a_new_epoch() -> None:
    # It may have lost records of that epoch and would write others at their offsets.
    core = controller()
    commands = come_back(core, A, epoch=9)
    state = of(core)
    assert (state.leader, state.leader_epoch) == (B, 1)
    assert A not in state.isr
    assert all(one.state.leader != A for one in only(SendStateTo, commands))


def test_a_leader_back_from_a_clean_stop_is_elected_again() -> None:
    core = controller()
    come_back(core, A, epoch=9, intact_since=A)
    state = of(core)
    assert (state.leader, state.leader_epoch, state.isr) == (A, 1, (A, B, C))


def test_a_replica_that_lost_its_log_during_its_election_never_leads() -> None:
    # B is designated; while the store writes, B restarts without its tail.
    core = controller()
    assert core.elect(P, B)
    assert core.broker_registered(alive(B, 9)) == ()
    commands = settle(core, core.store_confirmed(P))
    assert (of(core).leader, of(core).isr) == (A, (A, C))
    assert all(one.state.leader != B for one in only(SendStateTo, commands))


def test_a_broker_that_hosts_nothing_receives_nothing() -> None:
    assert controller().broker_registered(alive(4)) == ()


# Another controller.


def test_a_new_controller_sends_all_states_and_continues_the_old_ones_work() -> None:
    old = controller()
    new = Controller(ControllerEpoch(2), [alive(B), alive(C)], {P: of(old)}, {P: TWO})
    commands = settle(new, new.start())
    assert of(new).leader == B
    assert [one.broker for one in only(SendStateTo, commands)] == [B, C]


def test_a_new_controller_with_nothing_to_do_writes_nothing() -> None:
    old = controller()
    everyone = [alive(A), alive(B), alive(C)]
    new = Controller(ControllerEpoch(2), everyone, {P: of(old)}, {P: TWO})
    commands = new.start()
    assert only(WriteState, commands) == []
    assert len(only(SendStateTo, commands)) == 3


def test_a_lost_compare_and_set_adopts_and_sends_the_stored_state() -> None:
    core = controller()
    core.broker_lost(A)
    theirs = of(core)._replace(leader=C, isr=(B, C), partition_epoch=PartitionEpoch(9))
    commands = core.store_refused(P, theirs)
    assert of(core) == theirs
    assert [one.broker for one in only(SendStateTo, commands)] == [B, C]


# Controlled shutdown.


def shut_down(core: Controller, broker: int) -> None:
    settle(core, core.shutdown_asked(BrokerId(broker), BrokerEpoch(broker)))


def test_a_controlled_shutdown_moves_the_leadership_first() -> None:
    core = controller()
    shut_down(core, A)
    state = of(core)
    assert (state.leader, state.leader_epoch, state.isr) == (B, 1, (B, C))


def test_a_controlled_shutdown_takes_a_follower_out_of_the_isr() -> None:
    core = controller()
    shut_down(core, C)
    state = of(core)
    assert (state.leader, state.leader_epoch, state.isr) == (A, 0, (A, B))


def test_the_last_member_keeps_its_leadership_when_it_shuts_down() -> None:
    core = controller(ONE)
    lose(core, B, C)
    assert core.shutdown_asked(A, BrokerEpoch(1)) == ()
    assert of(core).leader == A


def test_a_broker_outside_the_isr_has_nothing_to_move() -> None:
    core = controller()
    lose(core, C)
    come_back(core, C, epoch=9)
    assert core.shutdown_asked(C, BrokerEpoch(9)) == ()


def test_a_broker_that_shuts_down_is_not_elected() -> None:
    core = controller()
    shut_down(core, A)
    shut_down(core, B)
    lose(core, C)
    assert of(core).leader == -1


@pytest.mark.parametrize(("broker", "epoch"), [(99, 1), (1, 8)])
def test_a_shutdown_of_an_unknown_broker_or_earlier_epoch_moves_nothing(
    broker: int, epoch: int
) -> None:
    core = controller()
    assert core.shutdown_asked(BrokerId(broker), BrokerEpoch(epoch)) == ()
    assert not core.brokers[A].shutting_down


def test_a_shutdown_asked_while_the_store_writes_follows_afterwards() -> None:
    core = controller(Settings(min_insync_replicas=1))
    core.broker_lost(C)
    assert core.shutdown_asked(A, BrokerEpoch(1)) == ()
    settle(core, core.store_confirmed(P))
    assert (of(core).leader, of(core).isr) == (B, (B,))


def test_under_the_majority_rule_a_shutdown_moves_nothing() -> None:
    # Being in the ISR says nothing there: the next in the assignment may lack committed records.
    core = controller(rules=MAJORITY)
    assert core.shutdown_asked(A, BrokerEpoch(1)) == ()


# Asked elections.


def test_the_preferred_leader_leads_again_when_asked() -> None:
    core = controller()
    settle(core, core.elect(P, B))
    assert of(core).leader == B
    commands = settle(core, core.elect(P))
    assert (of(core).leader, of(core).leader_epoch) == (A, 2)
    assert rule_of(commands) == "preferred"


def test_a_designated_member_leads_when_asked() -> None:
    core = controller()
    assert rule_of(settle(core, core.elect(P, C))) == "designated"
    assert (of(core).leader, of(core).isr) == (C, (A, B, C))


def test_a_current_leader_is_not_elected_again() -> None:
    assert controller().elect(P) == ()


def test_a_replica_that_is_not_in_sync_is_not_preferred() -> None:
    core = controller()
    lose(core, A)
    come_back(core, A, epoch=9)
    assert core.elect(P) == ()


def test_a_dead_broker_is_not_designated() -> None:
    core = controller()
    lose(core, C)
    assert core.elect(P, C) == ()


def test_a_broker_that_shuts_down_is_not_designated_though_still_in_the_isr() -> None:
    core = controller()
    core.shutdown_asked(B, BrokerEpoch(2))
    core.store_refused(P, of(core))  # Its leaving did not get into the store.
    assert B in of(core).isr
    assert core.elect(P, B) == ()


def test_no_election_is_made_while_the_store_writes() -> None:
    core = controller()
    core.broker_lost(C)
    assert core.elect(P, B) == ()


def test_an_unclean_election_happens_only_without_a_leader() -> None:
    core = controller(ONE)
    assert core.elect(P, unclean=True) == ()
    lose(core, C, B)
    come_back(core, C, epoch=9)
    lose(core, A)
    settle(core, core.elect(P, unclean=True))
    assert (of(core).leader, of(core).isr) == (C, (C,))


def test_an_unclean_election_without_living_replicas_is_none() -> None:
    core = controller(ONE)
    lose(core, A, B, C)
    assert core.elect(P, unclean=True) == ()


def test_under_the_majority_rule_no_leader_is_elected_without_comparing_logs() -> None:
    core = controller(rules=MAJORITY)
    assert core.elect(P, B) == ()
