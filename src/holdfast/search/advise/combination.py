"""The combination of settings to judge, as lab options, and the settings that the lab lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from holdfast.core import ACKS_ALL
from holdfast.lab.scenarios.options import build, parse_option

MOST_REPLICAS: Final = 5
"""No search completes with more replicas."""

DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "min_insync_replicas": "1",
        "unclean": "off",
        "flush": "page-cache",
        "reads": "leader-only",
        "acks": "all",
        "retries": "1000000000",
    }
)
"""Kafka's defaults, as lab options. Without consumer settings the consumer is not judged."""

OF_LOGS: Final = (
    "min_insync_replicas",
    "unclean",
    "flush",
    "log_flush_interval_messages",
    "log_flush_interval_ms",
    "acks",
)
"""The options that searches and trials use; the others are for clients."""


class AskedError(ValueError):
    """An impossible combination. `hint` says what to try."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The settings of one source: a file, a cluster or the command line."""

    source: str
    replicas: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    not_looked_at: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One combination of settings."""

    replicas: int
    options: Mapping[str, str]
    sources: Mapping[str, str]
    """The source of each option."""
    not_looked_at: tuple[str, ...] = ()

    @property
    def needed(self) -> int:
        """The replicas that must be in sync for a write; unless acks=all only the leader."""
        acks = parse_option("acks", self.options["acks"])
        return max(1, int(self.options["min_insync_replicas"])) if acks == ACKS_ALL else 1

    @property
    def of_logs(self) -> dict[str, str]:
        """The options that a search uses."""
        return {key: self.options[key] for key in OF_LOGS if key in self.options}

    def changed(self, key: str, value: str) -> Asked:
        """The combination with another value of one setting."""
        options = {**self.options, key: value}
        if self.sources.get("idempotence") == "default":
            del options["idempotence"]
            _settle_idempotence(options, {})
        return replace(self, options=options)


def asked_of(givens: Iterable[Given]) -> Asked:
    """The combination of all sources; a later one wins. OptionError, AskedError if impossible."""
    replicas, options = 3, dict(DEFAULTS)
    sources = dict.fromkeys(("replicas", *options), "default")
    unknown: dict[str, None] = {}
    for one in givens:
        if one.replicas is not None:
            replicas = one.replicas
            sources["replicas"] = one.source
        for key, text in one.options.items():
            parse_option(key, text)
            options[key] = text
            sources[key] = one.source
        unknown.update(dict.fromkeys(f"{name} ({one.source})" for name in one.not_looked_at))
    _settle_idempotence(options, sources)
    if "commit" not in options:
        unknown["the consumer (nothing is said of it)"] = None
    asked = Asked(replicas=replicas, options=options, sources=sources, not_looked_at=tuple(unknown))
    _check(asked)
    return asked


def _settle_idempotence(options: dict[str, str], sources: dict[str, str]) -> None:
    """As Kafka's producer: on unless acks or retries exclude it; if requested, it needs both."""
    possible = parse_option("acks", options["acks"]) == ACKS_ALL and int(options["retries"]) > 0
    if "idempotence" not in options:
        options["idempotence"] = "on" if possible else "off"
        sources["idempotence"] = "default"
    elif parse_option("idempotence", options["idempotence"]) and not possible:
        raise AskedError(
            f"enable.idempotence needs acks=all and retries, not acks={options['acks']} "
            f"and retries={options['retries']}",
            "Kafka's producer refuses this as well",
        )


def _check(asked: Asked) -> None:
    if not 1 <= asked.replicas <= MOST_REPLICAS:
        raise AskedError(f"{asked.replicas} replicas", f"1 to {MOST_REPLICAS} can be searched")
    if asked.needed > asked.replicas:
        raise AskedError(
            f"min.insync.replicas={asked.needed} is more than {asked.replicas} replicas: "
            "no write with acks=all is ever accepted",
            f"try {asked.replicas} or less",
        )
    build(asked.of_logs, asked.replicas)
