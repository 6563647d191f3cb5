"""Transfers states to another process.

A state is a few numbers that have a meaning only in the process that assigned them. A parcel has
many states with their paths, and one copy of each broker, controller and message that they refer
to. The receiving process assigns its own numbers. Cached steps are not sent: reading them takes
longer than most of them save.
"""

from __future__ import annotations

import pickle
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from holdfast.search.states.client_facts import Facts
from holdfast.search.states.messages_in_flight import Value
from holdfast.search.states.space import Space, State
from holdfast.search.states.step_cache import Message
from holdfast.search.walk import Way, depth_of

_QUICKEST: Final = 1
"""The zlib level: sorted paths and small numbers compress well at any level."""


class _Content(NamedTuple):
    brokers: list[bytes]
    controls: list[bytes]
    wires: list[Value]
    facts: list[Facts]
    budgets: list[tuple[int, ...]]
    messages: list[Message]
    numbers: bytes
    """Indexes into these lists, state after state."""
    ways: list[Way]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """States that another process found."""

    count: int
    depth: int
    """The smallest of their depths."""
    data: bytes

    @classmethod
    def packed(cls, space: Space, found: Iterable[tuple[Way, State]]) -> Parcel:
        """A parcel with states of a space."""
        brokers: dict[int, int] = {}
        others: tuple[dict[int, int], ...] = ({}, {}, {}, {})
        tables = [brokers] * space.count + [*others]
        numbers = array("I")
        ways: list[Way] = []
        for way, state in found:
            ways.append(way)
            for table, one in zip(tables, state, strict=True):
                numbers.append(table.setdefault(one, len(table)))
        content = _content(space, [brokers, *others], numbers.tobytes(), ways)
        return cls(
            count=len(ways),
            depth=min(map(depth_of, ways)),
            data=zlib.compress(pickle.dumps(content, protocol=5), _QUICKEST),
        )

    def opened(self, space: Space) -> Iterator[tuple[Way, State]]:
        """The states, in this space's numbers."""
        content: _Content = pickle.loads(zlib.decompress(self.data))  # noqa: S301  # our own
        parts = space.parts
        messages = [parts.message(*one) for one in content.messages]
        columns = [[parts.take_broker(one) for one in content.brokers]] * space.count
        columns.append([parts.take_control(one) for one in content.controls])
        columns.append([space.wires.number(_translated(one, messages)) for one in content.wires])
        columns.append([space.ledger(one) for one in content.facts])
        columns.append([space.budget(one) for one in content.budgets])
        numbers = array("I", content.numbers)
        width = len(columns)
        for place, way in enumerate(content.ways):
            row = numbers[place * width : (place + 1) * width]
            yield way, tuple([column[one] for column, one in zip(columns, row, strict=True)])


def _content(
    space: Space, tables: list[dict[int, int]], numbers: bytes, ways: list[Way]
) -> _Content:
    """The components that these numbers stand for."""
    brokers, control, wires, facts, budget = tables
    parts = space.parts
    values = [space.wires.value(one) for one in wires]
    messages: dict[int, int] = {}
    for value in values:
        for link in value:
            for one in link:
                messages.setdefault(one, len(messages))
    return _Content(
        brokers=[parts.brokers[one] for one in brokers],
        controls=[parts.controls[one] for one in control],
        wires=[_translated(one, messages) for one in values],
        facts=[space.ledgers[one] for one in facts],
        budgets=[space.budgets[one] for one in budget],
        messages=[parts.messages[one] for one in messages],
        numbers=numbers,
        ways=ways,
    )


def _translated(value: Value, numbers: Mapping[int, int] | list[int]) -> Value:
    return tuple([tuple([numbers[one] for one in link]) if link else () for link in value])
