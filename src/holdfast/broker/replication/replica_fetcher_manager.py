"""All replica fetchers of a broker: one per leader that it follows."""

from __future__ import annotations

from holdfast.broker.replication.partition import Partition
from holdfast.broker.replication.replica_fetcher import Fetcher, FetcherParts
from holdfast.core import Follower
from holdfast.model import NO_BROKER, BrokerId


class Fetchers:
    """All fetchers of a broker, by leader."""

    def __init__(self, parts: FetcherParts) -> None:
        self._parts = parts
        self._fetchers: dict[BrokerId, Fetcher] = {}
        self._leaders: dict[Partition, BrokerId] = {}

    def follow(self, partition: Partition) -> None:
        """Fetch from the replica's current leader, if it has one."""
        role = partition.replica.role
        leader = role.leader if isinstance(role, Follower) else NO_BROKER
        known = self._leaders.get(partition, NO_BROKER)
        if known not in (leader, NO_BROKER):
            self._fetchers[known].remove(partition)
        if leader == NO_BROKER:
            self._leaders.pop(partition, None)
            return
        self._leaders[partition] = leader
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = Fetcher(self._parts, leader)
        fetcher.add(partition)

    def flushed(self, partition: Partition) -> None:
        """A flush has ended: a follower that reports only flushed records may fetch more."""
        leader = self._leaders.get(partition, NO_BROKER)
        if leader != NO_BROKER:
            self._fetchers[leader].ask_again(partition)

    def forget(self, partition: Partition) -> None:
        """The partition has left this broker or gone offline."""
        leader = self._leaders.pop(partition, NO_BROKER)
        if leader != NO_BROKER:
            self._fetchers[leader].remove(partition)
