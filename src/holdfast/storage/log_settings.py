"""The settings of one log, with Kafka's names and defaults.

A topic's own setting overrides the broker's. If several broker settings set the same thing, the
finest unit wins (log.retention.ms over minutes over hours).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

FOREVER = 2**63 - 1
_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Settings by their topic-level names, with "_" for "."."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 168 * _HOUR_MS
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    retention_ms: int = 168 * _HOUR_MS
    """-1: forever."""
    retention_bytes: int = -1
    """-1: no limit."""
    cleanup_policy: tuple[str, ...] = ("delete",)
    delete_retention_ms: int = 24 * _HOUR_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER
    min_cleanable_dirty_ratio: float = 0.5
    file_delete_delay_ms: int = _MINUTE_MS
    max_message_bytes: int = 1_048_588
    producer_id_expiration_ms: int = 24 * _HOUR_MS

    @property
    def is_compacted(self) -> bool:
        """Whether the log is compacted, so that offsets may be missing."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """Whether retention may delete old segments."""
        return "delete" in self.cleanup_policy


def _policy(text: str) -> tuple[str, ...]:
    policies = tuple(sorted({part.strip() for part in text.split(",") if part.strip()}))
    if not set(policies) <= {"compact", "delete"}:
        raise ValueError(f"cleanup.policy is compact, delete or both, not {text!r}")
    return policies


BROKER_NAMES: dict[str, tuple[tuple[str, int], ...]] = {
    "segment_bytes": (("log.segment.bytes", 1),),
    "segment_ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
    "segment_index_bytes": (("log.index.size.max.bytes", 1),),
    "index_interval_bytes": (("log.index.interval.bytes", 1),),
    "flush_messages": (("log.flush.interval.messages", 1),),
    "flush_ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "retention_ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ),
    "retention_bytes": (("log.retention.bytes", 1),),
    "cleanup_policy": (("log.cleanup.policy", 1),),
    "delete_retention_ms": (("log.cleaner.delete.retention.ms", 1),),
    "min_compaction_lag_ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "max_compaction_lag_ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "min_cleanable_dirty_ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "file_delete_delay_ms": (("log.segment.delete.delay.ms", 1),),
    "max_message_bytes": (("message.max.bytes", 1),),
    "producer_id_expiration_ms": (("producer.id.expiration.ms", 1),),
}
"""The broker settings that each field falls back to, with their units, finest first. The defaults
that topics inherit elsewhere come from this table."""


def log_settings(topic: Mapping[str, str], broker: Mapping[str, str]) -> LogSettings:
    """One log's settings from the properties of its topic and of its broker.

    Ignores names that are not about logs. Raises ValueError with the name of a wrong property.
    """
    chosen: dict[str, Any] = {}
    for field in fields(LogSettings):
        default = LogSettings.__dataclass_fields__[field.name].default
        read: Callable[[str], Any] = type(default) if not isinstance(default, tuple) else _policy
        sources = [(topic, field.name.replace("_", "."), 1)]
        sources += [(broker, name, unit) for name, unit in BROKER_NAMES[field.name]]
        for properties, name, unit in sources:
            if name in properties:
                chosen[field.name] = _value(name, properties[name], read, unit)
                break
    return LogSettings(**chosen)


def _value(name: str, text: str, read: Callable[[str], Any], unit: int) -> Any:
    try:
        value = read(text.strip())
    except ValueError as error:
        raise ValueError(f"{name}={text}: {error}") from None
    return value * unit if unit > 1 and value >= 0 else value
