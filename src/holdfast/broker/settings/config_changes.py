"""Changes of settings while brokers run: validates a request, returns new settings or an error.

Nothing is changed here; the caller writes the result to the coordination store. The error codes are
Kafka's: a topic's wrong value is INVALID_CONFIG, a broker's is INVALID_REQUEST (KAFKA-13609).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

from holdfast.broker.errors import RefusedError
from holdfast.broker.settings.cross_checks import conflicts
from holdfast.broker.settings.definition_tables import BROKER, FIXED, TOPIC, nearest_name
from holdfast.broker.settings.layers import Layers
from holdfast.broker.settings.setting import Change, Kind, Setting, value_text
from holdfast.broker.settings.topic_settings import TopicConfigs
from holdfast.broker.settings.typed_settings import PARSED
from holdfast.model import ErrorCode


class Operation(IntEnum):
    """The operations of IncrementalAlterConfigs, by code."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    """One change of one setting, not validated."""

    name: str
    operation: int
    value: str | None


@dataclass(frozen=True, slots=True)
class _Resource:
    """The resource whose settings change."""

    kind: str
    known: Mapping[str, Setting]
    code: ErrorCode
    """For a wrong name or value."""
    inherited: Callable[[str], str | None]
    """The value of a list that is not set here."""

    def setting(self, name: str) -> Setting:
        found = self.known.get(name)
        if found is None:
            meant = nearest_name(name, self.known)
            hint = f"; did you mean {meant}?" if meant else ""
            raise RefusedError(self.code, f"Unknown {self.kind} config name: {name}{hint}")
        return found

    def checked(self, name: str, text: str) -> str:
        setting = self.setting(name)
        try:
            setting.parse(text)
        except ValueError as error:
            shown = "[hidden]" if setting.is_sensitive else text
            message = f"Invalid value {shown} for configuration {name}: {error}"
            raise RefusedError(self.code, message) from None
        return text

    def after(self, own: Mapping[str, str], alterations: Iterable[Alteration]) -> dict[str, str]:
        """The settings after all alterations; each name may occur once."""
        changed = dict(own)
        seen: dict[str, None] = {}
        for alteration in alterations:
            name = alteration.name
            if name in seen:
                raise _bad_request(f"Error due to duplicate config keys: {name}")
            seen[name] = None
            text = self._altered(changed.get(name), alteration)
            if text is None:
                changed.pop(name, None)
            else:
                changed[name] = self.checked(name, text)
        return changed

    def _altered(self, own: str | None, alteration: Alteration) -> str | None:
        name, operation, value = alteration
        setting = self.setting(name)
        if operation == Operation.DELETE:
            return None
        if value is None:
            raise _bad_request(f"Null value not supported for : {name}")
        if operation == Operation.SET:
            return value
        if operation not in (Operation.APPEND, Operation.SUBTRACT):
            raise _bad_request(f"Unknown operation {operation} for {name}")
        word = Operation(operation).name
        if setting.kind is not Kind.LIST:
            message = f"Can't {word} to key {name} because its type is not LIST."
            raise RefusedError(ErrorCode.INVALID_CONFIG, message)
        return self._list_after(name, own, value, appends=operation == Operation.APPEND)

    def _list_after(self, name: str, own: str | None, value: str, *, appends: bool) -> str:
        before = _parts(own if own is not None else self.inherited(name))
        parts = _parts(value)
        if appends:
            return ",".join(dict.fromkeys((*before, *parts)))
        return ",".join(part for part in before if part not in parts)


def check_topic_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """Check all settings of a topic, from CreateTopics or AlterConfigs; RefusedError."""
    missing = [name for name, value in configs.items() if value is None]
    if missing:
        text = f"Null value not supported for topic configs: {','.join(missing)}"
        raise RefusedError(ErrorCode.INVALID_CONFIG, text)
    topic = _topic(TopicConfigs())
    return _together({n: topic.checked(n, text) for n, text in configs.items() if text is not None})


def alter_topic(topic: TopicConfigs, alterations: Iterable[Alteration]) -> dict[str, str]:
    """A topic's own settings after IncrementalAlterConfigs; RefusedError."""
    return _together(_topic(topic).after(topic.own, alterations))


def alter_broker(layers: Layers, alterations: Iterable[Alteration]) -> Layers:
    """One broker's layers after IncrementalAlterConfigs; RefusedError."""
    changed = _broker(layers).after(layers.broker, _allowed(alterations, for_all=False))
    return _possible(replace(layers, broker=changed))


def alter_cluster(layers: Layers, alterations: Iterable[Alteration]) -> Layers:
    """The same for the settings of all brokers, checked on one of them."""
    changed = _broker(layers).after(layers.cluster, _allowed(alterations, for_all=True))
    return _possible(replace(layers, cluster=changed))


def replacing(own: Mapping[str, str], configs: Mapping[str, str | None]) -> list[Alteration]:
    """An AlterConfigs request as single alterations: settings that it omits are deleted."""
    gone = [Alteration(name, Operation.DELETE, None) for name in own if name not in configs]
    return gone + [Alteration(name, Operation.SET, value) for name, value in configs.items()]


def usable(
    known: Mapping[str, Setting], configs: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The valid settings from the coordination store, and a line for each invalid one.

    `known` is BROKER or TOPIC. Another release, or a person with a ZooKeeper shell, may have
    written them; a broker that refused to run because of that would be worse than a log line.
    """
    good: dict[str, str] = {}
    problems: list[str] = []
    for name, text in configs.items():
        if name not in known:
            problems.append(f"{name} is not a setting")
            continue
        try:
            known[name].parse(text)
        except ValueError as error:
            problems.append(f"{name}: {error}")
        else:
            good[name] = text
    return good, problems


def _topic(topic: TopicConfigs) -> _Resource:
    def inherited(name: str) -> str | None:
        return value_text(topic.effective(name).value)

    return _Resource("topic", TOPIC, ErrorCode.INVALID_CONFIG, inherited)


def _broker(layers: Layers) -> _Resource:
    def inherited(name: str) -> str | None:
        return value_text(layers.value(name))

    return _Resource("broker", BROKER, ErrorCode.INVALID_REQUEST, inherited)


def _allowed(alterations: Iterable[Alteration], *, for_all: bool) -> list[Alteration]:
    alterations = list(alterations)
    settings = [BROKER[one.name] for one in alterations if one.name in BROKER]
    fixed = [one.name for one in settings if not one.is_dynamic or one.name in FIXED]
    if fixed:
        raise _bad_request(f"Cannot update these configs dynamically: {', '.join(fixed)}")
    single = [one.name for one in settings if one.change is Change.PER_BROKER]
    if for_all and single:
        names = ", ".join(single)
        raise _bad_request(f"Cannot update these configs at default cluster level: {names}")
    return alterations


def _possible(layers: Layers) -> Layers:
    for conflict in conflicts(layers.value):
        if conflict.is_error:
            raise _bad_request(f"Invalid value for {conflict.names[0]}: {conflict.reason}")
    for name, make in PARSED.items():
        try:
            make(layers)
        except ValueError as error:
            raise _bad_request(f"Invalid value for {name}: {error}") from None
    return layers


def _together(own: dict[str, str]) -> dict[str, str]:
    configs = TopicConfigs(own)
    least, most = configs.value("min.compaction.lag.ms"), configs.value("max.compaction.lag.ms")
    if least > most:
        text = f"min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        raise RefusedError(ErrorCode.INVALID_CONFIG, f"conflict topic config setting {text}")
    return own


def _parts(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()


def _bad_request(message: str) -> RefusedError:
    return RefusedError(ErrorCode.INVALID_REQUEST, message)
