"""Adds what only a cluster of `holdfast up` shows: each broker's own report, also of dead brokers.

The brokers answer on their control sockets, which work while a broker is disconnected.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.cluster.client.client import Address
from holdfast.cluster.processes import manifest
from holdfast.cluster.processes.manifest import BrokerEntry
from holdfast.cluster.status import status_of
from holdfast.web.console.reading.observation import BrokerFacts, Observation, PartitionFacts


def silent_addresses(folder: Path) -> list[Address]:
    """The brokers that do not run, or are paused. ClusterError if there is no cluster."""
    return [Address(one.host, one.port) for one in manifest.load(folder).brokers if _is_silent(one)]


def _is_silent(entry: BrokerEntry) -> bool:
    process = entry.process
    return process is None or not process.is_alive() or process.is_paused()


def has_trace(folder: Path) -> bool:
    return manifest.load(folder).trace


def add_status(seen: Observation, folder: Path) -> None:
    """Complete an observation. ClusterError if there is no cluster."""
    status = status_of(folder)
    seen.is_owned = seen.is_holdfast = True
    for row in status["brokers"]:
        known = seen.brokers.get(row["id"])
        facts = BrokerFacts(
            row["id"],
            row["address"],
            row["state"],
            is_controller=row["is_controller"],
            epoch=row["epoch"],
            faults=tuple(row["faults"]),
            bytes=known.bytes if known else None,
            pid=row["pid"],
        )
        seen.brokers[facts.id] = facts
    seen.brokers = dict(sorted(seen.brokers.items()))
    controllers = [one.id for one in seen.brokers.values() if one.is_controller]
    seen.controller = controllers[0] if len(controllers) == 1 else seen.controller
    for row in status["partitions"]:
        partition = _partition(seen, row)
        for broker, numbers in row["replicas"].items():
            _note(partition, int(broker), numbers)


def _partition(seen: Observation, row: dict[str, Any]) -> PartitionFacts:
    """The partition of a status row, with the newer of two leaders and ISRs."""
    name = row["partition"]
    topic, _, index = name.rpartition("-")
    brokers = tuple(int(one) for one in row["replicas"])
    new = PartitionFacts(topic, int(index), row["leader"], row["leader_epoch"], brokers, ())
    partition = seen.partitions.setdefault(name, new)
    best = max(row["replicas"].values(), key=lambda it: (it["leader_epoch"], it["partition_epoch"]))
    epochs = best["leader_epoch"], best["partition_epoch"]
    if epochs[0] >= partition.leader_epoch and best["isr"]:
        partition.leader_epoch, partition.partition_epoch = epochs
        partition.leader, partition.isr = best["leader"], tuple(best["isr"])
    return partition


def _note(partition: PartitionFacts, broker: int, numbers: dict[str, Any]) -> None:
    copy = partition.copy(broker)
    copy.log_start, copy.log_end = numbers["log_start"], numbers["leo"]
    copy.high_watermark, copy.flushed = numbers["hw"], numbers["flushed_offset"]
    copy.leader_epoch, copy.role = numbers["leader_epoch"], numbers["role"]
    copy.copy_problem, copy.at_least = numbers["copy_problem"], False
    if broker == partition.leader and copy.role == "leader":
        partition.start, partition.end = copy.log_start, copy.high_watermark
