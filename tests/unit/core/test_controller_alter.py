"""AlterPartition: accepted only for the current partition epoch, and for live brokers."""

from __future__ import annotations

from holdfast.core import AnswerAlter, Commands, Controller, ProposeIsr, SendStateTo, WriteState
from holdfast.model import BrokerEpoch, BrokerId, ErrorCode, LeaderEpoch, TopicPartition
from tests.unit.core.controllers import (
    P,
    alive,
    come_back,
    controller,
    lose,
    of,
    only,
    proposal,
    settle,
)
from tests.unit.core.support import A, B, C, without


def alter(core: Controller, asked: ProposeIsr, leader: int = A) -> Commands:
    return core.alter_partition(P, BrokerId(leader), asked, "waiter")


def error_of(commands: Commands) -> ErrorCode:
    [answer] = only(AnswerAlter, commands)
    assert answer.waiter == "waiter"
    return answer.error


def without_c(*guards_out: str) -> Controller:
    """ISR {A, B}; C is back in broker epoch 9 after a crash."""
    core = controller(rules=without(*guards_out))
    lose(core, C)
    come_back(core, C, epoch=9)
    assert of(core).isr == (A, B)
    return core


# Accepted.


def test_an_accepted_proposal_is_answered_when_the_store_has_it() -> None:
    core = controller()
    commands = alter(core, proposal(core, (A, -1), (B, 2)))
    assert [type(command) for command in commands] == [WriteState]
    done = core.store_confirmed(P)
    assert error_of(done) is ErrorCode.NONE
    assert only(AnswerAlter, done)[0].state == of(core)
    assert (of(core).isr, of(core).partition_epoch) == ((A, B), 2)
    assert [one.broker for one in only(SendStateTo, done)] == [A, B, C]


def test_a_joiner_in_its_current_broker_epoch_is_accepted() -> None:
    core = without_c()
    settle(core, alter(core, proposal(core, (A, -1), (B, 2), (C, 9))))
    assert of(core).isr == (A, B, C)
    assert dict(of(core).member_epochs)[C] == 9


def test_a_member_that_has_not_fetched_in_this_epoch_needs_no_broker_epoch() -> None:
    core = controller()
    settle(core, alter(core, proposal(core, (A, -1), (C, -1))))
    assert of(core).isr == (A, C)


# Refused: who asks, and about which version.


def test_a_deposed_leader_is_fenced() -> None:
    core = controller()
    asked = proposal(core, (A, -1))
    lose(core, A)
    assert error_of(alter(core, asked)) is ErrorCode.FENCED_LEADER_EPOCH


def test_only_the_leader_may_propose() -> None:
    core = controller()
    asked = proposal(core, (A, -1), (B, 2))
    assert error_of(alter(core, asked, leader=B)) is ErrorCode.FENCED_LEADER_EPOCH


def test_a_proposal_from_another_epoch_of_the_same_leader_is_fenced() -> None:
    core = controller()
    asked = proposal(core, (A, -1))._replace(leader_epoch=LeaderEpoch(7))
    assert error_of(alter(core, asked)) is ErrorCode.FENCED_LEADER_EPOCH


def test_a_proposal_with_an_older_partition_epoch_is_refused_with_the_stored_state() -> None:
    core = controller()
    asked = proposal(core, (A, -1), (B, 2))
    lose(core, C)
    commands = alter(core, asked)
    assert error_of(commands) is ErrorCode.INVALID_UPDATE_VERSION
    assert only(AnswerAlter, commands)[0].state == of(core)


def test_without_that_guard_an_old_proposal_undoes_what_was_agreed_since() -> None:
    core = controller(rules=without("isr-change-partition-epoch"))
    delayed = proposal(core, (A, -1), (B, 2), (C, 3))
    settle(core, alter(core, proposal(core, (A, -1), (B, 2))))
    assert of(core).isr == (A, B)
    settle(core, alter(core, delayed))
    assert of(core).isr == (A, B, C)


def test_a_proposal_for_an_unknown_partition_is_refused() -> None:
    core = controller()
    other = TopicPartition("other", 0)
    commands = core.alter_partition(other, A, proposal(core, (A, -1)), "waiter")
    assert commands == (AnswerAlter("waiter", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),)


def test_a_member_that_is_no_replica_is_refused() -> None:
    core = controller()
    asked = proposal(core, (A, -1), (4, 4))
    assert error_of(alter(core, asked)) is ErrorCode.INVALID_REQUEST


# Refused: who is proposed.


