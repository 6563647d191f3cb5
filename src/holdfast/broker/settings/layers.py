"""The source of a setting's value: the topic, one broker, all brokers, the file, or the default.

The layers of a broker, from the strongest: set for this broker while it ran, set for all brokers,
its file, the default. Within a layer the finest unit wins: of log.retention.ms, minutes and hours
the first that is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from holdfast.broker.settings.definition_tables import BROKER
from holdfast.broker.settings.setting import Value
from holdfast.storage import BROKER_NAMES


class Source(IntEnum):
    """The source of a value, by its code in DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class Found(NamedTuple):
    """The text of a value in one layer."""

    name: str
    text: str
    source: Source


@dataclass(frozen=True, slots=True)
class Layers:
    """All layers of one broker's settings. Only known names and valid values."""

    static: Mapping[str, str] = field(default_factory=dict)
    """Its file and the overrides on the command line."""
    cluster: Mapping[str, str] = field(default_factory=dict)
    """Set for all brokers while they run."""
    broker: Mapping[str, str] = field(default_factory=dict)
    """Set for this broker while it runs."""

    def found(self, *names: str) -> Iterator[Found]:
        """The values of some names in all layers, the strongest first, defaults last."""
        layers = (
            (self.broker, Source.DYNAMIC_BROKER_CONFIG),
            (self.cluster, Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self.static, Source.STATIC_BROKER_CONFIG),
        )
        for layer, source in layers:
            for name in names:
                if name in layer:
                    yield Found(name, layer[name], source)
        for name in names:
            default = BROKER[name].default
            if default is not None:
                yield Found(name, default, Source.DEFAULT_CONFIG)

    def value(self, name: str) -> Value:
        """The effective value; None if there is none."""
        for found in self.found(name):
            return BROKER[name].parse(found.text)
        return None


class Unit(NamedTuple):
    """A broker's synonym of a topic's setting, and its unit."""

    name: str
    worth: int


def _broker_names() -> dict[str, tuple[Unit, ...]]:
    names = {
        attribute.replace("_", "."): tuple(Unit(*pair) for pair in pairs)
        for attribute, pairs in BROKER_NAMES.items()
    }
    # Not a topic's setting in Kafka; storage has it per log.
    del names["producer.id.expiration.ms"]
    for name in ("unclean.leader.election.enable", "min.insync.replicas", "compression.type"):
        names[name] = (Unit(name, 1),)
    for codec in ("gzip", "lz4", "zstd"):
        names[f"compression.{codec}.level"] = (Unit(f"compression.{codec}.level", 1),)
    for name in ("type", "before.max.ms", "after.max.ms", "difference.max.ms"):
        names[f"message.timestamp.{name}"] = (Unit(f"log.message.timestamp.{name}", 1),)
    for name in ("preallocate", "local.retention.ms", "local.retention.bytes"):
        names[name] = (Unit(f"log.{name}", 1),)
    for name in ("message.downconversion.enable", "message.format.version"):
        names[name] = (Unit(f"log.{name}", 1),)
    jitter = (Unit("log.roll.jitter.ms", 1), Unit("log.roll.jitter.hours", 3_600_000))
    names["segment.jitter.ms"] = jitter
    return names


TOPIC_SYNONYMS: Mapping[str, tuple[Unit, ...]] = MappingProxyType(_broker_names())
"""A topic's setting and the broker's settings it falls back to, the finest unit first."""


def broker_synonyms(name: str) -> tuple[str, ...]:
    """A broker's setting and its synonyms in coarser units."""
    for units in TOPIC_SYNONYMS.values():
        names = [unit.name for unit in units]
        if name in names:
            return tuple(names[names.index(name) :])
    return (name,)
