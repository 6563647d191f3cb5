"""Broker registrations: epochs, incarnations, and what survives which kind of end."""

from __future__ import annotations

import pytest

from holdfast.core import (
    BrokerIncarnation,
    CleanShutdown,
    ControllerFact,
    Guards,
    Judgement,
    Registration,
    is_current,
)
from holdfast.model import NO_BROKER_EPOCH, BrokerEpoch, ControllerEpoch
from tests.unit.core.support import A, B


def broker_incarnation(
    incarnation: int = 1, shutdown: CleanShutdown | None = None
) -> BrokerIncarnation:
    return BrokerIncarnation(incarnation, shutdown, Guards())


def registered(epoch: int, shutdown: CleanShutdown | None = None) -> BrokerIncarnation:
    broker = broker_incarnation(shutdown=shutdown)
    assert broker.registration_answered(1, BrokerEpoch(epoch))
    return broker


def test_a_broker_has_no_epoch_before_it_is_registered() -> None:
    assert broker_incarnation().broker_epoch == -1


def test_a_registration_gives_it_one() -> None:
    assert registered(5).broker_epoch == 5


def test_an_answer_to_an_earlier_incarnation_is_not_for_us() -> None:
    broker = broker_incarnation(incarnation=2)
    assert not broker.registration_answered(1, BrokerEpoch(5))
    assert broker.broker_epoch == -1


def test_without_that_guard_a_broker_speaks_with_a_dead_ones_epoch() -> None:
    guards = Guards().without("registration-incarnation")
    broker = BrokerIncarnation(2, None, guards)
    assert broker.registration_answered(1, BrokerEpoch(5))


@pytest.mark.parametrize("late", [4, 5])
def test_a_late_answer_does_not_take_the_epoch_back(late: int) -> None:
    broker = registered(5)
    assert not broker.registration_answered(1, BrokerEpoch(late))
    assert broker.broker_epoch == 5


def test_a_newer_answer_counts() -> None:
    broker = registered(5)
    assert broker.registration_answered(1, BrokerEpoch(6))
    assert broker.broker_epoch == 6


# What it still holds.


def test_after_a_crash_it_is_intact_from_its_new_epoch_on() -> None:
    assert registered(5).intact_since == 5


def test_after_a_clean_shutdown_it_is_intact_since_before() -> None:
    left = registered(5).shut_down_cleanly()
    assert left == (5, 5)
    assert registered(8, left).intact_since == 5


def test_a_chain_of_clean_shutdowns_keeps_its_beginning() -> None:
    left = registered(8, registered(5).shut_down_cleanly()).shut_down_cleanly()
    assert left == (8, 5)


def test_a_broker_stopped_before_it_was_registered_left_nothing_to_count_on() -> None:
    left = broker_incarnation().shut_down_cleanly()
    assert registered(8, left).intact_since == 8


def test_a_lost_session_is_not_a_lost_log() -> None:
    broker = registered(5)
    broker.session_lost()
    assert broker.broker_epoch == -1
    broker.registration_answered(1, BrokerEpoch(7))
    assert (broker.broker_epoch, broker.intact_since) == (7, 5)


@pytest.mark.parametrize(
    ("member_epoch", "intact"), [(4, False), (5, True), (8, True), (-1, False)]
)
def test_a_member_is_intact_if_it_joined_after_its_last_unclean_start(
    member_epoch: int, intact: bool
) -> None:
    registration = Registration(A, BrokerEpoch(8), BrokerEpoch(5))
    assert registration.is_intact(BrokerEpoch(member_epoch)) is intact


# Controllers.


def test_a_confirmed_controller_is_never_replaced_by_an_older_one() -> None:
    broker = broker_incarnation()
    broker.confirm_controller(ControllerFact(ControllerEpoch(3), A))
    broker.confirm_controller(ControllerFact(ControllerEpoch(2), B))
    assert broker.controller == (3, A)


def test_a_made_up_epoch_is_not_kept() -> None:
    broker = broker_incarnation()
    broker.confirm_controller(ControllerFact(ControllerEpoch(3), A))
    epoch = ControllerEpoch(1_000_000)
    assert broker.judge_controller(B, epoch, is_newest=False) is Judgement.ASK_STORE
    assert broker.judge_controller(B, epoch, is_newest=True) is Judgement.REFUSE
    assert broker.judge_controller(A, ControllerEpoch(3), is_newest=False) is Judgement.OBEY


def test_a_command_for_another_registration_is_not_for_us() -> None:
    broker = broker_incarnation()
    assert not broker.is_addressed(NO_BROKER_EPOCH), "it has none yet"
    broker = registered(5)
    found = [epoch for epoch in (-1, 4, 5, 6) if broker.is_addressed(BrokerEpoch(epoch))]
    assert found == [5]


def test_a_request_counts_only_from_the_present_registration() -> None:
    brokers = {A: Registration(A, BrokerEpoch(5), BrokerEpoch(5))}
    assert is_current(brokers, A, BrokerEpoch(5))
    assert not is_current(brokers, A, BrokerEpoch(4))
    assert not is_current(brokers, B, BrokerEpoch(5))
