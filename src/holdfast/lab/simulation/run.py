"""One seed: a cluster of real brokers under faults, then peace, then judgement.

First safety: anything may fail, and every invariant is looked at after every event. Then liveness:
the faults stop, everything is mended, and the cluster must come to rest in bounded virtual time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.core import ACKS_ALL, ACKS_LEADER
from holdfast.lab.byte_disk import Fault
from holdfast.lab.simulation.checks import Invariants, judge
from holdfast.lab.simulation.clients import Consumer, Ledger, Producer
from holdfast.lab.simulation.cluster import CLIENTS, SimulatedCluster
from holdfast.lab.simulation.committing import Committer
from holdfast.lab.simulation.forging import forge
from holdfast.lab.simulation.machine import Machine
from holdfast.lab.simulation.plan import Plan, plan_of
from holdfast.model import TraceEvent

REST_S: Final = 120.0
"""Within which a cluster must come to rest when the faults have stopped."""
LOOK_S: Final = 0.1
"""How often somebody looks whether it has."""
TOPIC: Final = "events"
PARTITIONS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun:
    """What one seed did."""

    plan: Plan
    events: tuple[TraceEvent, ...]
    lines: tuple[str, ...]
    """What the brokers said."""
    failures: tuple[str, ...]
    acknowledged: int
    consumed: int
    virtual_s: float
    trace_hash: str


def simulate(seed: int, changes: Mapping[str, Any] | None = None) -> SimulatedRun:
    """Everything that this one integer decides, but for changes of its plan."""
    runner = _Runner(replace(plan_of(seed), **(changes or {})))
    try:
        return runner.run()
    finally:
        runner.cluster.close()


class _Runner:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.cluster = SimulatedCluster(plan.seed, 3, plan.settings())
        self.dice = self.cluster.dice
        self.network = self.cluster.network
        self.is_faulty = True
        self.ledger = Ledger()
        self._disk_failed: dict[int, None] = {}
        for machine in self.cluster.machines.values():
            machine.on_end = self._back_later

    def run(self) -> SimulatedRun:
        cluster, plan = self.cluster, self.plan
        recording = cluster.recording
        self.partitions = cluster.start(TOPIC, PARTITIONS)
        recording.emit("said", text=plan.summary)
        invariants = self.invariants = Invariants(cluster, self.partitions)
        self._start_clients()
        self.network.latency_s = plan.latency_ms / 1000
        self.network.torn = 0.2 if "torn-bytes" in plan.faults else 0.0
        self.later(plan.fault_every_ms / 1000, self._fault)
        cluster.timeline.run_for(plan.duration_ms / 1000)
        self._make_peace()
        failures = self._judgement()
        if plan.is_restarted and not failures:
            self._restart_all()
            failures = self._judgement()
        failures += [f"{text} (event {event})" for text, event in invariants.violations.items()]
        failures += self.ledger.wrong
        failures += [f"a bug: {text}" for text in recording.bugs]
        if not self.ledger.acknowledged:
            failures.append("the run exercised nothing: no record was acknowledged")
        return SimulatedRun(
            plan=plan,
            events=tuple(recording.events),
            lines=tuple(recording.lines),
            failures=tuple(failures),
            acknowledged=len(self.ledger.acknowledged),
            consumed=len(self.ledger.consumed),
            virtual_s=cluster.timeline.now_s,
            trace_hash=recording.trace_hash,
        )

    def _start_clients(self) -> None:
        cluster = self.cluster
        kinds = (("idempotent", ACKS_ALL, True), ("plain", ACKS_ALL, False))
        self.producers = [
            Producer(
                cluster.client(name), self.ledger, self.partitions, acks=acks, is_idempotent=exact
            )
            for name, acks, exact in (*kinds, ("hasty", ACKS_LEADER, False))
        ]
        for producer in self.producers:
            cluster.spawn(producer.run(self.plan.send_every_ms / 1000))
        self.consumers = [
            Consumer(cluster.client("reader"), self.ledger, one) for one in self.partitions
        ]
        for consumer in self.consumers:
            cluster.spawn(consumer.run())
        self.committer = Committer(cluster.client("committer"), self.partitions[0])
        cluster.spawn(self.committer.run())

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        """By nobody's loop: faults happen whoever lives."""
        self.network.kernel.call_later(seconds, action)

    # Faults.

    def _fault(self) -> None:
        if not self.is_faulty:
            return
        pause_s = self.plan.fault_every_ms / 1000 * (0.5 + self.dice.random())
        self.later(pause_s, self._fault)
        actions = [one for one in self.plan.faults if one in _FAULTS]
        if actions:
            machine = self.cluster.machines[self.dice.randrange(1, len(self.cluster.machines) + 1)]
            _FAULTS[self.dice.choice(actions)](self, machine)

    def _back_later(self, machine: Machine) -> None:
        delay_s = self.dice.uniform(0.05, 4.0) if self.is_faulty else 0.05
        self.later(delay_s, machine.start)

    def _kill(self, machine: Machine) -> None:
        if machine.is_up:
            self._disk_failed.pop(machine.number, None)
            machine.kill()
            self._back_later(machine)

    def _kill_in_write(self, machine: Machine) -> None:
        if machine.is_up:
            machine.kill_within(self.dice.randrange(40))

    def _power_loss(self, machine: Machine) -> None:
        """At most one machine loses unflushed records: more is beyond the guarantee."""
        others = [one for one in self.invariants.lossy if one != machine.number]
        if machine.is_up and (self.plan.is_flushed or not others):
            self.invariants.lossy[machine.number] = None
            machine.lose_power()
            self._back_later(machine)

    def _stop(self, machine: Machine) -> None:
        machine.stop()

    def _pause(self, machine: Machine) -> None:
        machine.pause()
        self.later(self.dice.uniform(0.05, 5.0), machine.resume)

    def _cut(self, machine: Machine) -> None:
        others = self._other_ends(machine)
        for other in others:
            self.network.cut(machine.host, other)
            self.network.cut(other, machine.host)
        self._tell_cut(machine, others)

    def _one_way_cut(self, machine: Machine) -> None:
        others = self._other_ends(machine)
        outwards = self.dice.random() < 0.5
        for other in others:
            self.network.cut(*((machine.host, other) if outwards else (other, machine.host)))
        self._tell_cut(machine, others)

    def _tell_cut(self, machine: Machine, others: list[str]) -> None:
        self.cluster.recording.emit("cut", source=machine.host, targets=others)
        self.later(self.dice.uniform(0.1, 5.0), self._heal)

    def _heal(self) -> None:
        self.network.heal()
        self.cluster.recording.emit("healed")

    def _other_ends(self, machine: Machine) -> list[str]:
        ends = [*(one.host for one in self.cluster.machines.values()), CLIENTS]
        return [one for one in ends if one != machine.host and self.dice.random() < 0.6]

    def _slow(self, machine: Machine) -> None:
        for other in self._other_ends(machine):
            seconds = self.dice.choice((0.05, 0.3, 1.5))
            self.network.slow(machine.host, other, seconds)
            self.network.slow(other, machine.host, seconds)
        self.later(self.dice.uniform(0.5, 5.0), self.network.heal)

    def _reset(self, machine: Machine) -> None:
        self.network.break_connections([machine.host, *self._other_ends(machine)], 0.5)

    def _session_expiry(self, machine: Machine) -> None:
        machine.expire_session()

    def _store_away(self, machine: Machine) -> None:
        loop, store = machine.loop, machine.store
        if loop is not None and store is not None and machine.is_ready:
            loop.call_soon(store.cut)
            self.later(self.dice.uniform(0.1, 6.0), lambda: loop.call_soon(store.heal))

    def _controller_loss(self, _: Machine) -> None:
        """Whoever rules dies, stands still or is taken for dead."""
        for machine in self.cluster.machines.values():
            if machine.broker is not None and machine.broker.controller is not None:
                self.dice.choice((self._kill, self._pause, self._session_expiry))(machine)
                return

    def _disk_error(self, machine: Machine) -> None:
        """A disk fails; somebody puts in another cable and starts the broker again."""
        if machine.is_ready and machine.number not in self._disk_failed:
            self._disk_failed[machine.number] = None
            kind = self.dice.choice(("append", "truncate", "read", "rename", "create"))
            machine.disk.faults.append(Fault(kind, self.dice.choice((TOPIC, ""))))
            self.later(self.dice.uniform(0.2, 3.0), lambda: self._kill(machine))

    def _forged_command(self, machine: Machine) -> None:
        forge(self.cluster, machine, self.dice.choice(self.partitions))

    # Peace.

    def _judgement(self) -> list[str]:
        if not self._comes_to_rest():
            return [f"not at rest {REST_S:g} s after the faults stopped: {self._unrest()}"]
        found = judge(self.cluster, self.partitions, self.ledger, self.producers, self.invariants)
        return found + self._look_at_commits()

    def _restart_all(self) -> None:
        """All are down at once, stopped or killed, and come back to what is on their disks."""
        machines = self.cluster.machines.values()
        for machine in machines:
            machine.on_end = None
            if self.dice.random() < 0.5:
                machine.stop()
            else:
                machine.kill()
        self.cluster.timeline.run_until(lambda: not any(one.is_up for one in machines), REST_S)
        for machine in machines:
            machine.start()

    def _look_at_commits(self) -> list[str]:
        committer = self.committer
        acknowledged = committer.acknowledged  # One under way may be, after we have asked.
        found = self.cluster.do(committer.committed())
        if acknowledged <= found <= committer.sent:
            return []
        told = f"{acknowledged} was acknowledged and {committer.sent} sent"
        return [f"a group's offset is {found}, {told}"]

    def _make_peace(self) -> None:
        """Faults stop; everything that was broken is mended."""
        self.is_faulty = False
        self.network.torn = 0.0
        self._heal()
        self.committer.is_paused = True
        for producer in self.producers:
            producer.is_paused = True
        for machine in self.cluster.machines.values():
            machine.disk.on_step = None
            machine.resume()
            if machine.loop is not None and machine.store is not None:
                machine.loop.call_soon(machine.store.heal)
            if machine.number in self._disk_failed:
                self._kill(machine)
            machine.start()

    def _comes_to_rest(self) -> bool:
        timeline = self.cluster.timeline
        end_s = timeline.now_s + REST_S
        while timeline.now_s < end_s:
            timeline.run_for(LOOK_S)
            if self._is_at_rest():
                return True
        return False

    def _is_at_rest(self) -> bool:
        cluster = self.cluster
        machines = cluster.machines.values()
        if not all(one.is_ready and not one.is_stopping for one in machines):
            return False
        if not all(producer.is_idle for producer in self.producers):
            return False
        return cluster.is_whole(self.partitions) and not self._unrest()

    def _unrest(self) -> list[str]:
        """What differs between replicas, or has not reached the readers."""
        found: list[str] = []
        for consumer, name in zip(self.consumers, self.partitions, strict=True):
            ends = {"reader": (consumer.position, consumer.position)}
            for machine in self.cluster.machines.values():
                broker = machine.broker
                known = None if broker is None else broker.replicas.partitions.get(name)
                if known is None:
                    ends[machine.host] = (-1, -1)
                else:
                    numbers = known.replica.log
                    ends[machine.host] = (numbers.high_watermark, numbers.log_end_offset)
            if len(dict.fromkeys(ends.values())) > 1:
                found.append(f"{name}: {ends}")
        return found


_FAULTS: dict[str, Callable[[_Runner, Machine], None]] = {
    "kill": _Runner._kill,
    "kill-in-write": _Runner._kill_in_write,
    "power-loss": _Runner._power_loss,
    "stop": _Runner._stop,
    "pause": _Runner._pause,
    "cut": _Runner._cut,
    "one-way-cut": _Runner._one_way_cut,
    "slow": _Runner._slow,
    "reset": _Runner._reset,
    "session-expiry": _Runner._session_expiry,
    "store-away": _Runner._store_away,
    "controller-loss": _Runner._controller_loss,
    "disk-error": _Runner._disk_error,
    "forged-command": _Runner._forged_command,
}
