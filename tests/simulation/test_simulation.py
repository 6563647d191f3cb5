"""Whole brokers in a simulated cluster: the smallest case, single faults, reproducible seeds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from holdfast.broker.replication import replicas
from holdfast.core import Replica
from holdfast.lab import build, fold
from holdfast.model import parse_trace
from holdfast.simulation import FAULTS, SimulatedCluster, run, simulate
from holdfast.simulation.clients.clients import Consumer, Ledger, Producer
from holdfast.simulation.disk.byte_disk import ByteDisk
from holdfast.simulation.disk.power_loss import drawn_power_loss
from holdfast.simulation.machine import Machine
from tests.support.hash_seeds import printed

PATIENCE_S = 60.0
SHORT = {"duration_ms": 20_000}


class Small:
    """A small cluster with one producer and one reader for each partition."""

    def __init__(self, brokers: int, partitions: int = 1) -> None:
        self.cluster = SimulatedCluster(1, brokers)
        self.partitions = self.cluster.start("events", partitions)
        self.ledger = Ledger()
        client = self.cluster.client("writer")
        self.producer = Producer(client, self.ledger, self.partitions, is_idempotent=True)
        self.consumers = [
            Consumer(self.cluster.client("reader"), self.ledger, one) for one in self.partitions
        ]
        self.cluster.spawn(self.producer.run(0.05))
        for consumer in self.consumers:
            self.cluster.spawn(consumer.run())

    def until(self, is_done: Callable[[], bool]) -> None:
        assert self.cluster.timeline.run_until(is_done, PATIENCE_S), self.cluster.recording.lines

    def read_more(self, count: int) -> None:
        wanted = len(self.ledger.consumed) + count
        self.until(lambda: len(self.ledger.consumed) >= wanted)

    def close(self) -> None:
        self.cluster.close()
        assert not self.cluster.recording.bugs
        assert not self.ledger.wrong


@pytest.fixture
def small(request: pytest.FixtureRequest) -> Any:
    made = Small(request.param)
    yield made
    made.close()


@pytest.mark.parametrize("small", [1], indirect=True)
def test_one_broker_stores_and_returns_a_record(small: Small) -> None:
    small.read_more(1)
    small.until(lambda: bool(small.ledger.acknowledged))
    first = small.ledger.acknowledged[0]
    assert small.ledger.consumed[first.partition, first.offset] == first.value
    assert first.value == b"writer-0"


@pytest.mark.parametrize("small", [3], indirect=True)
def test_three_brokers_keep_three_copies(small: Small) -> None:
    small.read_more(20)
    kinds = {event.kind for event in small.cluster.recording.events}
    assert {"elected", "became-leader", "became-follower", "appended", "acknowledged"} <= kinds
    [name] = small.partitions
    ends = {
        machine.broker.replicas.partitions[name].log.log_end_offset
        for machine in small.cluster.machines.values()
        if machine.broker is not None
    }
    assert len(small.cluster.machines) == 3
    assert min(ends) >= 18


@pytest.mark.parametrize("small", [3], indirect=True)
@pytest.mark.parametrize("end", [Machine.kill, Machine.lose_power, Machine.stop])
def test_the_others_continue_without_a_leader_and_it_returns(
    small: Small, end: Callable[[Machine], None]
) -> None:
    small.read_more(5)
    [name] = small.partitions
    state = small.cluster.state(name)
    assert state is not None
    machine = small.cluster.machines[state.leader]
    end(machine)
    small.until(lambda: not machine.is_up)
    small.read_more(20)
    after = small.cluster.state(name)
    assert after is not None
    assert after.leader != machine.number
    machine.start()
    small.until(lambda: small.cluster.is_whole(small.partitions))


def test_what_was_not_flushed_may_be_gone_after_a_power_loss() -> None:
    disk = ByteDisk()
    file = disk.open("a", create=True)
    disk.flush_directory("")
    file.append([b"flushed"])
    file.flush()
    file.append([b" and not"])
    found = {drawn_power_loss(disk, Random(seed)).open("a").read(0, 100) for seed in range(40)}
    assert all(one.startswith(b"flushed") for one in found)
    assert b"flushed" in found
    assert len(found) > 3


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone(fault: str) -> None:
    played = simulate(7, {"faults": (fault,), "duration_ms": 4_000})
    assert played.failures == ()
    assert played.acknowledged > 20


def test_a_stopping_broker_reports_no_failed_disk() -> None:
    """Seed 1439: a parked fetch wakes up after the broker has closed the log."""
    assert simulate(1439, {"duration_ms": 6929}).failures == ()


def test_a_trace_is_one_that_the_lab_can_show() -> None:
    played = simulate(3, {"duration_ms": 3_000})
    events = list(parse_trace(event.to_json() for event in played.events))
    frames = fold(events)
    assert frames[-1].snapshot.store.leader is not None
    assert {view.name for view in frames[-1].snapshot.replicas} == {"b1", "b2", "b3"}


@pytest.mark.slow
def test_one_seed_is_one_run_under_any_hash_seed() -> None:
    program = (
        "import json; from holdfast.simulation import simulate; "
        f"print(json.dumps([simulate(seed, {SHORT}).trace_hash for seed in (4, 5)]))"
    )
    here = [simulate(seed, SHORT).trace_hash for seed in (4, 5)]
    assert printed(program) == [here, here]
    assert len(set(here)) == 2


# Bugs that the checks find.


MUTANTS: dict[str, dict[str, Any]] = {
    "truncation=high-watermark": {"faults": ("kill", "controller-loss")},
    "without=(stale-answer-by-offset)": {"faults": ("kill", "stop", "slow")},
    "without=(flush-before-claim)": {
        "faults": ("power-loss",),
        "flush_messages": 5,
        "disk_ms": 400.0,
    },
}
"""Broken cores, each with the plan that shows its bug."""
WITHIN = 10
"""At least one of so many seeds must find the bug."""


def is_caught(plan: dict[str, Any]) -> bool:
    dense = {"fault_every_ms": 400, "send_every_ms": 60, "duration_ms": 20_000, **plan}
    return any(simulate(seed, dense).failures for seed in range(WITHIN))


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broker_with_a_broken_core_is_caught(
    mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, _, value = mutant.partition("=")
    rules = build({key: value}, 3)[1]
    monkeypatch.setattr(replicas, "Replica", partial(Replica, rules=rules))
    assert is_caught(MUTANTS[mutant])


@pytest.mark.slow
def test_a_disk_that_only_claims_to_flush_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ByteDisk, "flush_file", lambda *_: None)
    monkeypatch.setattr(run, "REST_S", 10.0)
    assert is_caught({"faults": ("power-loss",), "flush_messages": 1})
