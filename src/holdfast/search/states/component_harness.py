"""Runs one component alone, and records what it sends and reports.

A step of the search runs one real broker, or the real controller with its store, on one input. What
it sends and reports becomes the step's result. So the result depends only on the component and its
input, and is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.core import Rules, Settings
from holdfast.lab.judge.invariants import Invariants
from holdfast.lab.world.broker import SimBroker
from holdfast.lab.world.client_history import ClientHistory
from holdfast.lab.world.messages import Payload
from holdfast.lab.world.network import Network
from holdfast.lab.world.recorder import Recorder
from holdfast.lab.world.store import SimStore
from holdfast.lab.world.world import World
from holdfast.model import BrokerId, Offset, TopicPartition

Sent = tuple[str, str, Payload]


class _Silent(Recorder):
    """Discards the trace of a step; a scenario that is played again has one."""

    def emit(
        self, kind: str, broker: int | None = None, broker_epoch: int | None = None, **numbers: Any
    ) -> int:
        del kind, broker, broker_epoch, numbers
        return 0


class Stand(World):
    """A world that contains only the component that runs now."""

    def __init__(self, names: Sequence[str], settings: Settings, rules: Rules) -> None:
        # World's own __init__ is not called: nothing starts here, and no message is in flight.
        self.settings = settings
        self.rules = rules
        self.partition = TopicPartition("events", 0)
        self.recorder = _Silent(str(self.partition))
        self.network = Network()
        self.store = SimStore(settings)
        self.history = ClientHistory()
        self.now_ms = 0
        self.flows_immediately = False
        self.checkpoints_immediately = True
        self.clients = {}
        self.held = {}
        self.controllers = []
        self.newest_controller = "controller-1"
        self.brokers = {
            name: SimBroker(self, BrokerId(place), name) for place, name in enumerate(names, 1)
        }
        self.invariants = Invariants(self)
        self.sent: list[Sent] = []
        self.committed: list[tuple[int, int]] = []

    @property
    def controller_name(self) -> str:
        """The controller's name, as given for this step."""
        return self.newest_controller

    def send(self, source: str, target: str, payload: Payload) -> None:
        """Record a sent message."""
        self.sent.append((source, target, payload))

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do nothing: time does not pass in a step; the search has actions for timers."""

    def on_high_watermark(self, broker: BrokerId, was: Offset, high_watermark: Offset) -> None:
        """Record the high watermark of the replica that runs now."""
        del broker
        self.committed.append((was, high_watermark))

    def clear(self) -> None:
        """Discard what the last step recorded."""
        self.sent = []
        self.committed = []
        self.invariants.lossy.clear()
        self.invariants.unclean = False
