"""Settings of topics and brokers: what holds, where it comes from, set and remove."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from holdfast.cluster.admin.connection import REQUEST_S, Connection
from holdfast.cluster.admin.errors import answers

KINDS: Final = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER}
DEFAULT: Final = ConfigSource.DEFAULT_CONFIG.value

Entries = Mapping[str, ConfigEntry]


def describe(
    connection: Connection, kind: str, names: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """All settings of each resource, sorted."""
    return {
        name: [_row(entry) for _, entry in sorted(entries.items())]
        for name, entries in _entries(connection, kind, names).items()
    }


def values_of_topics(connection: Connection, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """What was set for each topic itself."""
    source = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {
        name: {
            entry.name: entry.value or ""
            for _, entry in sorted(entries.items())
            if _number(entry.source) == source
        }
        for name, entries in _entries(connection, "topic", names).items()
    }


def set_values(
    connection: Connection,
    kind: str,
    name: str,
    values: Mapping[str, str],
    deleted: Iterable[str] = (),
) -> None:
    """Set some settings and remove others, in one request."""
    changes = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in values.items()
    ]
    changes += [
        ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in deleted
    ]
    resource = ConfigResource(KINDS[kind], name, incremental_configs=changes)
    futures = connection.admin.incremental_alter_configs([resource], request_timeout=REQUEST_S)
    answers(futures, lambda _: f"alter {kind} {name}")


def _entries(connection: Connection, kind: str, names: Sequence[str]) -> dict[str, Entries]:
    """One request per resource: librdkafka sends at most one that asks a broker."""
    found: dict[str, Entries] = {}
    batches = [names] if kind == "topic" else [[name] for name in names]
    for batch in batches:
        resources = [ConfigResource(KINDS[kind], name) for name in batch]
        if resources:
            futures = connection.admin.describe_configs(resources, request_timeout=REQUEST_S)
            done = answers(futures, lambda one: f"describe {kind} {one.name}")
            found |= {one.name: entries for one, entries in done.items()}
    return found


def _row(entry: ConfigEntry) -> dict[str, Any]:
    synonyms = [(one.name, one.value, _number(one.source)) for one in entry.synonyms.values()]
    return row(
        entry.name,
        entry.value,
        _number(entry.source),
        synonyms,
        is_read_only=bool(entry.is_read_only),
        is_sensitive=bool(entry.is_sensitive),
    )


def _number(source: Any) -> int:
    """The type says ConfigSource; librdkafka's answers have its number."""
    return int(source.value if isinstance(source, ConfigSource) else source)


def row(
    name: str,
    value: str | None,
    source: int,
    synonyms: Iterable[tuple[str, str | None, int]],
    *,
    is_read_only: bool,
    is_sensitive: bool,
) -> dict[str, Any]:
    """One setting. Its default may have another name: the broker's, in another unit."""
    defaults = [(one, found) for one, found, kind in synonyms if kind == DEFAULT]
    if not defaults and source == DEFAULT:
        defaults = [(name, value)]
    default_name, default = defaults[0] if defaults else (None, None)
    return {
        "name": name,
        "value": value,
        "source": ConfigSource(source).name,
        "default": default,
        "default_name": default_name,
        "is_read_only": is_read_only,
        "is_sensitive": is_sensitive,
    }
