"""One run of one contender: traffic, the scheduled faults, then quiescence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Final

from holdfast.lab.judge.verdict import judge
from holdfast.lab.world.broker import SimBroker
from holdfast.lab.world.clients import SimProducer
from holdfast.lab.world.messages import Envelope
from holdfast.lab.world.timed_world import HEARTBEAT_MS, TimedWorld
from holdfast.lab.world.world import STORE
from holdfast.search.compare.schedule import Contender, Strike

SEND_EVERY_MS: Final = 40
RETRY_MS: Final = 100
DELAY_MS: Final = 2
QUIET_MS: Final = 10_000
CHECKPOINT_MS: Final = 2_000


class Trial(TimedWorld):
    """A world under steady traffic; a message takes about `DELAY_MS`, sometimes much longer."""

    def __init__(self, contender: Contender, names: Sequence[str], jitter: int | None) -> None:
        """`jitter`: the seed of slow messages; None: all take the same time."""
        self._rng = None if jitter is None else Random(jitter)  # noqa: S311  # not a secret
        super().__init__(names, contender.settings, contender.rules)
        self.producer = SimProducer(
            self.world,
            "producer",
            acks=contender.acks,
            idempotent=contender.idempotent,
            retries=1_000,
        )
        self.producer.producer_id = 0 if contender.idempotent else -1
        self.producer.request_timeout_ms = 1_000
        self.producer.retries_immediately = False
        self.world.clients["producer"] = self.producer
        self.sends = True
        self._count = 0

    def schedule(self, envelope: Envelope) -> None:
        self.world.later(self.in_order(envelope, self._delay()), lambda: self.deliver(envelope))

    def _delay(self) -> int:
        if self._rng is None:
            return DELAY_MS
        slow = self._rng.random() < 0.05
        return self._rng.randrange(10, 60) if slow else self._rng.randrange(1, 2 * DELAY_MS)

    def run(self, strikes: Sequence[Strike], duration_ms: int) -> None:
        """Run the schedule."""
        self.begin()
        self.every(HEARTBEAT_MS, self.heartbeats)
        self.every(CHECKPOINT_MS, self.checkpoint)
        self.every(SEND_EVERY_MS, self._send)
        self.every(RETRY_MS, self.producer.retry)
        for strike in strikes:
            self.world.later(strike.at_ms, partial(self.strike, strike))
        self.world.advance(duration_ms)

    def _send(self) -> None:
        if self.sends:
            self._count += 1
            self.producer.send([f"m{self._count}"])

    # Faults.

    def strike(self, strike: Strike) -> None:
        """Start one fault, and schedule its end."""
        broker = self.world.brokers[strike.broker]
        match strike.kind:
            case "crash" | "power-loss":
                self.kill(broker, power=strike.kind == "power-loss")
                self.world.later(strike.lasts_ms, lambda: self.start(broker))
            case "pause":
                if broker.alive and not broker.paused:
                    broker.pause()
                self.world.later(strike.lasts_ms, lambda: self.resume(broker))
            case _:
                self.disconnect(broker)
                self.world.later(strike.lasts_ms, self.world.network.reconnect)

    def kill(self, broker: SimBroker, *, power: bool) -> None:
        """Kill the process, or the whole machine."""
        if power:
            broker.lose_power()
        elif broker.alive:
            broker.crash()
        self.world.break_connections(broker.name)

    def disconnect(self, broker: SimBroker) -> None:
        """Disconnect a broker from all others, the controller, the clients and the store."""
        others = [*self.world.brokers, self.world.controller_name, *self.world.clients, STORE]
        self.world.network.disconnect([broker.name], others)
        self.world.network.disconnect(others, [broker.name])

    def end_faults(self) -> None:
        """End all faults, and let time pass."""
        self.sends = False
        self.world.network.reconnect()
        for broker in self.world.brokers.values():
            self.resume(broker)
            self.start(broker)
        self.world.advance(QUIET_MS)

    # Results.

    def acknowledged(self) -> int:
        """The number of acknowledged records."""
        return len(self.world.history.acknowledged())

    def lost(self) -> int:
        """The number of acknowledged records that are lost."""
        return len(judge(self.world).lost)
