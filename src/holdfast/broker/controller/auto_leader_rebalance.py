"""Moves leadership back to preferred leaders when a broker has lost too much of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.core import Controller
from holdfast.model import BrokerId, TopicPartition

if TYPE_CHECKING:
    from holdfast.broker.controller.service import ControllerService


def imbalanced(core: Controller, percentage: int) -> Iterable[TopicPartition]:
    """The partitions to move back: those of brokers that lead too few of their preferred ones."""
    preferred: dict[BrokerId, list[TopicPartition]] = {}
    for partition, state in core.partitions.items():
        preferred.setdefault(state.replicas[0], []).append(partition)
    for broker, partitions in preferred.items():
        away = [one for one in partitions if core.partitions[one].leader != broker]
        if broker in core.brokers and 100 * len(away) > percentage * len(partitions):
            yield from (
                one
                for one in away
                if not core.partitions[one].adding and not core.partitions[one].removing
            )


class Rebalancer:
    """Checks every leader.imbalance.check.interval.seconds."""

    def __init__(self, service: ControllerService) -> None:
        self._service = service
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Check after the first interval, and from then on."""
        settings = self._service.host.configs.settings
        self._timer = self._service.host.loop.call_later(
            settings.leader_imbalance_check_interval_seconds, self._look
        )

    def close(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        service, settings = self._service, self._service.host.configs.settings
        if settings.auto_leader_rebalance_enable:
            percentage = settings.leader_imbalance_per_broker_percentage
            for partition in tuple(imbalanced(service.core, percentage)):
                service.run(service.core.elect(partition))
        self.start()
