"""Flushes of a broker: one of a log at a time, the next one after it, none of what is gone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.broker.partition import Partition
from holdfast.broker.replicas import Replicas
from holdfast.core import Follower
from holdfast.lab.simulation import SimulatedCluster
from holdfast.lab.simulation.clients import Ledger, Producer

SLOW_S = 1.0
TOPIC = "events"


class Flushing:
    """A cluster with slow disks, and a topic that flushes every second record."""

    def __init__(self) -> None:
        self.cluster = SimulatedCluster(1, 3, disk_s=SLOW_S)
        [self.name] = self.cluster.start(TOPIC, 1, {"flush.messages": "2"})
        self.ledger = Ledger()
        client = self.cluster.client("writer")
        self.producer = Producer(
            client, self.ledger, (self.name,), is_idempotent=True, batch_sizes=(2,)
        )
        self.cluster.spawn(self.producer.run(0.2))

    def until(self, is_done: Callable[[], bool]) -> None:
        assert self.cluster.timeline.run_until(is_done, 120.0), self.cluster.recording.lines

    def replicas(self, *, leads: bool) -> tuple[Replicas, Partition]:
        for machine in self.cluster.machines.values():
            assert machine.broker is not None
            partition = machine.broker.replicas.partitions[self.name]
            if partition.presumes_leadership is leads:
                return machine.broker.replicas, partition
        raise AssertionError("nobody")


@pytest.fixture
def flushing() -> Flushing:
    return Flushing()


def test_what_is_wanted_during_a_flush_is_flushed_after_it(flushing: Flushing) -> None:
    _, leader = flushing.replicas(leads=True)
    flushing.until(lambda: leader.log.log_end_offset >= 6)
    written = leader.log.log_end_offset
    assert leader.log.recovery_point < written
    flushing.producer.is_paused = True
    flushing.until(lambda: leader.replica.log.flushed_offset >= written)
    flushing.until(lambda: flushing.producer.is_idle)
    flushing.cluster.close()
    assert not flushing.cluster.recording.bugs


def test_a_partition_that_was_dropped_during_its_flush_is_not_followed_again(
    flushing: Flushing,
) -> None:
    replicas, follower = flushing.replicas(leads=False)
    assert isinstance(follower.replica.role, Follower)
    flushes = replicas._flushes
    flushing.until(lambda: follower in flushes._under_way)
    replicas.drop(flushing.name)
    end = follower.log.log_end_offset
    flushing.until(lambda: follower not in flushes._under_way)
    assert follower not in replicas.fetchers._leaders
    flushing.cluster.timeline.run_for(10.0)
    assert follower.log.log_end_offset == end
    flushing.cluster.close()
    assert not flushing.cluster.recording.bugs
