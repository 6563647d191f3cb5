"""The settings that act on a broker, with types, under Kafka's names with "_" for ".".

There are no defaults here: they are in the tables, and an object is made from `Layers` only.
`TopicConfigs` has what topics inherit (log.segment.bytes and others).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from holdfast.broker.settings.cross_checks import NEAREST_REPLICA
from holdfast.broker.settings.definition_tables import BROKER
from holdfast.broker.settings.layers import Layers
from holdfast.broker.settings.listeners import Endpoint, advertised, parse_address, parse_listener

STORE_FILE = "holdfast-store.sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """A broker's settings at one moment."""

    # Identity and addresses.
    node_id: int
    """node.id, or broker.id."""
    broker_rack: str | None
    listener: Endpoint
    listener_name: str
    advertised_listener: Endpoint
    log_dirs: tuple[Path, ...]
    """log.dirs, or log.dir."""
    store: Path | None
    """The file of the embedded store; None with ZooKeeper."""
    trace: Path | None
    control: Path | None
    metrics_listener: Endpoint | None
    zookeeper_connect: str | None
    zookeeper_session_timeout_ms: int
    zookeeper_connection_timeout_ms: int
    broker_session_timeout_ms: int
    """The session timeout of the embedded store."""

    # Connections.
    socket_request_max_bytes: int
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_listen_backlog_size: int
    socket_connection_setup_timeout_ms: int
    connections_max_idle_ms: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: Mapping[str, int]
    queued_max_request_bytes: int
    """-1: no limit."""
    request_timeout_ms: int
    max_request_partition_size_limit: int
    max_incremental_fetch_session_cache_slots: int
    fetch_max_bytes: int

    # Topics.
    num_partitions: int
    default_replication_factor: int
    auto_create_topics_enable: bool
    delete_topic_enable: bool

    # Replication.
    replica_lag_time_max_ms: int
    replica_fetch_wait_max_ms: int
    replica_fetch_min_bytes: int
    replica_fetch_max_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_backoff_ms: int
    replica_socket_timeout_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    reads_nearest_replica: bool
    """replica.selector.class is the rack-aware one."""
    leader_replication_throttled_rate: int
    follower_replication_throttled_rate: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    leader_imbalance_per_broker_percentage: int
    controlled_shutdown_enable: bool
    controlled_shutdown_max_retries: int
    controlled_shutdown_retry_backoff_ms: int

    # Log maintenance.
    log_retention_check_interval_ms: int
    log_cleaner_enable: bool
    log_cleaner_backoff_ms: int
    producer_id_expiration_ms: int

    # Groups.
    group_initial_rebalance_delay_ms: int
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int

    @property
    def session_timeout_ms(self) -> int:
        """The timeout of our session with the coordination store."""
        if self.store is not None:
            return self.broker_session_timeout_ms
        return self.zookeeper_session_timeout_ms

    @classmethod
    def of(cls, layers: Layers) -> BrokerSettings:
        """From layers without errors (see `server_properties`); otherwise ValueError."""
        chosen: dict[str, Any] = {}
        for field in fields(cls):
            name = field.name.replace("_", ".")
            make = SPECIAL.get(field.name)
            chosen[field.name] = make(layers) if make is not None else layers.value(name)
        return cls(**chosen)


def _node_id(layers: Layers) -> Any:
    node = layers.value("node.id")
    return layers.value("broker.id") if node is None else node


def _controllers(layers: Layers) -> Any:
    return layers.value("controller.listener.names") or ()


def _listener(layers: Layers) -> tuple[str, Endpoint]:
    entries: Any = layers.value("listeners")
    return parse_listener(entries, _controllers(layers))


def _advertised(layers: Layers) -> Endpoint:
    entries: Any = layers.value("advertised.listeners")
    return advertised(entries, _controllers(layers), _listener(layers)[1])


def _log_dirs(layers: Layers) -> tuple[Path, ...]:
    directories: Any = layers.value("log.dirs")
    if directories is None:
        directories = layers.value("log.dir")
    return tuple(Path(directory) for directory in directories)


def _store(layers: Layers) -> Path | None:
    """One file for all brokers of a machine, so it lies beside their log directories."""
    if layers.value("zookeeper.connect"):
        return None
    return _path("holdfast.store")(layers) or _log_dirs(layers)[0].parent / STORE_FILE


def _path(name: str) -> Callable[[Layers], Path | None]:
    def make(layers: Layers) -> Path | None:
        text = layers.value(name)
        return Path(str(text)) if text else None

    return make


def _metrics_listener(layers: Layers) -> Endpoint | None:
    text = layers.value("holdfast.metrics.listener")
    return parse_address(str(text)) if text else None


def _connection_timeout(layers: Layers) -> Any:
    chosen = layers.value("zookeeper.connection.timeout.ms")
    return layers.value("zookeeper.session.timeout.ms") if chosen is None else chosen


def _per_ip(layers: Layers) -> dict[str, int]:
    limits = {}
    for entry in str(layers.value("max.connections.per.ip.overrides")).split(","):
        if entry.strip():
            host, _, count = entry.strip().rpartition(":")
            if not host or not count.isdecimal():
                raise ValueError(f"'{entry.strip()}' is not of the form host:count")
            limits[host.strip("[]")] = int(count)
    return limits


SPECIAL: Mapping[str, Callable[[Layers], Any]] = {
    "node_id": _node_id,
    "listener": lambda layers: _listener(layers)[1],
    "listener_name": lambda layers: _listener(layers)[0],
    "advertised_listener": _advertised,
    "log_dirs": _log_dirs,
    "store": _store,
    "trace": _path("holdfast.trace"),
    "control": _path("holdfast.control"),
    "metrics_listener": _metrics_listener,
    "zookeeper_connect": lambda layers: layers.value("zookeeper.connect") or None,
    "zookeeper_connection_timeout_ms": _connection_timeout,
    "max_connections_per_ip_overrides": _per_ip,
    "reads_nearest_replica": lambda layers: (
        layers.value("replica.selector.class") == NEAREST_REPLICA
    ),
}
"""Fields that are not one setting under its own name."""

PARSED: Mapping[str, Callable[[Layers], Any]] = {
    "listeners": _listener,
    "advertised.listeners": _advertised,
    "max.connections.per.ip.overrides": _per_ip,
    "holdfast.metrics.listener": _metrics_listener,
}
"""Settings with a special format; each parser raises ValueError for an invalid text."""

assert all(name in BROKER for name in PARSED)
