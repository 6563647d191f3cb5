"""Compaction in a simulated cluster: counts it, and checks that the last record of each key stays.

Brokers compact `__consumer_offsets`, to which a client commits offsets all the time. When the
cluster is at rest, every replica must have the same last record of every key, no matter how often
its broker compacted the log and where a fault interrupted that.
"""

from __future__ import annotations

from typing import Final

from holdfast.broker.metadata.topic_names import OFFSETS_TOPIC
from holdfast.model import TopicPartition, TraceEvent
from holdfast.protocol.records import batches, read_records
from holdfast.simulation.checks import content_of
from holdfast.simulation.cluster import SimulatedCluster

OFFSETS: Final = TopicPartition(OFFSETS_TOPIC, 0)
"""The only partition of `__consumer_offsets` in a simulated cluster."""


class Compactions:
    """Reads a broker's cleaner checkpoint after every event of that broker."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self.count = 0
        """How often a broker has compacted the log."""
        self._cleaned: dict[tuple[int, int], int] = {}
        """By machine and incarnation of its broker."""
        cluster.recording.observers.append(self._look)

    def _look(self, event: TraceEvent) -> None:
        machine = None if event.broker is None else self._cluster.machines[event.broker]
        broker = None if machine is None else machine.broker
        if machine is None or broker is None or OFFSETS not in broker.directory.partitions:
            return
        cleaned = broker.directory.of(OFFSETS).cleaner_offsets.get(OFFSETS, 0)
        incarnation = (machine.number, machine.incarnation)
        before = self._cleaned.get(incarnation, cleaned)
        self._cleaned[incarnation] = cleaned
        self.count += cleaned > before


def differing_keys(cluster: SimulatedCluster) -> list[str]:
    """Keys whose last record is not the same in every replica, in a cluster at rest."""
    copies: dict[str, dict[bytes, bytes | None]] = {}
    for machine in cluster.machines.values():
        assert machine.broker is not None
        partition = machine.broker.replicas.partitions.get(OFFSETS)
        copies[machine.host] = last = {}
        for batch in batches(b"" if partition is None else content_of(partition.log)):
            for record in read_records(batch):
                last[bytes(record.key or b"")] = _bytes(record.value)
    keys = dict.fromkeys(key for last in copies.values() for key in last)
    found = {key: {host: last.get(key) for host, last in copies.items()} for key in keys}
    return [
        f"{OFFSETS}: the replicas differ in the last record of {key!r}: {values}"
        for key, values in found.items()
        if len(dict.fromkeys(values.values())) > 1
    ]


def _bytes(value: bytes | memoryview | None) -> bytes | None:
    return None if value is None else bytes(value)
