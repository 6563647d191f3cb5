"""A seeded run: a phase with random faults, then quiescence, then the verdict.

First safety: anything may fail, and every invariant is checked after every event. Then liveness:
the faults end, and the cluster must settle in bounded time with every replica in sync. A run
without an acknowledged record counts as a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from holdfast.core import ACKS_ALL, ACKS_LEADER, SAFE_RULES, Rules, Settings
from holdfast.lab.judge.verdict import INVALID, Verdict, judge
from holdfast.lab.seeds.rng import Plan, plan_of
from holdfast.lab.world.broker import SimBroker
from holdfast.lab.world.clients import SimConsumer, SimProducer
from holdfast.lab.world.messages import Envelope, ProduceRequest, ReadRequest
from holdfast.lab.world.timed_world import HEARTBEAT_MS, TimedWorld
from holdfast.lab.world.world import STORE
from holdfast.model import TraceEvent
from holdfast.model.trace import trace_hash

REST_MS = 60_000
NAMES = ("b1", "b2", "b3")
SETTINGS = Settings(min_insync_replicas=2, replica_lag_time_max_ms=1_500)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededRun:
    """The result of one seed."""

    plan: Plan
    events: tuple[TraceEvent, ...]
    verdict: Verdict
    failures: tuple[str, ...]
    acknowledged: int

    @property
    def virtual_s(self) -> float:
        """Simulated time."""
        return self.events[-1].t / 1000

    @property
    def trace_hash(self) -> str:
        return trace_hash(self.events)


def run_seed(
    seed: int,
    settings: Settings = SETTINGS,
    rules: Rules = SAFE_RULES,
    changes: Mapping[str, Any] | None = None,
) -> SeededRun:
    """Run one seed. `changes` replaces fields of its plan."""
    return _Runner(seed, settings, rules, changes or {}).run()


class _Runner(TimedWorld):
    def __init__(
        self, seed: int, settings: Settings, rules: Rules, changes: Mapping[str, Any]
    ) -> None:
        plan, self.rng = plan_of(seed)
        self.plan = replace(plan, **changes)
        super().__init__(NAMES, settings, rules)
        self.traffic = True
        self.faulty = True
        self.sent = 0
        self.producers = [
            self._producer("idempotent", ACKS_ALL, idempotent=True),
            self._producer("plain", ACKS_ALL),
            self._producer("hasty", ACKS_LEADER),
        ]
        self.consumer = SimConsumer(self.world, "reader")
        self.world.clients["reader"] = self.consumer

    def _producer(self, name: str, acks: int, *, idempotent: bool = False) -> SimProducer:
        world = self.world
        producer = SimProducer(world, name, acks=acks, idempotent=idempotent, retries=1_000)
        producer.producer_id = len(world.clients) if idempotent else -1
        producer.request_timeout_ms = 1_000
        producer.retries_immediately = False
        world.clients[name] = producer
        return producer

    def run(self) -> SeededRun:
        """Faults, then quiescence, then the verdict."""
        world, plan = self.world, self.plan
        world.recorder.emit("said", text=plan.summary)
        self.begin()
        self.every(HEARTBEAT_MS, self.heartbeats)
        self.every(plan.send_every_ms, self._send)
        self.every(50, self._read)
        self.every(300, self._retry)
        self.every(plan.checkpoint_every_ms, self.checkpoint)
        self.every(plan.fault_every_ms, self._fault)
        world.advance(plan.duration_ms)
        self._end_faults()
        rested = self._rest()
        verdict = judge(world)
        return SeededRun(
            plan=plan,
            events=tuple(world.recorder.events),
            verdict=verdict,
            failures=tuple(self._failures(verdict, rested=rested)),
            acknowledged=len(world.history.acknowledged()),
        )

    def _failures(self, verdict: Verdict, *, rested: bool) -> list[str]:
        found = [f"{one.invariant}: {one.text}" for one in self.world.invariants.violations]
        if verdict.verdict == INVALID:
            found.append(f"{verdict.outcome}: {verdict.reason}")
        if not rested:
            found.append(f"did not come to rest within {REST_MS} ms after the faults stopped")
        copies = [one for one in verdict.duplicated if one.startswith("idempotent")]
        late = [one for one in verdict.reordered if one.startswith("idempotent")]
        if copies or late:
            found.append(f"idempotent records doubled {copies} or out of order {late}")
        if not self.world.history.acknowledged():
            found.append("the run exercised nothing: no record was acknowledged")
        return found

    # Time and messages.

    def schedule(self, envelope: Envelope) -> None:
        rng, plan, world = self.rng, self.plan, self.world
        delay = 1 + rng.randrange(plan.delay_ms)
        if self._strikes("reordering") and rng.random() < 0.2:
            delay += rng.randrange(300)
        else:
            delay = self.in_order(envelope, delay)
        if self._strikes("loss") and rng.randrange(100) < plan.loss_percent:
            world.later(delay, lambda: self._lose(envelope))
            return
        world.later(delay, lambda: self.deliver(envelope))
        client = isinstance(envelope.payload, ProduceRequest | ReadRequest)
        if not client and self._strikes("duplication") and rng.random() < 0.1:
            again = delay + rng.randrange(200)
            world.later(again, lambda: self._deliver_copy(envelope))

    def _strikes(self, fault: str) -> bool:
        return self.faulty and fault in self.plan.faults

    def _deliver_copy(self, envelope: Envelope) -> None:
        copy = Envelope(
            envelope.source, envelope.target, envelope.payload, envelope.cause, envelope.number
        )
        self.world.network.pending.append(copy)
        self.deliver(copy)

    def _lose(self, envelope: Envelope) -> None:
        if self.world.network.take(envelope):
            self.world.lose(envelope)

    # Clients.

    def _send(self) -> None:
        if not self.traffic:
            return
        producer = self.rng.choice(self.producers)
        if len(producer.under_way) < 5:
            labels = [
                f"{producer.name}-{self.sent + place}"
                for place in range(self.rng.choice((1, 1, 3)))
            ]
            self.sent += len(labels)
            producer.send(labels, together=True)

    def _retry(self) -> None:
        for producer in self.producers:
            producer.retry()

    def _read(self) -> None:
        self.consumer.poll()

    # Faults.

    def _fault(self) -> None:
        if not self.faulty or not self.plan.faults:
            return
        kind = self.rng.choice(self.plan.faults)
        action = _FAULTS.get(kind)
        if action:
            action(self, self.world.brokers[self.rng.choice(NAMES)], self.rng)

    def _crash(self, broker: SimBroker, rng: Random) -> None:
        if broker.alive:
            broker.crash()
            self.world.break_connections(broker.name)
            self._back_later(broker, rng)

    def _back_later(self, broker: SimBroker, rng: Random) -> None:
        self.world.later(rng.randrange(50, 3_000), lambda: self.start(broker))

    def start(self, broker: SimBroker) -> None:
        """Start a broker, with a disk that works again."""
        if not broker.alive:
            broker.disk.fails = broker.disk.unreadable = ""
        super().start(broker)

    def _power_loss(self, broker: SimBroker, rng: Random) -> None:
        """At most one machine loses unflushed records: more is beyond the guarantee."""
        others = [name for name in self.world.invariants.lossy if name != broker.name]
        if broker.alive and not others:
            broker.lose_power(torn=rng.randrange(3))
            self.world.break_connections(broker.name)
            self._back_later(broker, rng)

    def _stop(self, broker: SimBroker, rng: Random) -> None:
        if broker.alive and not broker.paused and not broker.disk.fails:
            broker.ask_to_stop()
            self.world.later(rng.randrange(20, 300), lambda: self._stop_now(broker, rng))

    def _stop_now(self, broker: SimBroker, rng: Random) -> None:
        if broker.alive and (broker.paused or broker.disk.fails):
            # The broker stops as soon as it can.
            self.world.later(100, lambda: self._stop_now(broker, rng))
        elif broker.alive:
            broker.stop()
            self.world.break_connections(broker.name)
            self._back_later(broker, rng)

    def _pause(self, broker: SimBroker, rng: Random) -> None:
        if broker.alive and not broker.paused:
            broker.pause()
            self.world.later(rng.randrange(50, 2_500), lambda: self.resume(broker))

    def _disconnect(self, broker: SimBroker, rng: Random) -> None:
        others = self._other_ends(broker, rng)
        self.world.network.disconnect([broker.name], others)
        self.world.network.disconnect(others, [broker.name])
        self._note_disconnected(broker, others, rng)

    def _disconnect_one_way(self, broker: SimBroker, rng: Random) -> None:
        others = self._other_ends(broker, rng)
        if rng.random() < 0.5:
            self.world.network.disconnect([broker.name], others)
        else:
            self.world.network.disconnect(others, [broker.name])
        self._note_disconnected(broker, others, rng)

    def _other_ends(self, broker: SimBroker, rng: Random) -> list[str]:
        ends = [*NAMES, STORE, self.world.controller_name, *self.world.clients]
        return [one for one in ends if one != broker.name and rng.random() < 0.5]

    def _note_disconnected(self, broker: SimBroker, others: list[str], rng: Random) -> None:
        self.world.recorder.emit("cut", source=broker.name, targets=others)
        self.world.later(rng.randrange(100, 3_000), self.world.network.reconnect)

    def _session_expiry(self, broker: SimBroker, _rng: Random) -> None:
        self.world.expire_session(broker.name)

    def _election(self, broker: SimBroker, rng: Random) -> None:
        world = self.world
        core = world.controller.core
        wanted = None if rng.random() < 0.3 else broker.id
        if world.controller.alive:
            world.controller.run(core.elect(world.partition, wanted))

    def _controller_failover(self, _broker: SimBroker, rng: Random) -> None:
        world = self.world
        if world.controller.alive:
            world.controller.alive = False
            world.break_connections(world.controller_name)
            world.later(rng.randrange(50, 1_500), world.new_controller)

    def _disk_error(self, broker: SimBroker, rng: Random) -> None:
        """A disk fails; a broker with a failed log halts, and restarts with a working disk."""
        disk = broker.disk
        if broker.alive and not (disk.fails or disk.unreadable):
            if rng.random() < 0.3:
                disk.unreadable = "input/output error"
            else:
                disk.fails = rng.choice(("input/output error", "no space left on device"))
            self.world.later(rng.randrange(100, 800), lambda: self._halt(broker, rng))

    def _halt(self, broker: SimBroker, rng: Random) -> None:
        if broker.replica.has_failed:
            self._crash(broker, rng)
        else:
            broker.disk.fails = broker.disk.unreadable = ""

    # Quiescence.

    def _end_faults(self) -> None:
        """End all faults: reconnect links, repair disks, start brokers and a controller."""
        world = self.world
        self.traffic = self.faulty = False
        world.network.reconnect()
        if not world.controller.alive:
            world.new_controller()
        for broker in world.brokers.values():
            broker.disk.fails = broker.disk.unreadable = ""
            self.resume(broker)
            if broker.replica.has_failed and broker.alive:
                broker.die()
                world.break_connections(broker.name)
            self.start(broker)
        world.recorder.emit("healed")

    def _rest(self) -> bool:
        """Wait until every replica is in sync and every producer has its answer."""
        end = self.world.now_ms + REST_MS
        while self.world.now_ms < end:
            self.world.advance(500)
            if self._at_rest():
                return True
        return False

    def _at_rest(self) -> bool:
        is_answered = not any(producer.under_way for producer in self.producers)
        return is_answered and self.world.is_at_rest()


_FAULTS: dict[str, Callable[[_Runner, SimBroker, Random], None]] = {
    "crash": _Runner._crash,
    "power-loss": _Runner._power_loss,
    "stop": _Runner._stop,
    "pause": _Runner._pause,
    "cut": _Runner._disconnect,
    "one-way-cut": _Runner._disconnect_one_way,
    "session-expiry": _Runner._session_expiry,
    "election": _Runner._election,
    "controller-failover": _Runner._controller_failover,
    "disk-error": _Runner._disk_error,
}
