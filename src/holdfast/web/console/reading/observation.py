"""What is known of a cluster at one moment, from all sources together. Unknown numbers are None."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Health = Literal["healthy", "under-replicated", "below-min", "offline"]
OFFLINE = "offline"
UP = ("running",)
DOWN = ("killed", "power-lost", "stopped", "died", OFFLINE)
"""The states of a broker; offline: not registered, for a reason that is not known."""


@dataclass(slots=True)
class ReplicaFacts:
    """One replica."""

    broker: int
    log_start: int | None = None
    log_end: int | None = None
    at_least: bool = False
    """Whether `log_end` is only a lower bound: the cluster did not report the exact offset."""
    high_watermark: int | None = None
    flushed: int | None = None
    leader_epoch: int | None = None
    last_epoch: int | None = None
    """The leader epoch of the last record."""
    role: str = ""
    bytes: int | None = None
    lag: int | None = None
    """The distance to the high watermark, by DescribeLogDirs."""
    copy_problem: str = ""


@dataclass(slots=True)
class PartitionFacts:
    """One partition."""

    topic: str
    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    eligible: tuple[int, ...] | None = None
    last_known: tuple[int, ...] = ()
    partition_epoch: int | None = None
    start: int | None = None
    end: int | None = None
    """The leader's high watermark: the end of what consumers read."""
    epochs: tuple[tuple[int, int], ...] = ()
    """The first offset of each leader epoch, newest first, as far as the leader was asked."""
    copies: dict[int, ReplicaFacts] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    def copy(self, broker: int) -> ReplicaFacts:
        """The facts of one replica, created if new."""
        return self.copies.setdefault(broker, ReplicaFacts(broker))

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of a record; the newest one if the leader was not asked."""
        return next((one for one, start in self.epochs if start <= offset), self.leader_epoch)

    def health(self, settings: TopicFacts | None) -> Health:
        if self.leader < 0:
            return "offline"
        least = settings.min_insync if settings else 1
        if len(self.isr) < min(least, len(self.replicas)):
            return "below-min"
        return "healthy" if len(self.isr) >= len(self.replicas) else "under-replicated"


@dataclass(slots=True)
class BrokerFacts:
    """One broker."""

    id: int
    address: str
    state: str = "running"
    is_controller: bool = False
    epoch: int | None = None
    faults: tuple[str, ...] = ()
    bytes: int | None = None
    pid: int | None = None

    @property
    def is_up(self) -> bool:
        return self.state in UP


@dataclass(slots=True)
class TopicFacts:
    """The settings of a topic that decide about losses."""

    min_insync: int = 1
    unclean: bool = False
    flush_messages: int | None = None


@dataclass(slots=True)
class GroupFacts:
    """One consumer group."""

    id: str
    state: str
    members: int
    kind: str
    coordinator: int
    lags: dict[str, int] = field(default_factory=dict)
    """Partition name to lag, for the partitions with a committed offset."""


@dataclass(slots=True)
class Observation:
    """The whole cluster."""

    cluster_id: str = ""
    is_holdfast: bool = False
    is_owned: bool = False
    """Whether `holdfast up` runs it on this machine."""
    controller: int = -1
    brokers: dict[int, BrokerFacts] = field(default_factory=dict)
    partitions: dict[str, PartitionFacts] = field(default_factory=dict)
    topics: dict[str, TopicFacts] = field(default_factory=dict)
    groups: dict[str, GroupFacts] = field(default_factory=dict)
    problem: str = ""
    """Why the cluster cannot be read, if it cannot."""
