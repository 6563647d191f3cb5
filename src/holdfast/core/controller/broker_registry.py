"""Broker registrations: the controller's view of a broker, and the broker's view of itself.

A broker gets a new broker epoch each time it registers. `intact_since` is the first epoch of an
unbroken chain of clean shutdowns and starts: the broker still holds every record that it held in
that epoch or a later one. After a crash or a power failure, `intact_since` is the new epoch: the
two cannot be distinguished, and unflushed records may be gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.core.replica.command_confirmation import (
    NO_CONTROLLER,
    ControllerFact,
    Judgement,
    judge_controller,
)
from holdfast.core.rules import Guards
from holdfast.model import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, ControllerEpoch


class Registration(NamedTuple):
    """A broker with a live session in the coordination store."""

    broker: BrokerId
    broker_epoch: BrokerEpoch
    intact_since: BrokerEpoch
    shutting_down: bool = False

    def is_intact(self, member_epoch: BrokerEpoch) -> bool:
        """Whether the broker still holds the records that it held in this epoch."""
        return member_epoch != NO_BROKER_EPOCH and self.intact_since <= member_epoch


def is_current(
    brokers: Mapping[BrokerId, Registration], broker: BrokerId, broker_epoch: BrokerEpoch
) -> bool:
    """Whether a request comes from a broker's present registration, not from an earlier one."""
    known = brokers.get(broker)
    return known is not None and known.broker_epoch == broker_epoch


class CleanShutdown(NamedTuple):
    """What a clean shutdown leaves on the disk for the next start."""

    broker_epoch: BrokerEpoch
    intact_since: BrokerEpoch


class BrokerIncarnation:
    """One run of a broker process: its registration, and the controller that it obeys."""

    __slots__ = ("broker_epoch", "controller", "guards", "incarnation", "intact_since")

    broker_epoch: BrokerEpoch
    """-1 until a registration of this incarnation is answered."""
    controller: ControllerFact
    """The newest controller that the coordination store has confirmed. Its epoch never falls."""

    def __init__(self, incarnation: int, shutdown: CleanShutdown | None, guards: Guards) -> None:
        self.incarnation = incarnation
        self.guards = guards
        self.broker_epoch = NO_BROKER_EPOCH
        self.controller = NO_CONTROLLER
        self.started_after(shutdown)

    def started_after(self, shutdown: CleanShutdown | None) -> None:
        """The last shutdown, as soon as it is known; None if it was not clean."""
        self.intact_since = shutdown.intact_since if shutdown else NO_BROKER_EPOCH

    def registration_answered(self, incarnation: int, broker_epoch: BrokerEpoch) -> bool:
        """Adopt the assigned broker epoch; return whether the answer was for this incarnation.

        With an answer to an earlier incarnation, we would send requests with a dead broker's epoch.
        """
        if self.guards.registration_incarnation and incarnation != self.incarnation:
            return False
        if self.broker_epoch != NO_BROKER_EPOCH and broker_epoch <= self.broker_epoch:
            return False
        self.broker_epoch = broker_epoch
        if self.intact_since == NO_BROKER_EPOCH:
            self.intact_since = broker_epoch
        return True

    def session_lost(self) -> None:
        """The broker runs but must register again; its records are still intact."""
        self.broker_epoch = NO_BROKER_EPOCH

    def confirm_controller(self, fact: ControllerFact) -> None:
        """The store names this controller. An answer older than the known one is ignored."""
        if fact.epoch >= self.controller.epoch:
            self.controller = fact

    def is_addressed(self, broker_epoch: BrokerEpoch) -> bool:
        """Whether a command with this broker epoch was sent to our present registration."""
        return broker_epoch != NO_BROKER_EPOCH and broker_epoch == self.broker_epoch

    def judge_controller(
        self, broker: BrokerId, epoch: ControllerEpoch, *, is_newest: bool
    ) -> Judgement:
        """Whether this broker may command us in this epoch; see `command_confirmation`."""
        return judge_controller(broker, epoch, self.controller, is_newest=is_newest)

    def shut_down_cleanly(self) -> CleanShutdown:
        """What to leave on the disk."""
        return CleanShutdown(self.broker_epoch, self.intact_since)
