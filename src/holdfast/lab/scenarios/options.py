"""Parses the options of a scenario or a command line into `Settings` and `Rules`.

Precedence, strongest first: the command line, the variant, the scenario's `cluster` line, the
defaults (the safe ones; min.insync.replicas is 2 with three replicas, as in `holdfast up`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from holdfast.core import (
    CommitRule,
    FlushRule,
    Guards,
    IsrExpand,
    IsrLagRule,
    IsrUpdate,
    ReadRule,
    Rules,
    Settings,
    Truncation,
    guard_names,
)
from holdfast.lab.scenarios.scenario import near_or_known


class OptionError(ValueError):
    """An unknown option or an invalid value. `hint` says what to try."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a scenario."""

    values: str
    """The allowed values, for people."""
    meaning: str
    parse: Callable[[str], Any]


def _one_of(kind: type[Enum]) -> Callable[[str], Enum]:
    def parse(text: str) -> Enum:
        return kind(text.replace("_", "-"))

    return parse


def _values(kind: type[Enum]) -> str:
    return " | ".join(str(one.value) for one in kind)


MOST = 1_000_000_000
"""The largest number that a setting or a command takes."""


def _number(text: str) -> int:
    value = int(text)
    if not 0 <= value <= MOST:
        raise ValueError(text)
    return value


def _milliseconds(text: str) -> int:
    """Not 0: the broker would answer a parked fetch immediately, and the follower fetch again."""
    value = _number(text)
    if value == 0:
        raise ValueError(text)
    return value


def _on_off(text: str) -> bool:
    return {"on": True, "true": True, "off": False, "false": False}[text]


def _acks(text: str) -> int:
    return {"0": 0, "1": 1, "all": -1, "-1": -1}[text]


def _guards(text: str) -> tuple[str, ...]:
    names = tuple(one for one in text.strip("()").split(",") if one)
    for name in names:
        if name not in guard_names():
            raise OptionError(f"unknown guard {name!r}", near_or_known(name, guard_names()))
    return names


def _switch(kind: type[Enum], meaning: str) -> Option:
    return Option(_values(kind), meaning, _one_of(kind))


def _words(meaning: str, *words: str) -> Option:
    def parse(text: str) -> str:
        return words[words.index(text)]

    return Option(" | ".join(words), meaning, parse)


OPTIONS: Mapping[str, Option] = {
    "truncation": _switch(Truncation, "what a follower truncates before it copies"),
    "isr_update": _switch(IsrUpdate, "when a leader counts on a proposed ISR"),
    "isr_expand": _switch(IsrExpand, "whether a joiner is checked again when added"),
    "isr_lag_rule": _switch(IsrLagRule, "when a follower has fallen out of sync"),
    "flush": _switch(FlushRule, "when a log is forced to the disk"),
    "reads": _switch(ReadRule, "which replicas serve consumers"),
    "commit_rule": _switch(CommitRule, "who must hold a record before it is committed"),
    "unclean": Option("on | off", "unclean.leader.election.enable", _on_off),
    "acks": Option("0 | 1 | all", "what producers ask for", _acks),
    "idempotence": Option("on | off", "enable.idempotence", _on_off),
    "retries": Option("a number", "how often producers try again", _number),
    "looks": Option("on | off", "whether producers look at their answers", _on_off),
    "commit": _words("when consumers store their position", "auto", "manual"),
    "sink": _words("whether doing the work twice shows", "plain", "idempotent"),
    "min_insync_replicas": Option("a number", "smallest ISR that accepts acks=all", _number),
    "replica_lag_time_max_ms": Option("milliseconds", "how long a follower may lag", _number),
    "replica_lag_max_messages": Option("a number", "how far it may lag (messages rule)", _number),
    "replica_fetch_wait_max_ms": Option(
        "milliseconds", "how long a fetch may be parked", _milliseconds
    ),
    "log_flush_interval_messages": Option("a number", "N of flush=every-n-messages", _number),
    "log_flush_interval_ms": Option("milliseconds", "T of flush=every-t-ms", _number),
    "without": Option("(guard,guard,…)", "guards taken out, for the lab only", _guards),
}

_RULES = ("truncation", "isr_update", "isr_expand", "isr_lag_rule", "commit_rule")
_OF_CLIENTS = ("acks", "idempotence", "retries", "looks", "commit", "sink")
"""Options of the producers and consumers of a scenario."""
_RENAMED = {
    "flush": "flush_rule",
    "reads": "read_rule",
    "unclean": "unclean_leader_election_enable",
}


def parse_option(key: str, text: str) -> Any:
    """One option's value; OptionError names what is wrong and what to try."""
    option = OPTIONS.get(key)
    if option is None:
        raise OptionError(f"unknown setting {key!r}", near_or_known(key, OPTIONS))
    try:
        return option.parse(text)
    except (ValueError, KeyError) as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"{key} cannot be {text!r}", f"{key}={option.values}") from None


def build(options: Mapping[str, str], replicas: int) -> tuple[Settings, Rules]:
    """Settings and rules for a cluster of that many replicas."""
    values = {key: parse_option(key, text) for key, text in options.items()}
    for key in _OF_CLIENTS:
        values.pop(key, None)
    guards = Guards().without(*values.pop("without", ()))
    rules = Rules(guards=guards, **{key: values.pop(key) for key in _RULES if key in values})
    # As in `holdfast up`.
    values.setdefault("min_insync_replicas", 2 if replicas >= 3 else 1)
    settings = Settings(**{_RENAMED.get(key, key): value for key, value in values.items()})
    return settings, rules
