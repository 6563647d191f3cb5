"""The effective settings of a topic: its own, over those of its broker.

A topic's setting falls back to the broker's synonym (`TOPIC_SYNONYMS`), through all layers, and
finally to the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from holdfast.broker.settings.definition_tables import BROKER, TOPIC
from holdfast.broker.settings.layers import TOPIC_SYNONYMS, Found, Layers, Source
from holdfast.broker.settings.setting import Value
from holdfast.broker.settings.typed_settings import BrokerSettings
from holdfast.core import FlushRule, ReadRule, Settings
from holdfast.protocol.records import Compression, Rules
from holdfast.storage import LogSettings

_NEVER = 2**63 - 1
"""flush.messages and flush.ms: the page cache decides."""


class Effective(NamedTuple):
    """The effective value for a topic."""

    name: str
    value: Value
    source: Source
    synonyms: tuple[Found, ...]
    """Its values in all layers, the strongest first, as text."""


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """Throttled replicas, as partition:broker; * for all."""

    entries: tuple[str, ...] = ()

    def has(self, partition: int, broker: int) -> bool:
        return "*" in self.entries or f"{partition}:{broker}" in self.entries


class TopicSettings(NamedTuple):
    """A topic's typed settings, each part for its user."""

    log: LogSettings
    core: Settings
    records: Rules
    leader_throttled: ThrottledReplicas
    follower_throttled: ThrottledReplicas


@dataclass(frozen=True, slots=True)
class TopicConfigs:
    """A topic's own settings, checked, over its broker's layers."""

    own: Mapping[str, str] = field(default_factory=dict)
    layers: Layers = field(default_factory=Layers)

    def effective(self, name: str) -> Effective:
        """KeyError for a name that topics do not have."""
        setting = TOPIC[name]
        units = {unit.name: unit.worth for unit in TOPIC_SYNONYMS.get(name, ())}
        found = list(self.layers.found(*units))
        if name in self.own:
            found.insert(0, Found(name, self.own[name], Source.DYNAMIC_TOPIC_CONFIG))
        if not found:
            return Effective(name, setting.default_value(), Source.DEFAULT_CONFIG, ())
        first = found[0]
        if first.source is Source.DYNAMIC_TOPIC_CONFIG:
            value = setting.parse(first.text)
        else:
            value = _in_topic_units(BROKER[first.name].parse(first.text), units[first.name])
        return Effective(name, value, first.source, tuple(found))

    def value(self, name: str) -> Any:
        """The effective value, typed."""
        return self.effective(name).value

    def log_settings(self) -> LogSettings:
        """The settings of storage."""
        names = {one.name: one.name.replace("_", ".") for one in fields(LogSettings)}
        chosen = {field: self.value(name) for field, name in names.items() if name in TOPIC}
        # Not a topic's setting in Kafka; storage has it per log.
        chosen["producer_id_expiration_ms"] = self.layers.value("producer.id.expiration.ms")
        small = self.value("internal.segment.bytes")
        if small is not None:
            chosen["segment_bytes"] = small
        return LogSettings(**chosen)

    def replica_settings(self, broker: BrokerSettings) -> Settings:
        """The settings of the core."""
        messages, interval_ms = self.value("flush.messages"), self.value("flush.ms")
        nearest = broker.reads_nearest_replica
        return Settings(
            min_insync_replicas=self.value("min.insync.replicas"),
            unclean_leader_election_enable=self.value("unclean.leader.election.enable"),
            replica_lag_time_max_ms=broker.replica_lag_time_max_ms,
            replica_fetch_wait_max_ms=broker.replica_fetch_wait_max_ms,
            flush_rule=flush_rule(messages, interval_ms),
            log_flush_interval_messages=messages,
            log_flush_interval_ms=interval_ms,
            read_rule=ReadRule.ANY_REPLICA if nearest else ReadRule.LEADER_ONLY,
        )

    def record_rules(self, log: LogSettings) -> Rules:
        """What producers may send."""
        return Rules(
            max_message_bytes=log.max_message_bytes,
            is_append_time=self.value("message.timestamp.type") == "LogAppendTime",
            timestamp_before_max_ms=self.value("message.timestamp.before.max.ms"),
            timestamp_after_max_ms=self.value("message.timestamp.after.max.ms"),
            needs_keys=log.is_compacted,
            compression=_codec(self.value("compression.type")),
        )

    def settings(self, broker: BrokerSettings) -> TopicSettings:
        """All settings that act. `broker` has the settings from the same layers."""
        log = self.log_settings()
        return TopicSettings(
            log,
            self.replica_settings(broker),
            self.record_rules(log),
            ThrottledReplicas(self.value("leader.replication.throttled.replicas")),
            ThrottledReplicas(self.value("follower.replication.throttled.replicas")),
        )


def flush_rule(messages: int, interval_ms: int) -> FlushRule:
    """flush.messages=1 is more than a count: nothing is acknowledged before it is on the disk."""
    if messages == 1:
        return FlushRule.EVERY_APPEND
    by_count, by_time = messages != _NEVER, interval_ms != _NEVER
    if by_count and by_time:
        return FlushRule.EVERY_N_MESSAGES_OR_T_MS
    if by_count:
        return FlushRule.EVERY_N_MESSAGES
    return FlushRule.EVERY_T_MS if by_time else FlushRule.PAGE_CACHE


def _in_topic_units(value: Value, worth: int) -> Value:
    """Hours as milliseconds; -1 (no limit) has no unit."""
    if worth > 1 and isinstance(value, int) and value >= 0:
        return value * worth
    return value


def _codec(name: str) -> int | None:
    """compression.type: the codec of stored batches; None for the producer's."""
    if name == "producer":
        return None
    return Compression.NONE if name == "uncompressed" else Compression[name.upper()]
