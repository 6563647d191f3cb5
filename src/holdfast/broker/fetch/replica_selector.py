"""Reads from the nearest replica, where replica.selector.class asks for it (KIP-392)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.core import Leader
from holdfast.model import NO_BROKER, BrokerId

if TYPE_CHECKING:
    from holdfast.broker.node import Broker
    from holdfast.broker.replication.partition import Partition


def preferred_replica(
    broker: Broker, partition: Partition, rack: str, fetch_offset: int
) -> BrokerId:
    """The most advanced in-sync replica in the client's rack; -1 if that is the leader."""
    role = partition.replica.role
    if not rack or not isinstance(role, Leader) or not broker.settings.reads_nearest_replica:
        return NO_BROKER
    if broker.settings.broker_rack == rack:
        return NO_BROKER
    brokers = broker.metadata.brokers
    near = [
        progress
        for progress in role.insync.followers.values()
        if progress.broker in role.insync.isr
        and progress.broker in brokers
        and brokers[progress.broker].rack == rack
        and progress.log_end_offset >= fetch_offset
    ]
    return max(near, key=lambda one: one.log_end_offset).broker if near else NO_BROKER
