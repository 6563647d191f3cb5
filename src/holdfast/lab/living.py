"""A world that lives by itself: messages take their time, sessions need heartbeats, timers fire.

Stories move a world by hand. Whoever lets one run (dice, a schedule of faults) builds on this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from holdfast.core import Rules, Settings
from holdfast.lab.broker import SimBroker
from holdfast.lab.messages import Envelope
from holdfast.lab.world import STORE, World
from holdfast.model import NO_BROKER_EPOCH

SESSION_TIMEOUT_MS: Final = 600
HEARTBEAT_MS: Final = 200
SOCKET_RETRY_MS: Final = 100
CHECKPOINT_MS: Final = 2_000


class Living:
    """Drives a world; `delay_ms` says how long a message needs."""

    def __init__(
        self,
        names: Sequence[str],
        settings: Settings,
        rules: Rules,
        delay_ms: Callable[[Envelope], int],
    ) -> None:
        self.world = World(names, settings, rules)
        self.world.flows_at_once = False
        self.world.checkpoints_at_once = False
        self._delay_ms = delay_ms
        self._heard = dict.fromkeys(names, 0)
        self._link_busy_until: dict[tuple[str, str], int] = {}

    def begin(self) -> None:
        """From now on messages arrive by themselves."""
        for envelope in list(self.world.network.pending):
            self._schedule(envelope)
        self.world.network.on_send = self._schedule
        self.every(HEARTBEAT_MS, self._heartbeats)
        self.every(CHECKPOINT_MS, self._checkpoint)

    def every(self, period_ms: int, action: Callable[[], None]) -> None:
        """Do something again and again."""

        def again() -> None:
            action()
            self.world.later(period_ms, again)

        self.world.later(period_ms, again)

    def start(self, broker: SimBroker) -> None:
        """Start a broker that is down."""
        if not broker.alive:
            broker.start()

    def resume(self, broker: SimBroker) -> None:
        """Let a broker that stands still go on."""
        if broker.alive and broker.paused:
            broker.resume()
            broker.maybe_fetch()

    def _schedule(self, envelope: Envelope) -> None:
        # A link is a connection: in order, or broken.
        world = self.world
        link = (envelope.source, envelope.target)
        arrival = world.now_ms + self._delay_ms(envelope)
        arrival = max(arrival, self._link_busy_until.get(link, 0))
        self._link_busy_until[link] = arrival
        world.later(arrival - world.now_ms, lambda: self._deliver(envelope))

    def _deliver(self, envelope: Envelope) -> None:
        if not self.world.deliver(envelope) and envelope in self.world.network.pending:
            # Its target stands still: the message waits in a socket buffer.
            self.world.later(SOCKET_RETRY_MS, lambda: self._deliver(envelope))

    def _heartbeats(self) -> None:
        world = self.world
        for name, broker in world.brokers.items():
            registered = broker.id in world.store.sessions
            reaches = not (world.network.is_cut(name, STORE) or world.network.is_cut(STORE, name))
            if broker.alive and not broker.paused and reaches:
                self._heard[name] = world.now_ms
                known = world.store.sessions[broker.id].broker_epoch if registered else -1
                if broker.life.broker_epoch not in (known, NO_BROKER_EPOCH):
                    broker.session_lost()
                broker.register_if_needed()
            elif registered and world.now_ms - self._heard[name] > SESSION_TIMEOUT_MS:
                world.expire_session(name)

    def _checkpoint(self) -> None:
        for broker in self.world.brokers.values():
            if broker.alive:
                broker.disk.high_watermark_checkpoint = broker.replica.log.high_watermark
