"""The answers of DescribeConfigs: each setting, its source, and its synonyms."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import dropwhile
from typing import Final, NamedTuple

from holdfast.broker.settings.definition_tables import BROKER, FIXED, TOPIC
from holdfast.broker.settings.layers import Found, Layers, Source, broker_synonyms
from holdfast.broker.settings.setting import (
    Allowed,
    Change,
    Kind,
    Setting,
    Value,
    value_text,
)
from holdfast.broker.settings.topic_settings import TopicConfigs


class Synonym(NamedTuple):
    """A value of a synonym in one layer."""

    name: str
    value: str | None
    source: Source


class DescribedConfig(NamedTuple):
    """One setting of a topic or a broker."""

    name: str
    value: str | None
    """None for a sensitive setting, or if there is no value."""
    read_only: bool
    is_default: bool
    source: Source
    is_sensitive: bool
    synonyms: tuple[Synonym, ...]
    kind: Kind
    """`kind.value` is the type code of the answer."""
    documentation: str


def describe_topic(
    topic: TopicConfigs, names: Collection[str] | None = None
) -> list[DescribedConfig]:
    """All settings of a topic, or the requested ones that exist."""
    rows = []
    for setting in _asked(TOPIC.values(), names):
        found = topic.effective(setting.name)
        rows.append(_row(setting, found.value, found.synonyms))
    return rows


def describe_broker(layers: Layers, names: Collection[str] | None = None) -> list[DescribedConfig]:
    """All settings of a broker, or the requested ones that exist."""
    return [
        _row(setting, layers.value(setting.name), _of_broker(layers, setting.name))
        for setting in _asked(BROKER.values(), names)
    ]


def describe_cluster(layers: Layers, names: Collection[str] | None = None) -> list[DescribedConfig]:
    """The settings that were set for all brokers."""
    shared = Layers(cluster=layers.cluster)
    asked = [name for name in layers.cluster if names is None or name in names]
    rows = describe_broker(shared, asked)
    wanted = Source.DYNAMIC_DEFAULT_BROKER_CONFIG
    return [
        row._replace(synonyms=tuple(one for one in row.synonyms if one.source is wanted))
        for row in rows
    ]


def describe_group(layers: Layers, names: Collection[str] | None = None) -> list[DescribedConfig]:
    """All settings of a group, or the requested ones that exist.

    They apply to groups of the new protocols only, which this broker does not serve: each has the
    value of the broker's own setting, and cannot be changed.
    """
    rows = []
    for setting in _asked(GROUP, names):
        name = f"group.{setting.name}"
        if name in BROKER:
            rows.append(_row(setting, layers.value(name), tuple(layers.found(name))))
        else:
            found = Found(setting.name, setting.default or "", Source.DEFAULT_CONFIG)
            rows.append(_row(setting, setting.default, (found,)))
    return rows


def _own_of_group(name: str, kind: Kind, default: str) -> Setting:
    return Setting(
        name=name,
        kind=kind,
        default=default,
        is_required=False,
        allowed=Allowed(),
        change=Change.READ_ONLY,
        importance="medium",
        test=None,
        meaning="",
    )


_FROM_BROKER: Final = (
    "consumer.assignment.interval.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "share.assignment.interval.ms",
    "share.delivery.count.limit",
    "share.heartbeat.interval.ms",
    "share.partition.max.record.locks",
    "share.record.lock.duration.ms",
    "share.session.timeout.ms",
    "streams.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.initial.rebalance.delay.ms",
    "streams.num.standby.replicas",
    "streams.session.timeout.ms",
)
"""Settings of a group that fall back to the broker's `group.` setting of the same name."""

GROUP: Final = (
    *(replace(BROKER[f"group.{name}"], name=name) for name in _FROM_BROKER),
    _own_of_group("share.auto.offset.reset", Kind.STRING, "latest"),
    _own_of_group("share.isolation.level", Kind.STRING, "read_uncommitted"),
    _own_of_group("share.renew.acknowledge.enable", Kind.BOOLEAN, "true"),
)
"""Every setting that a group has in Kafka 4.3.1."""


def _asked(settings: Iterable[Setting], names: Collection[str] | None) -> list[Setting]:
    if names is None:
        return [setting for setting in settings if setting.importance != "internal"]
    return [setting for setting in settings if setting.name in names]


def _of_broker(layers: Layers, name: str) -> tuple[Found, ...]:
    """Describe a setting; its synonyms are listed but do not give its value."""
    found = layers.found(*broker_synonyms(name))
    return tuple(dropwhile(lambda one: one.name != name, found))


def _row(setting: Setting, value: Value, found: tuple[Found, ...]) -> DescribedConfig:
    source = found[0].source if found else Source.DEFAULT_CONFIG
    hidden = setting.is_sensitive
    return DescribedConfig(
        name=setting.name,
        value=None if hidden else value_text(value),
        read_only=not setting.is_dynamic or setting.name in FIXED,
        is_default=source is Source.DEFAULT_CONFIG,
        source=source,
        is_sensitive=hidden,
        synonyms=tuple(
            Synonym(one.name, None if hidden else one.text, one.source) for one in found
        ),
        kind=setting.kind,
        documentation=setting.meaning,
    )
