"""What DescribeConfigs answers: each setting, where it comes from, what it would be otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import dropwhile
from typing import NamedTuple

from holdfast.broker.settings.layers import Found, Layers, Source, broker_synonyms
from holdfast.broker.settings.setting import Kind, Setting, Value, value_text
from holdfast.broker.settings.table import BROKER, FIXED, TOPIC
from holdfast.broker.settings.topics import TopicConfigs


class Synonym(NamedTuple):
    """A value of the same meaning in one layer."""

    name: str
    value: str | None
    source: Source


class Described(NamedTuple):
    """One setting of a topic or a broker."""

    name: str
    value: str | None
    """None for a secret, or if there is none."""
    read_only: bool
    is_default: bool
    source: Source
    is_sensitive: bool
    synonyms: tuple[Synonym, ...]
    kind: Kind
    """`kind.value` is the type code of the answer."""
    documentation: str


def describe_topic(topic: TopicConfigs, names: Collection[str] | None = None) -> list[Described]:
    """All settings of a topic, or those asked for that exist."""
    rows = []
    for setting in _asked(TOPIC.values(), names):
        found = topic.effective(setting.name)
        rows.append(_row(setting, found.value, found.synonyms))
    return rows


def describe_broker(layers: Layers, names: Collection[str] | None = None) -> list[Described]:
    """All settings of a broker, or those asked for that exist."""
    return [
        _row(setting, layers.value(setting.name), _of_broker(layers, setting.name))
        for setting in _asked(BROKER.values(), names)
    ]


def describe_cluster(layers: Layers, names: Collection[str] | None = None) -> list[Described]:
    """Only what was set for all brokers."""
    shared = Layers(cluster=layers.cluster)
    asked = [name for name in layers.cluster if names is None or name in names]
    rows = describe_broker(shared, asked)
    wanted = Source.DYNAMIC_DEFAULT_BROKER_CONFIG
    return [
        row._replace(synonyms=tuple(one for one in row.synonyms if one.source is wanted))
        for row in rows
    ]


def _asked(settings: Iterable[Setting], names: Collection[str] | None) -> list[Setting]:
    if names is None:
        return [setting for setting in settings if setting.importance != "internal"]
    return [setting for setting in settings if setting.name in names]


def _of_broker(layers: Layers, name: str) -> tuple[Found, ...]:
    """What is said of a setting; what stands in for it only below that, for it is not its value."""
    found = layers.found(*broker_synonyms(name))
    return tuple(dropwhile(lambda one: one.name != name, found))


def _row(setting: Setting, value: Value, found: tuple[Found, ...]) -> Described:
    source = found[0].source if found else Source.DEFAULT_CONFIG
    hidden = setting.is_sensitive
    return Described(
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
