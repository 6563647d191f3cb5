"""Counts states that differ only in broker names once.

Renaming brokers changes nothing unless a rule depends on their order. Two do: automatic election
(the first eligible replica of the assignment leads), and the fixed order of links in which messages
flow. So a space is symmetric if messages take any order and an operator makes every election: no
broker dies, and no session ends. Then assignment and ISR are sets. Every broker keeps its first
session, so a broker epoch identifies a broker, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum
from itertools import permutations
from typing import Any

from holdfast.search.bounds import ANY, Bounds
from holdfast.search.states.frozen import SKIPPED
from holdfast.search.states.space import Space, State

BROKERS = frozenset(("broker", "leader", "follower", "id"))
"""Fields that contain a broker."""
EPOCHS = frozenset(("broker_epoch", "intact_since"))
"""Fields that contain a broker epoch."""
SETS = frozenset(
    (
        "replicas",
        "isr",
        "proposed",
        "eligible_leaders",
        "last_known_eligible",
        "member_epochs",
        "adding",
        "removing",
        "candidates",
    )
)
"""Fields with several brokers or members whose order has no meaning."""
_BREAKING = (
    *("crashes", "power_losses", "stops", "shutdowns", "restarts", "expiries", "failovers"),
    *("partitions", "disk_errors", "disk_losses", "epoch_losses", "slow_sessions", "readers"),
)

Names = tuple[int, ...]
"""The new number of every broker, by its old one; index 0 stands for no broker."""


def is_symmetric(bounds: Bounds) -> bool:
    """Whether brokers can be renamed in a space with these bounds."""
    counts = bounds.to_dict()
    return bounds.delays == ANY and not any(counts[name] for name in _BREAKING)


class Symmetry:
    """Renames brokers in states, and finds the canonical state."""

    def __init__(self, space: Space) -> None:
        self._space = space
        brokers = range(1, space.count + 1)
        self._renamings = [(0, *one) for one in permutations(brokers)]
        self._labels: dict[Any, int] = {}
        self._known: dict[tuple[str, int, Names], int] = {}

    def canonical(self, state: State) -> State:
        """The same result for all states that differ only in broker names."""
        return min(self._renamed(state, names) for names in self._renamings)

    def _renamed(self, state: State, names: Names) -> State:
        count = self._space.count
        control, wires, facts, budget = state[count:]
        brokers = [0] * count
        for place, number in enumerate(state[:count], 1):
            brokers[names[place] - 1] = self._label("broker", number, names)
        return (
            *brokers,
            self._label("control", control, names),
            self._label("wires", wires, names),
            facts,
            budget,
        )

    def _label(self, kind: str, number: int, names: Names) -> int:
        key = (kind, number, names)
        label = self._known.get(key)
        if label is None:
            value = getattr(self, f"_{kind}")(number, names)
            label = self._known[key] = self._labels.setdefault((kind, value), len(self._labels))
        return label

    def _broker(self, number: int, names: Names) -> Any:
        broker = self._space.parts.broker(number)
        log = broker.replica.log
        return (renamed(broker, names), renamed(log, names), log.settings.min_insync_replicas)

    def _control(self, number: int, names: Names) -> Any:
        controller, store = self._space.parts.control(number)
        return (
            renamed(controller.core, names),
            renamed(controller.unconfirmed, names),
            renamed(store, names),
            store.settings.min_insync_replicas,
            tuple(one.min_insync_replicas for one in controller.core.settings.values()),
            controller.awaits_settings,
        )

    def _wires(self, number: int, names: Names) -> Any:
        links: dict[int, list[int]] = {}
        for place in self._space.wires.all(number):
            links.setdefault(place.link, []).append(self._label("message", place.message, names))
        return tuple(sorted(tuple(messages) for messages in links.values()))

    def _message(self, number: int, names: Names) -> Any:
        source, target, payload = self._space.parts.messages[number]
        return (self._name(source, names), self._name(target, names), renamed(payload, names))

    def _name(self, name: str, names: Names) -> str:
        place = self._space.places.get(name)
        return name if place is None else f"b{names[place + 1]}"


def renamed(value: Any, names: Names, field: str = "") -> Any:
    """A value with renamed brokers, as nested tuples."""
    if value is None or isinstance(value, str | Enum | bool):
        return str(value)
    if isinstance(value, int):
        is_name = field in BROKERS or field in EPOCHS or field in SETS
        return names[value] if is_name and value > 0 else value
    if isinstance(value, tuple | list | deque):
        return _renamed_tuple(value, names, field)
    if isinstance(value, dict):
        # Every dictionary with integer keys is keyed by broker.
        return tuple(
            sorted(
                (renamed(key, names, "broker"), renamed(one, names, field))
                for key, one in value.items()
            )
        )
    slots = getattr(type(value), "__slots__", None) or sorted(vars(value))
    kept = [name for name in slots if name not in SKIPPED]
    return (type(value).__name__, *(renamed(getattr(value, one), names, one) for one in kept))


def _renamed_tuple(value: Sequence[Any], names: Names, field: str) -> Any:
    fields = getattr(value, "_fields", None)
    if fields is not None:
        return (
            type(value).__name__,
            *(renamed(one, names, name) for name, one in zip(fields, value, strict=True)),
        )
    if value and value[0] == "fetch":  # The handle of a parked fetch.
        return ("fetch", names[value[1]])
    found = tuple(renamed(one, names, field) for one in value)
    return tuple(sorted(found)) if field in SETS else found
