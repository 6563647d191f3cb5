"""Simulated brokers and the lab use one class of producer states, and one object per log."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from holdfast.broker.replication.partition import Partition
from holdfast.core import ProducerStates
from holdfast.simulation import simulate
from tests.unit.lab.worlds import producer_of, world_of


def test_core_and_log_of_a_simulated_broker_share_one_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: Counter[str] = Counter()

    def watched(name: str) -> None:
        real = getattr(Partition, name)

        def call(self: Partition, *args: Any) -> Any:
            result = real(self, *args)
            assert type(self.log.producers) is ProducerStates
            assert self.log.producers is self.replica.log.producers, name
            seen[name] += len(self.log.producers.states)
            return result

        monkeypatch.setattr(Partition, name, call)

    for name in ("write", "copy", "_truncate"):
        watched(name)
    run = simulate(3, {"duration_ms": 10_000, "faults": ("kill", "power-loss")})
    assert not run.failures
    assert seen["write"]
    assert seen["copy"]


def test_the_lab_asks_the_same_class(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ProducerStates.check
    asked: list[ProducerStates] = []

    def check(self: ProducerStates, batch: Any) -> Any:
        asked.append(self)
        return real(self, batch)

    monkeypatch.setattr(ProducerStates, "check", check)
    world = world_of()
    producer = producer_of(world, acks=1, retries=1, idempotent=True, producer_id=7)
    producer.send(["m0"])
    world.settle()
    producers = world.brokers["A"].replica.log.producers
    assert asked == [producers]
    assert {one.name: one.replica.log.producers.states for one in world.brokers.values()} == {
        "A": producers.states,
        "B": producers.states,
    }
    assert [one.last_sequence for one in producers.states.values()] == [0]
