"""Reads Kafka's own files: server.properties, and topic, producer and consumer settings.

A setting that the lab does not model is reported as not looked at. So are names that Kafka does not
have, such as settings of plugins. Only a name that looks like a typing error is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from holdfast.broker.settings import (
    BROKER,
    TOPIC,
    Layers,
    PropertiesError,
    TopicConfigs,
    flush_rule,
    nearest_name,
    read_properties,
)
from holdfast.core import FlushRule
from holdfast.lab.scenarios.options import MOST
from holdfast.search.advise.combination import AskedError, Given

Checks = Mapping[str, Callable[[str], Any]]

_SERVER: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "min.insync.replicas": ("min.insync.replicas",),
        "unclean.leader.election.enable": ("unclean.leader.election.enable",),
        "flush.messages": ("log.flush.interval.messages",),
        "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    }
)
"""Topic settings that are used, with their broker names."""
_OTHERS: Final = ("replica.selector.class", "default.replication.factor")


def _acks(text: str) -> str:
    if text not in ("0", "1", "all", "-1"):
        raise ValueError("must be 0, 1 or all")
    return text


def _boolean(text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("must be a number, 0 or more")
    return int(text)


FILES: Final[Mapping[str, Checks]] = MappingProxyType(
    {
        "server": {name: one.parse for name, one in BROKER.items()},
        "topic": {name: one.parse for name, one in TOPIC.items()},
        "producer": {"acks": _acks, "enable.idempotence": _boolean, "retries": _count},
        "consumer": {"enable.auto.commit": _boolean},
    }
)
"""The settings that are checked, per kind of file; of client settings only those that are used."""


def read_file(kind: str, text: str, title: str) -> dict[str, str]:
    """A file's entries. AskedError names a misspelt setting or an impossible value."""
    checks = FILES[kind]
    found: dict[str, str] = {}
    try:
        entries = read_properties(text)
    except PropertiesError as error:
        raise AskedError(f"{title}:{error.line}: {error.reason}") from None
    for name, value, line in entries:
        where = f"{title}:{line}"
        if name in checks:
            try:
                checks[name](value.strip())
            except (ValueError, KeyError) as error:
                hint = "see Kafka's manual"
                raise AskedError(f"{where}: {name}={value}: {error}", hint) from None
        elif meant := nearest_name(name, checks):
            hint = f"did you mean {meant}?"
            raise AskedError(f"{where}: {name} is not a setting of a {kind}", hint)
        found[name] = value.strip()
    return found


def of_logs(
    server: Mapping[str, str], topic: Mapping[str, str], source: str, *, all_of_it: bool
) -> Given:
    """The settings that result from a server.properties and a topic's own settings.

    `all_of_it`: whether the server's settings are complete, so that a missing one has Kafka's
    default.
    """
    configs = TopicConfigs(own=topic, layers=Layers(static=server))
    options = {
        "min_insync_replicas": str(configs.value("min.insync.replicas")),
        "unclean": "on" if configs.value("unclean.leader.election.enable") else "off",
        **_flush(configs.value("flush.messages"), configs.value("flush.ms")),
    }
    if all_of_it:
        nearest = bool(configs.layers.value("replica.selector.class"))
        options["reads"] = "any-replica" if nearest else "leader-only"
    factor = configs.layers.value("default.replication.factor") if all_of_it else None
    assert factor is None or isinstance(factor, int)
    looked_at = (*_SERVER, *(name for names in _SERVER.values() for name in names), *_OTHERS)
    return Given(
        source=source,
        replicas=factor,
        options=options,
        not_looked_at=_others((*server, *topic), looked_at),
    )


def _flush(messages: int, interval_ms: int) -> dict[str, str]:
    rule = flush_rule(messages, interval_ms)
    options = {"flush": rule.value}
    if rule in (FlushRule.EVERY_N_MESSAGES, FlushRule.EVERY_N_MESSAGES_OR_T_MS):
        options["log_flush_interval_messages"] = str(min(messages, MOST))
    if rule in (FlushRule.EVERY_T_MS, FlushRule.EVERY_N_MESSAGES_OR_T_MS):
        options["log_flush_interval_ms"] = str(min(interval_ms, MOST))
    return options


def of_producer(values: Mapping[str, str], source: str) -> Given:
    """The settings of a producer's file."""
    options: dict[str, str] = {}
    if "acks" in values:
        options["acks"] = "all" if values["acks"] == "-1" else values["acks"]
    if "enable.idempotence" in values:
        options["idempotence"] = _on_off(values["enable.idempotence"])
    if "retries" in values:
        options["retries"] = str(min(int(values["retries"]), MOST))
    looked_at = ("acks", "enable.idempotence", "retries")
    return Given(source=source, options=options, not_looked_at=_others(values, looked_at))


def of_consumer(values: Mapping[str, str], source: str) -> Given:
    """The settings of a consumer's file; by default Kafka's consumer commits automatically."""
    auto = _on_off(values.get("enable.auto.commit", "true")) == "on"
    return Given(
        source=source,
        options={"commit": "auto" if auto else "manual"},
        not_looked_at=_others(values, ("enable.auto.commit",)),
    )


def _on_off(text: str) -> str:
    return "on" if text.lower() == "true" else "off"


def _others(names: Iterable[str], looked_at: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(names) if name not in looked_at)