def refusal_of(core: Controller, asked: ProposeIsr) -> ErrorCode:
    """Refused, with a new partition epoch, so that a copy of the same proposal is refused too."""
    before = of(core)
    done = settle(core, alter(core, asked))
    after = of(core)
    assert after.isr == before.isr
    assert after.partition_epoch == before.partition_epoch + 1
    assert error_of(alter(core, asked)) is ErrorCode.INVALID_UPDATE_VERSION
    return error_of(done)


def test_a_dead_joiner_is_refused() -> None:
    core = controller()
    lose(core, C)
    asked = proposal(core, (A, -1), (B, 2), (C, 3))
    assert refusal_of(core, asked) is ErrorCode.INELIGIBLE_REPLICA


def test_a_joiner_that_shuts_down_is_refused() -> None:
    # KIP-841: the leader still sees its fetches.
    core = without_c()
    core.shutdown_asked(C, BrokerEpoch(9))
    asked = proposal(core, (A, -1), (B, 2), (C, 9))
    assert refusal_of(core, asked) is ErrorCode.INELIGIBLE_REPLICA


def test_a_member_that_shuts_down_may_stay_in_a_proposal() -> None:
    core = controller()
    core.shutdown_asked(B, BrokerEpoch(2))
    core.store_refused(P, of(core))  # Its leaving did not get into the store.
    settle(core, alter(core, proposal(core, (A, -1), (B, 2))))
    assert of(core).isr == (A, B)


def test_a_joiner_of_an_earlier_broker_epoch_is_refused() -> None:
    # KIP-903: it fetched at the end, then restarted with an empty disk.
    core = without_c()
    asked = proposal(core, (A, -1), (B, 2), (C, 3))
    assert refusal_of(core, asked) is ErrorCode.INELIGIBLE_REPLICA


def test_without_that_guard_an_empty_disk_joins_the_isr() -> None:
    core = without_c("joiner-broker-epoch")
    settle(core, alter(core, proposal(core, (A, -1), (B, 2), (C, 3))))
    assert of(core).isr == (A, B, C)


def test_a_joiner_without_a_broker_epoch_is_refused() -> None:
    # It fetched after its session was lost, then died and came back empty.
    core = without_c()
    asked = proposal(core, (A, -1), (B, 2), (C, -1))
    assert refusal_of(core, asked) is ErrorCode.INELIGIBLE_REPLICA


def test_without_the_position_guard_a_joiner_needs_no_broker_epoch() -> None:
    # That guard is off: a replica that never fetched is proposed without a broker epoch.
    core = without_c("joiner-position-known")
    settle(core, alter(core, proposal(core, (A, -1), (B, 2), (C, -1))))
    assert of(core).isr == (A, B, C)


def test_a_member_of_an_earlier_broker_epoch_is_refused_until_it_fetches() -> None:
    core = controller()
    come_back(core, B, epoch=9, intact_since=B)
    assert of(core).isr == (A, B, C)
    asked = proposal(core, (A, -1), (B, 2))
    assert refusal_of(core, asked) is ErrorCode.INELIGIBLE_REPLICA


# While the store writes.


def test_a_proposal_waits_while_the_store_writes_and_is_judged_afterwards() -> None:
    core = controller()
    core.broker_lost(C)
    assert alter(core, proposal(core, (A, -1), (B, 2))) == ()
    assert error_of(core.store_confirmed(P)) is ErrorCode.INVALID_UPDATE_VERSION


def test_of_two_waiting_proposals_the_second_waits_for_the_first() -> None:
    core = controller()
    core.broker_lost(C)
    next_version = of(core).partition_epoch + 1
    for waiter in ("first", "second"):
        asked = proposal(core, (A, -1), version=next_version)
        assert core.alter_partition(P, A, asked, waiter) == ()
    assert only(AnswerAlter, core.store_confirmed(P)) == []
    answers = only(AnswerAlter, core.store_confirmed(P))
    assert [(one.waiter, one.error) for one in answers] == [
        ("first", ErrorCode.NONE),
        ("second", ErrorCode.INVALID_UPDATE_VERSION),
    ]


def test_a_lost_compare_and_set_returns_the_stored_state_to_the_proposer() -> None:
    core = controller()
    alter(core, proposal(core, (A, -1)))
    theirs = of(core)._replace(isr=(A, C))
    commands = core.store_refused(P, theirs)
    assert error_of(commands) is ErrorCode.INVALID_UPDATE_VERSION
    assert only(AnswerAlter, commands)[0].state == theirs


def test_a_joiner_that_restarts_while_the_store_writes_is_taken_out_again() -> None:
    core = without_c()
    alter(core, proposal(core, (A, -1), (B, 2), (C, 9)))
    assert core.broker_registered(alive(C, 10)) == ()
    settle(core, core.store_confirmed(P))
    assert of(core).isr == (A, B)
