"""Reassignment: add the new replicas; remove the old ones once those are in sync."""

from __future__ import annotations

from holdfast.core import Controller, SendStateTo, Settings, StopReplica
from holdfast.model import BrokerEpoch, BrokerId
from tests.unit.core.controllers import P, alive, controller, lose, of, only, proposal, settle
from tests.unit.core.support import ONE, TWO, A, B, C, D

E = BrokerId(5)


def five(settings: Settings = TWO) -> Controller:
    core = controller(settings)
    for broker in (D, E):
        core.broker_registered(alive(broker))
    return core


def join(core: Controller, *members: tuple[int, int]) -> None:
    leader = of(core).leader
    settle(core, core.alter_partition(P, leader, proposal(core, *members), "waiter"))


def test_new_replicas_are_added_before_old_ones_are_removed() -> None:
    core = five()
    commands = settle(core, core.reassign(P, (A, D, E)))
    state = of(core)
    assert state.replicas == (A, D, E, B, C)
    assert (state.adding, state.removing) == ((D, E), (B, C))
    assert (state.isr, state.leader, state.leader_epoch) == ((A, B, C), A, 0)
    assert [one.broker for one in only(SendStateTo, commands)] == [A, D, E, B, C]


def test_old_replicas_go_when_every_new_one_is_in_sync() -> None:
    core = five()
    settle(core, core.reassign(P, (A, D, E)))
    join(core, (A, -1), (B, 2), (C, 3), (D, 4))
    assert of(core).removing == (B, C)
    asked = proposal(core, (A, -1), (B, 2), (C, 3), (D, 4), (E, 5))
    core.alter_partition(P, A, asked, "waiter")
    commands = core.store_confirmed(P)
    state = of(core)
    assert (state.replicas, state.isr, state.removing) == ((A, D, E), (A, D, E), ())
    assert only(StopReplica, commands) == [(B, P), (C, P)]


def test_a_move_that_only_adds_ends_when_the_new_one_is_in_sync() -> None:
    core = five()
    settle(core, core.reassign(P, (A, B, C, D)))
    assert of(core).adding == (D,)
    join(core, (A, -1), (B, 2), (C, 3), (D, 4))
    assert (of(core).replicas, of(core).adding) == ((A, B, C, D), ())


def test_the_end_of_a_move_begins_a_new_epoch_also_under_the_same_leader() -> None:
    core = five()
    settle(core, core.reassign(P, (A, B)))
    assert (of(core).leader, of(core).leader_epoch) == (A, 1)


def test_a_leader_that_is_moved_away_hands_over_to_a_member() -> None:
    core = five()
    settle(core, core.reassign(P, (B, C)))
    state = of(core)
    assert (state.leader, state.leader_epoch, state.isr) == (B, 1, (B, C))


def test_a_move_waits_until_enough_of_the_target_are_in_sync() -> None:
    core = five()
    lose(core, C)
    settle(core, core.reassign(P, (B, C)))
    state = of(core)
    assert (state.replicas, state.isr, state.removing) == ((B, C, A), (A, B), (A,))


def test_a_reassignment_waits_while_all_candidates_shut_down() -> None:
    core = five(ONE)
    core.broker_lost(C)
    core.shutdown_asked(B, BrokerEpoch(2))
    core.brokers[B] = core.brokers[B]._replace(shutting_down=True)
    core.store_confirmed(P)
    core.store_refused(P, of(core))  # B's own move is refused: it is still in the ISR.
    assert of(core).isr == (A, B)
    settle(core, core.reassign(P, (B,)))
    state = of(core)
    assert (state.leader, state.isr, state.removing) == (A, (A, B), (A, C))


def test_a_planned_move_is_never_an_unclean_election() -> None:
    core = five(Settings(min_insync_replicas=1, unclean_leader_election_enable=True))
    core.brokers[B] = core.brokers[B]._replace(shutting_down=True)
    lose(core, C)
    settle(core, core.broker_registered(alive(C, 9)))
    settle(core, core.reassign(P, (B, C)))
    assert (of(core).leader, of(core).removing) == (A, (A,))


def test_a_removed_broker_that_is_dead_receives_no_stop_replica() -> None:
    core = five()
    lose(core, C)
    commands = settle(core, core.reassign(P, (A, B)))
    assert only(StopReplica, commands) == []


def test_a_move_is_not_begun_while_the_store_writes() -> None:
    core = five()
    core.broker_lost(C)
    assert core.reassign(P, (A, B)) == ()


def test_a_move_may_be_taken_back() -> None:
    core = five()
    settle(core, core.reassign(P, (A, D, E)))
    settle(core, core.reassign(P, (A, B, C)))
    state = of(core)
    assert (state.replicas, state.isr, state.adding, state.removing) == (
        (A, B, C),
        (A, B, C),
        (),
        (),
    )


def test_a_removed_replica_is_not_eligible() -> None:
    core = five()
    lose(core, C)
    settle(core, core.reassign(P, (A, D)))
    join(core, (A, -1), (B, 2), (D, 4))
    lose(core, D)
    state = of(core)
    assert (state.replicas, state.isr, state.eligible_leaders) == ((A, D), (A,), (D,))


def test_a_replaced_move_still_waits_for_what_the_first_was_adding() -> None:
    core = five()
    settle(core, core.reassign(P, (A, B, D)))
    settle(core, core.reassign(P, (A, D, E)))
    assert (of(core).adding, of(core).removing) == ((D, E), (B, C))
    join(core, (A, -1), (B, 2), (C, 3), (E, 5))
    assert of(core).adding == (D, E)


def test_moving_back_to_the_old_replicas_cancels() -> None:
    core = five()
    settle(core, core.reassign(P, (A, B, D)))
    commands = settle(core, core.reassign(P, (A, B, C)))
    assert (of(core).replicas, of(core).adding, of(core).removing) == ((A, B, C), (), ())
    assert [one.broker for one in only(StopReplica, commands)] == [D]
