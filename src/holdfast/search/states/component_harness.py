"""The world as one component sees it: it sends into the void, and hears only what it is given.

A step of the search runs one real broker, or the real controller with its store, on one input. What
it sends and reports is noted here and becomes the step's result. So the result depends on the
component and its input alone, and needs to be worked out only once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.core import Rules, Settings
from holdfast.lab.judge.invariants import Invariants
from holdfast.lab.world.broker import SimBroker
from holdfast.lab.world.client_history import Ledger
from holdfast.lab.world.messages import Payload
from holdfast.lab.world.network import Network
from holdfast.lab.world.recorder import Recorder
from holdfast.lab.world.store import SimStore
from holdfast.lab.world.world import World
from holdfast.model import BrokerId, Offset, TopicPartition

Sent = tuple[str, str, Payload]


class _Silent(Recorder):
    """Nobody reads the trace of a step; the story is told when it is played again."""

    def emit(
        self, kind: str, broker: int | None = None, broker_epoch: int | None = None, **numbers: Any
    ) -> int:
        del kind, broker, broker_epoch, numbers
        return 0


class Stand(World):
    """A world with nobody in it but the component that runs now."""

    def __init__(self, names: Sequence[str], settings: Settings, rules: Rules) -> None:
        # Not World's: nothing begins here, and no message is ever under way.
        self.settings = settings
        self.rules = rules
        self.partition = TopicPartition("events", 0)
        self.recorder = _Silent(str(self.partition))
        self.network = Network()
        self.store = SimStore()
        self.ledger = Ledger()
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
        """Whoever is the controller, as far as the component knows."""
        return self.newest_controller

    def send(self, source: str, target: str, payload: Payload) -> None:
        """Note what was sent."""
        self.sent.append((source, target, payload))

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Time does not pass in a step; what a timer would do is an action of the search."""

    def on_high_watermark(self, broker: BrokerId, was: Offset, high_watermark: Offset) -> None:
        """Note what the replica that runs now takes for committed."""
        del broker
        self.committed.append((was, high_watermark))

    def clear(self) -> None:
        """Before a step."""
        self.sent = []
        self.committed = []
        self.invariants.lossy.clear()
        self.invariants.unclean = False
