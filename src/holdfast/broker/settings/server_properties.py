"""Reads a server.properties and overrides into settings; reports every problem with its place.

An unknown name or an invalid value is an error. A known setting without effect here is a warning: a
file that was written for Kafka starts a Holdfast broker, and the warnings say what it ignores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from holdfast.broker.settings.cross_checks import conflicts
from holdfast.broker.settings.definition_tables import BROKER, TOPIC, is_of_a_plugin, nearest_name
from holdfast.broker.settings.java_properties import PropertiesError, read_properties
from holdfast.broker.settings.layers import TOPIC_SYNONYMS, Layers
from holdfast.broker.settings.setting import Value
from holdfast.broker.settings.typed_settings import PARSED, BrokerSettings

OVERRIDE = "--config"


class Problem(NamedTuple):
    """One error, or one setting without effect."""

    where: str
    """File and line, or the override."""
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


class SettingsError(ValueError):
    """Settings that a broker cannot start with."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


class _Given(NamedTuple):
    text: str
    where: str


@dataclass(slots=True)
class _Reading:
    """The settings and problems read so far."""

    title: str
    given: dict[str, _Given] = field(default_factory=dict)
    bad: dict[str, None] = field(default_factory=dict)
    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def where(self, *names: str) -> str:
        """The place of the first one that is set; the file if none is."""
        return next((self.given[name].where for name in names if name in self.given), self.title)

    def layers(self) -> Layers:
        good = {name: one.text for name, one in self.given.items() if name not in self.bad}
        return Layers(static={name: text for name, text in good.items() if name in BROKER})


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, or their errors."""

    settings: BrokerSettings | None
    """None if there are errors."""
    layers: Layers
    """The valid settings that were given."""
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    where: Mapping[str, str]
    """The place of each setting."""
    title: str
    """The file."""

    def need(self) -> BrokerSettings:
        """The settings; SettingsError with all errors."""
        if self.settings is None:
            raise SettingsError(self.errors)
        return self.settings


def load_file(path: Path, overrides: Iterable[str] = ()) -> Loaded:
    """Read a server.properties; OSError if it cannot be read.

    Java reads such files as Latin-1. Holdfast reads UTF-8, and Latin-1 if that fails.
    """
    content = path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return load(text, overrides, title=str(path))


def load(text: str, overrides: Iterable[str] = (), *, title: str = "server.properties") -> Loaded:
    """Read settings from a file's text, and from overrides `name=value`, which win."""
    reading = _Reading(title)
    _read_text(reading, text)
    _read_overrides(reading, overrides)
    for name, one in reading.given.items():
        _check_one(reading, name, one)
    _check_together(reading)
    layers = reading.layers()
    return Loaded(
        settings=None if reading.errors else BrokerSettings.of(layers),
        layers=layers,
        errors=tuple(reading.errors),
        warnings=tuple(reading.warnings),
        where={name: one.where for name, one in reading.given.items()},
        title=title,
    )


def _read_text(reading: _Reading, text: str) -> None:
    try:
        entries = read_properties(text)
    except PropertiesError as error:
        reading.errors.append(Problem(f"{reading.title}:{error.line}", error.reason))
        return
    lines: dict[str, int] = {}
    for name, value, line in entries:
        where = f"{reading.title}:{line}"
        if name in lines:
            text = f"{name} is given twice: this line wins over line {lines[name]}"
            reading.warnings.append(Problem(where, text))
        lines[name] = line
        reading.given[name] = _Given(value, where)


def _read_overrides(reading: _Reading, overrides: Iterable[str]) -> None:
    for override in overrides:
        name, equals, value = override.partition("=")
        where = f"{OVERRIDE} {override}"
        if not equals or not name.strip():
            reading.errors.append(Problem(where, "an override is name=value"))
        else:
            reading.given[name.strip()] = _Given(value, where)


def _check_one(reading: _Reading, name: str, given: _Given) -> None:
    setting = BROKER.get(name)
    if setting is None:
        if is_of_a_plugin(name):
            reading.warnings.append(Problem(given.where, f"{name} has no effect here"))
        else:
            reading.errors.append(Problem(given.where, _unknown(name)))
        return
    try:
        setting.parse(given.text)
    except ValueError as error:
        reading.bad[name] = None
        shown = "[hidden]" if setting.is_sensitive else given.text.strip()
        reading.errors.append(Problem(given.where, f"{name}={shown}: {error}"))
        return
    if not setting.acts:
        text = f"{name} is known, and has no effect here ({setting.meaning})"
        reading.warnings.append(Problem(given.where, text))


def _unknown(name: str) -> str:
    if name in TOPIC:
        instead = ", ".join(unit.name for unit in TOPIC_SYNONYMS.get(name, ()))
        return f"{name} is a setting of topics" + (f"; a broker's is {instead}" if instead else "")
    meant = nearest_name(name, BROKER)
    return f"{name} is not a setting" + (f"; did you mean {meant}?" if meant else "")


def _check_together(reading: _Reading) -> None:
    layers = reading.layers()

    def value(name: str) -> Value:
        return None if name in reading.bad else layers.value(name)

    for conflict in conflicts(value):
        if any(name in reading.bad for name in conflict.names):
            continue
        first = conflict.names[0]
        shown = f"{first}={reading.given[first].text}" if first in reading.given else first
        problem = Problem(reading.where(*conflict.names), f"{shown}: {conflict.reason}")
        (reading.errors if conflict.is_error else reading.warnings).append(problem)
    for name, make in PARSED.items():
        if name in reading.bad or (name != "listeners" and "listeners" in reading.bad):
            continue
        try:
            make(layers)
        except ValueError as error:
            reading.bad[name] = None
            reading.errors.append(Problem(reading.where(name), f"{name}: {error}"))
