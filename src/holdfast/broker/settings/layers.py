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


_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "segment.bytes": ("log.segment.bytes",),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "retention.bytes": ("log.retention.bytes",),
    "cleanup.policy": ("log.cleanup.policy",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "max.message.bytes": ("message.max.bytes",),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
    "min.insync.replicas": ("min.insync.replicas",),
    "compression.type": ("compression.type",),
    "compression.gzip.level": ("compression.gzip.level",),
    "compression.lz4.level": ("compression.lz4.level",),
    "compression.zstd.level": ("compression.zstd.level",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "message.timestamp.difference.max.ms": ("log.message.timestamp.difference.max.ms",),
    "message.downconversion.enable": ("log.message.downconversion.enable",),
    "message.format.version": ("log.message.format.version",),
    "preallocate": ("log.preallocate",),
    "local.retention.ms": ("log.local.retention.ms",),
    "local.retention.bytes": ("log.local.retention.bytes",),
}
_WORTH_MS: Mapping[str, int] = {"minutes": 60_000, "hours": 3_600_000}

TOPIC_SYNONYMS: Mapping[str, tuple[Unit, ...]] = MappingProxyType(
    {
        name: tuple(Unit(one, _WORTH_MS.get(one.rpartition(".")[2], 1)) for one in synonyms)
        for name, synonyms in _SYNONYMS.items()
    }
)
"""A topic's setting and the broker's settings it falls back to, the finest unit first."""


def broker_synonyms(name: str) -> tuple[str, ...]:
    """A broker's setting and its synonyms in coarser units."""
    for units in TOPIC_SYNONYMS.values():
        names = [unit.name for unit in units]
        if name in names:
            return tuple(names[names.index(name) :])
    return (name,)
