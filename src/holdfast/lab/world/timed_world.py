"""A world with its own clock: messages take time, sessions need heartbeats, timers fire.

A scenario moves a world step by step. Seeded runs and fault schedules build on this class instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

from holdfast.core import Rules, Settings
from holdfast.lab.world.broker import SimBroker
from holdfast.lab.world.messages import Envelope
from holdfast.lab.world.world import STORE, World
from holdfast.model import NO_BROKER_EPOCH

SESSION_TIMEOUT_MS: Final = 600
HEARTBEAT_MS: Final = 200
SOCKET_RETRY_MS: Final = 100


class TimedWorld(ABC):
    """Drives a world; a subclass decides when each message arrives."""

    def __init__(self, names: Sequence[str], settings: Settings, rules: Rules) -> None:
        self.world = World(names, settings, rules)
        self.world.flows_immediately = False
        self.world.checkpoints_immediately = False
        self._last_heartbeat_ms = dict.fromkeys(names, 0)
        self._link_busy_until: dict[tuple[str, str], int] = {}

    def begin(self) -> None:
        """From now on messages arrive by themselves."""
        for envelope in list(self.world.network.pending):
            self.schedule(envelope)
        self.world.network.on_send = self.schedule

    @abstractmethod
    def schedule(self, envelope: Envelope) -> None:
        """A message is sent: decide when, whether and how often it arrives."""

    def every(self, period_ms: int, action: Callable[[], None]) -> None:
        """Repeat an action."""

        def again() -> None:
            action()
            self.world.later(period_ms, again)

        self.world.later(period_ms, again)

    def start(self, broker: SimBroker) -> None:
        """Start a broker that is down."""
        if not broker.alive:
            broker.start()

    def resume(self, broker: SimBroker) -> None:
        """Resume a paused broker."""
        if broker.alive and broker.paused:
            broker.resume()
            broker.maybe_fetch()

    def in_order(self, envelope: Envelope, delay_ms: int) -> int:
        """The delay that keeps the messages of a link in order, as a connection does."""
        link = (envelope.source, envelope.target)
        now_ms = self.world.now_ms
        arrival = max(now_ms + delay_ms, self._link_busy_until.get(link, 0))
        self._link_busy_until[link] = arrival
        return arrival - now_ms

    def deliver(self, envelope: Envelope) -> None:
        """Deliver a message; while its target is paused, it waits in a socket buffer."""
        if not self.world.deliver(envelope) and envelope in self.world.network.pending:
            self.world.later(SOCKET_RETRY_MS, lambda: self.deliver(envelope))

    def heartbeats(self) -> None:
        """Renew or expire the sessions; call it every HEARTBEAT_MS."""
        world = self.world
        for name, broker in world.brokers.items():
            registered = broker.id in world.store.sessions
            reaches = not (
                world.network.is_disconnected(name, STORE)
                or world.network.is_disconnected(STORE, name)
            )
            if broker.alive and not broker.paused and reaches:
                self._last_heartbeat_ms[name] = world.now_ms
                known = world.store.sessions[broker.id].broker_epoch if registered else -1
                if broker.incarnation.broker_epoch not in (known, NO_BROKER_EPOCH):
                    broker.session_lost()
                broker.register_if_needed()
            elif registered and world.now_ms - self._last_heartbeat_ms[name] > SESSION_TIMEOUT_MS:
                world.expire_session(name)

    def checkpoint(self) -> None:
        """Checkpoint every high watermark."""
        for broker in self.world.brokers.values():
            if broker.alive:
                broker.disk.high_watermark_checkpoint = broker.replica.log.high_watermark
