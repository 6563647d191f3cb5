"""Checks settings against each other, and against what Holdfast supports.

Kafka checks some of these when it starts, and others never. A combination that can only be a
mistake is an error; one that may be intended is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from holdfast.broker.settings.setting import Value

ValueOf = Callable[[str], Value]
"""Returns a setting's value, if it is valid."""


class Conflict(NamedTuple):
    """A problem of one or more settings together."""

    names: tuple[str, ...]
    """The first one is reported."""
    reason: str
    is_error: bool = True


class _Order(NamedTuple):
    smaller: str
    larger: str
    why: str


_ORDERS = (
    _Order(
        "replica.fetch.wait.max.ms",
        "replica.lag.time.max.ms",
        "a follower of a quiet partition would leave the ISR while it waits for records",
    ),
    _Order(
        "replica.fetch.wait.max.ms",
        "replica.socket.timeout.ms",
        "a follower's fetch would time out while the leader may still hold it",
    ),
    _Order(
        "group.min.session.timeout.ms",
        "group.max.session.timeout.ms",
        "no session timeout would be accepted from any member",
    ),
    _Order(
        "log.cleaner.min.compaction.lag.ms",
        "log.cleaner.max.compaction.lag.ms",
        "a record would have to be compacted before it may be",
    ),
    _Order(
        "message.max.bytes",
        "socket.request.max.bytes",
        "the largest batch would not fit into any request",
    ),
)

_AT_LEAST: Mapping[str, int] = {
    "broker.session.timeout.ms": 1,
    "controlled.shutdown.max.retries": 0,
    "controlled.shutdown.retry.backoff.ms": 0,
    "default.replication.factor": 1,
    "group.initial.rebalance.delay.ms": 0,
    "group.max.session.timeout.ms": 1,
    "group.min.session.timeout.ms": 1,
    "leader.imbalance.per.broker.percentage": 0,
    "log.flush.interval.ms": 0,
    "log.roll.ms": 1,
    "offset.metadata.max.bytes": 0,
    "replica.fetch.min.bytes": 0,
    "replica.fetch.wait.max.ms": 0,
    "replica.high.watermark.checkpoint.interval.ms": 1,
    "replica.lag.time.max.ms": 1,
    "replica.socket.timeout.ms": 1,
    "request.timeout.ms": 1,
    "socket.connection.setup.timeout.ms": 1,
    "socket.receive.buffer.bytes": -1,
    "socket.send.buffer.bytes": -1,
    "zookeeper.connection.timeout.ms": 1,
    "zookeeper.session.timeout.ms": 1,
}
"""Minimums that Kafka's own definitions omit; below them a broker could not work."""

_SELECTORS = (
    "org.apache.kafka.common.replica.LeaderSelector",
    "org.apache.kafka.common.replica.RackAwareReplicaSelector",
)
NEAREST_REPLICA = _SELECTORS[1]


def conflicts(value: ValueOf) -> Iterator[Conflict]:
    """All conflicts."""
    for name, least in _AT_LEAST.items():
        if (number := _number(value, name)) is not None and number < least:
            yield Conflict((name,), f"Value must be at least {least}")
    for smaller, larger, why in _ORDERS:
        low, high = _number(value, smaller), _number(value, larger)
        if low is not None and high is not None and low > high:
            yield Conflict((larger, smaller), f"is below {smaller}={low:.15g}: {why}")
    yield from _identity(value)
    yield from _limits(value)
    yield from _places(value)
    factor, least_isr = value("default.replication.factor"), value("min.insync.replicas")
    if isinstance(factor, int) and isinstance(least_isr, int) and least_isr > factor:
        text = f"is above default.replication.factor={factor}: such topics refuse acks=all"
        yield Conflict(("min.insync.replicas",), text, is_error=False)


def _identity(value: ValueOf) -> Iterator[Conflict]:
    node, broker = value("node.id"), value("broker.id")
    if node is None and broker == -1:
        yield Conflict(("node.id",), "is missing: every broker needs a number of its own")
    if node is not None and isinstance(broker, int) and broker not in (-1, node):
        yield Conflict(("broker.id", "node.id"), f"contradicts node.id={node}")
    if isinstance(broker, int) and broker < -1:
        yield Conflict(("broker.id",), "Value must be at least 0")


def _limits(value: ValueOf) -> Iterator[Conflict]:
    queued, request = value("queued.max.request.bytes"), value("socket.request.max.bytes")
    if isinstance(queued, int) and isinstance(request, int) and 0 < queued < request:
        reason = f"is below socket.request.max.bytes={request}: such a request could never be read"
        yield Conflict(("queued.max.request.bytes", "socket.request.max.bytes"), reason)
    if value("max.connections.per.ip") == 0 and not value("max.connections.per.ip.overrides"):
        reason = "0 is possible only with max.connections.per.ip.overrides"
        yield Conflict(("max.connections.per.ip",), reason)
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if value(name) == 0:
            yield Conflict((name,), "0 would delete every closed segment immediately; -1 keeps all")
    selector = value("replica.selector.class")
    if selector and selector not in _SELECTORS:
        reason = f"no Java class can be loaded here; known are {', '.join(_SELECTORS)}"
        yield Conflict(("replica.selector.class",), reason)


def _places(value: ValueOf) -> Iterator[Conflict]:
    if value("zookeeper.connect") and value("holdfast.store"):
        reason = "only one coordination store is possible, and zookeeper.connect names another"
        yield Conflict(("holdfast.store", "zookeeper.connect"), reason)
    for name in ("log.dirs", "log.dir"):
        directories = value(name)
        if isinstance(directories, tuple) and (not directories or "" in directories):
            yield Conflict((name,), "names an empty path")
        if isinstance(directories, tuple) and len(dict.fromkeys(directories)) < len(directories):
            yield Conflict((name,), "names a directory twice")


def _number(value: ValueOf, name: str) -> float | None:
    found = value(name)
    return found if isinstance(found, int | float) else None
