"""What a metric is, and the parts of a broker that metrics are read from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from holdfast.broker.controller.controller_election import Elector
from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.histogram import Histogram
from holdfast.broker.membership.registration import Membership
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.network.listener import Listener
from holdfast.broker.network.request_counts import RequestCount, RequestCounts
from holdfast.broker.replication.isr_proposals import Proposals
from holdfast.broker.replication.partition import Partition
from holdfast.broker.replication.replicas import Replicas
from holdfast.broker.replication.topic_traffic import TopicTraffic
from holdfast.coordination import Store
from holdfast.core import Leader
from holdfast.core.groups import GroupState
from holdfast.storage import LogDirectories


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricParts:
    """The parts of a broker that its metrics are read from."""

    state: Callable[[], str]
    """starting, running or stopping."""
    listener: Listener
    requests: RequestCounts
    replicas: Replicas
    proposals: Proposals
    directory: LogDirectories
    groups: GroupCoordinator
    elector: Elector
    metadata: Metadata
    membership: Membership
    store: Store


class Scrape:
    """One request for the page. What several metrics need is read once."""

    def __init__(self, parts: MetricParts, loop_delay: Histogram) -> None:
        self.parts = parts
        self.loop_delay = loop_delay
        self.partitions = tuple(parts.replicas.partitions.values())
        """The page is made in pieces, and partitions may come and go meanwhile."""

    @cached_property
    def leaders(self) -> tuple[tuple[Partition, Leader], ...]:
        """The partitions that this broker leads."""
        roles = ((one, one.replica.role) for one in self.partitions)
        return tuple((one, role) for one, role in roles if isinstance(role, Leader))

    @cached_property
    def topics(self) -> dict[str, TopicTraffic]:
        return dict(self.parts.replicas.traffic.topics)

    @cached_property
    def traffic(self) -> TopicTraffic:
        """All topics together."""
        return self.parts.replicas.traffic.total()

    @cached_property
    def requests(self) -> dict[str, list[RequestCount]]:
        """The counts of each request: one for each of its versions."""
        found: dict[str, list[RequestCount]] = {}
        for count in self.parts.requests.all():
            found.setdefault(count.request, []).append(count)
        return found

    @cached_property
    def groups(self) -> Counter[GroupState]:
        """How many groups are in each state."""
        states = self.parts.groups.states()
        return Counter(group.state for groups in states for group in groups.list_groups())


class Summary(NamedTuple):
    """How many values there were, and their sum."""

    number: int
    total: float


Labels = tuple[str, ...]
Value = float | Summary | Histogram
Samples = Iterable[tuple[Labels, Value]]


class Metric(NamedTuple):
    """One metric: its name, and how it is read."""

    name: str
    kind: str
    """gauge, counter, summary or histogram. The name of a counter ends in _total."""
    help: str
    labels: Labels
    read: Callable[[Scrape], Samples]
    """The values of its labels, and its value, for each time series."""


def one(value: float | Histogram | Summary) -> Samples:
    """The only time series of a metric without labels."""
    yield (), value
