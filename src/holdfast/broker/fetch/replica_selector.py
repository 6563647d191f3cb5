"""Reads from the nearest replica, where replica.selector.class asks for it (KIP-392)."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.broker.metadata.metadata_cache import KnownBroker
from holdfast.broker.settings import BrokerSettings
from holdfast.core import Leader, Replica
from holdfast.model import NO_BROKER, BrokerId


def preferred_replica(
    settings: BrokerSettings,
    brokers: Mapping[BrokerId, KnownBroker],
    replica: Replica,
    rack: str,
    fetch_offset: int,
) -> BrokerId:
    """The most advanced in-sync replica in the client's rack; -1 if that is the leader."""
    role = replica.role
    if not isinstance(role, Leader) or not settings.reads_nearest_replica:
        return NO_BROKER
    if settings.broker_rack == rack:
        return NO_BROKER
    near = [
        progress
        for progress in role.insync.followers.values()
        if progress.broker in role.insync.isr
        and progress.broker in brokers
        and brokers[progress.broker].rack == rack
        and progress.log_end_offset >= fetch_offset
    ]
    return max(near, key=lambda one: one.log_end_offset).broker if near else NO_BROKER
