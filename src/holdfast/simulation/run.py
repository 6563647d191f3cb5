"""Runs one seed: a cluster of real brokers under faults, then quiescence, then the final checks.

First safety: anything may fail, and every invariant is checked after every event. Then liveness:
all faults end, and the cluster must come to rest in bounded virtual time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.core import ACKS_ALL, ACKS_LEADER
from holdfast.model import TraceEvent
from holdfast.model.trace import trace_hash
from holdfast.simulation.checks import Invariants, judge
from holdfast.simulation.clients.clients import Consumer, Ledger, Producer
from holdfast.simulation.clients.offset_committer import GROUPS, Committer
from holdfast.simulation.cluster import SimulatedCluster
from holdfast.simulation.compaction import OFFSETS, Compactions, differing_keys
from holdfast.simulation.faults import Faults
from holdfast.simulation.plan import Plan, plan_of
from holdfast.simulation.traffic_pace import Pace

REST_S: Final = 120.0
"""The time within which a cluster must come to rest after the faults end."""
LOOK_S: Final = 0.1
"""How often the run checks whether it has."""
TOPIC: Final = "events"
PARTITIONS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun:
    """The result of one seed."""

    plan: Plan
    events: tuple[TraceEvent, ...]
    lines: tuple[str, ...]
    """The log lines of the brokers."""
    failures: tuple[str, ...]
    acknowledged: int
    consumed: int
    virtual_s: float
    compactions: int
    """How often a broker compacted its log while there were faults."""

    @property
    def trace_hash(self) -> str:
        return trace_hash(self.events)


def simulate(seed: int, changes: Mapping[str, Any] | None = None) -> SimulatedRun:
    """Run a seed, with changes of its plan if given."""
    runner = _Runner(replace(plan_of(seed), **(changes or {})))
    try:
        return runner.run()
    finally:
        runner.cluster.close()


class _Runner:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.cluster = SimulatedCluster(plan.seed, 3, plan.settings(), plan.disk_ms / 1000)
        self.rng = self.cluster.rng
        self.ledger = Ledger()

    def run(self) -> SimulatedRun:
        cluster, plan = self.cluster, self.plan
        recording = cluster.recording
        self.partitions = cluster.start(TOPIC, PARTITIONS, plan.topic_settings())
        recording.emit("said", text=plan.summary)
        invariants = self.invariants = Invariants(cluster, self.partitions)
        compactions = Compactions(cluster)
        pace = Pace(plan.seed, cluster.timeline.now_s, plan.duration_ms / 1000)
        self._start_clients(pace)
        faults = Faults(plan, cluster, invariants, self.partitions, pace)
        cluster.timeline.run_for(plan.duration_ms / 1000)
        compacted = compactions.count
        faults.stop()
        self._pause_clients()
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
            compactions=compacted,
        )

    def _start_clients(self, pace: Pace) -> None:
        cluster, plan = self.cluster, self.plan
        kinds = (("idempotent", ACKS_ALL, True), ("plain", ACKS_ALL, False))
        self.producers = [
            Producer(
                cluster.client(name),
                self.ledger,
                self.partitions,
                acks=acks,
                is_idempotent=exact,
                batch_sizes=plan.batch_sizes,
            )
            for name, acks, exact in (*kinds, ("hasty", ACKS_LEADER, False))
        ]
        for producer in self.producers:
            cluster.spawn(producer.run(plan.send_every_ms / 1000, pace))
        self.consumers = [
            Consumer(cluster.client("reader"), self.ledger, one) for one in self.partitions
        ]
        for consumer in self.consumers:
            cluster.spawn(consumer.run())
        self.committer = Committer(cluster.client("committer"), self.partitions[0])
        cluster.spawn(self.committer.run(pace))

    # Quiescence.

    def _judgement(self) -> list[str]:
        if not self._comes_to_rest():
            return [f"not at rest {REST_S:g} s after the faults stopped: {self._unrest()}"]
        found = judge(self.cluster, self.partitions, self.ledger, self.producers, self.invariants)
        return found + differing_keys(self.cluster) + self._look_at_commits()

    def _restart_all(self) -> None:
        """Stop or kill all brokers; when all are down, restart them from their disks."""
        machines = self.cluster.machines.values()
        for machine in machines:
            machine.on_end = None
            if self.rng.random() < 0.5:
                machine.stop()
            else:
                machine.kill()
        self.cluster.timeline.run_until(lambda: not any(one.is_up for one in machines), REST_S)
        for machine in machines:
            machine.start()

    def _look_at_commits(self) -> list[str]:
        committer = self.committer
        failures: list[str] = []
        for group in GROUPS:
            acknowledged = committer.acknowledged[group]  # May grow during the request.
            found = self.cluster.do(committer.committed(group))
            if not acknowledged <= found <= committer.sent[group]:
                numbers = f"{acknowledged} was acknowledged and {committer.sent[group]} sent"
                failures.append(f"the offset of {group} is {found}, {numbers}")
        return failures

    def _pause_clients(self) -> None:
        self.committer.is_paused = True
        for producer in self.producers:
            producer.is_paused = True

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
        offsets = (OFFSETS,) if cluster.state(OFFSETS) is not None else ()
        return cluster.is_whole((*self.partitions, *offsets)) and not self._unrest()

    def _unrest(self) -> list[str]:
        """The reasons why the cluster is not at rest: replicas that differ, readers that lag."""
        readers = zip(self.partitions, self.consumers, strict=True)
        positions = {name: {"reader": (one.position, one.position)} for name, one in readers}
        found: list[str] = []
        for name in (*self.partitions, OFFSETS):
            ends = positions.get(name, {})
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
