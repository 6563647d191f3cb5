"""States on their way to another process.

A state is a few numbers, and these mean something only in the process that gave them. A parcel has
many states with their ways, and once each broker, controller, message, … that they refer to.
Whoever opens it finds its own numbers for them.
"""

from __future__ import annotations

import pickle
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from holdfast.lab.search.space import Space, State
from holdfast.lab.search.walk import Way, depth_of

_QUICKEST: Final = 1
"""Of zlib's levels: ways in order and small numbers get small anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """Some states that were found elsewhere."""

    count: int
    depth: int
    """The least of their depths."""
    data: bytes

    @classmethod
    def packed(cls, space: Space, found: Iterable[tuple[Way, State]]) -> Parcel:
        """States of a space."""
        tables = _Tables(space.count)
        numbers = array("I")
        ways: list[Way] = []
        for way, state in found:
            ways.append(way)
            numbers.extend(tables.numbers(state))
        content = (tables.values(space), numbers.tobytes(), ways)
        return cls(
            count=len(ways),
            depth=min(map(depth_of, ways)),
            data=zlib.compress(pickle.dumps(content, protocol=5), _QUICKEST),
        )

    def opened(self, space: Space) -> Iterator[tuple[Way, State]]:
        """The states as this space knows them."""
        values, numbers, ways = pickle.loads(zlib.decompress(self.data))  # noqa: S301  # our own
        known = _taken(space, *values)
        columns = [known[0]] * space.count + known[1:]
        packed = array("I", numbers)
        width = len(columns)
        for start, way in enumerate(ways):
            row = packed[start * width : (start + 1) * width]
            yield way, tuple([column[one] for column, one in zip(columns, row, strict=True)])


class _Tables:
    """Which brokers, controllers, … the states of a parcel refer to, numbered from 0."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._brokers: dict[int, int] = {}
        self._others: tuple[dict[int, int], ...] = ({}, {}, {}, {})

    def numbers(self, state: State) -> list[int]:
        brokers, count = self._brokers, self._count
        found = [brokers.setdefault(one, len(brokers)) for one in state[:count]]
        for one, table in zip(state[count:], self._others, strict=True):
            found.append(table.setdefault(one, len(table)))
        return found

    def values(self, space: Space) -> tuple[Any, ...]:
        control, wires, facts, budget = self._others
        on_wires = [space.wires.value(one) for one in wires]
        messages = dict.fromkeys(one for value in on_wires for link in value for one in link)
        places = {number: place for place, number in enumerate(messages)}
        return (
            [space.parts.brokers[one] for one in self._brokers],
            [space.parts.controls[one] for one in control],
            [tuple(space.parts.messages[one]) for one in messages],
            [tuple(tuple(places[one] for one in link) for link in value) for value in on_wires],
            [space.ledgers[one] for one in facts],
            [space.budgets[one] for one in budget],
        )


def _taken(
    space: Space,
    brokers: list[bytes],
    controls: list[bytes],
    messages: list[tuple[Any, ...]],
    wires: list[tuple[tuple[int, ...], ...]],
    facts: list[Any],
    budgets: list[Any],
) -> list[list[int]]:
    """Our numbers of brokers, controllers, wires, ledgers and budgets."""
    parts = space.parts
    ours = [parts.message(*one) for one in messages]
    on_wires = [tuple(tuple(ours[one] for one in link) for link in value) for value in wires]
    steps: tuple[tuple[Callable[[Any], int], list[Any]], ...] = (
        (parts.take_broker, brokers),
        (parts.take_control, controls),
        (space.wires.number, on_wires),
        (space.ledger, facts),
        (space.budget, budgets),
    )
    return [[take(one) for one in values] for take, values in steps]
