"""Flushes of a broker: one per log at a time, the next one after it, none of dropped logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from holdfast.broker.replication.flushes import DISK_THREADS
from holdfast.broker.replication.partition import Partition
from holdfast.broker.replication.replicas import Replicas
from holdfast.core import Follower
from holdfast.protocol.records import NewRecord, build_batch, stamp
from holdfast.simulation import SimulatedCluster
from holdfast.simulation.clients.clients import Ledger, Producer
from holdfast.storage.background_flush import MOST_SEGMENTS

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


def test_a_flush_requested_during_a_flush_follows_it(flushing: Flushing) -> None:
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


def alone(partitions: int) -> tuple[SimulatedCluster, Replicas, list[Partition]]:
    """One broker on a slow disk, and the partitions of a topic without a flush rule."""
    cluster = SimulatedCluster(2, 1, disk_s=SLOW_S)
    names = cluster.start(TOPIC, partitions)
    [machine] = cluster.machines.values()
    assert machine.broker is not None
    replicas = machine.broker.replicas
    assert cluster.timeline.run_until(lambda: not replicas._flushes._under_way, 60.0)
    return cluster, replicas, [replicas.partitions[name] for name in names]


def roll(partition: Partition, times: int) -> None:
    """As replication does: without the core."""
    log = partition.log
    for _ in range(times):
        batch = build_batch([NewRecord(b"value")])
        stamp(batch, 0, log.log_end_offset, partition.replica.leader_epoch)
        log.append([batch], 0)
        log.roll(0)


def test_concurrent_flushes_do_not_exceed_the_threads() -> None:
    """Each holds descriptors: a hundred logs that roll together must not exhaust them."""
    cluster, replicas, partitions = alone(3 * DISK_THREADS)
    for partition in partitions:
        roll(partition, 1)
    under_way: list[int] = []

    def are_flushed() -> bool:
        disks = Counter(one.log.disk for one in replicas._flushes._under_way)
        under_way.append(max(disks.values(), default=0))
        return not any(one.log.has_unflushed_seals for one in partitions)

    assert cluster.timeline.run_until(are_flushed, 60.0)
    assert max(under_way) == DISK_THREADS
    cluster.close()


def test_a_log_with_many_sealed_segments_is_flushed_to_its_active_one() -> None:
    """As after a kill, or after rolls that were faster than the disk."""
    cluster, _, [partition] = alone(1)
    roll(partition, 3 * MOST_SEGMENTS)
    log = partition.log
    assert cluster.timeline.run_until(lambda: log.recovery_point >= log.log_end_offset, 60.0)
    cluster.close()
