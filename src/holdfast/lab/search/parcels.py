"""States on their way to another process.

A state is a few numbers, and these mean something only in the process that gave them. A parcel has
many states with their ways, and once each broker, controller, message, … that they refer to.
Whoever opens it finds its own numbers for them.

What is known of the brokers' next steps goes along: running the core is dear, and most of these
steps will be taken where the states go.
"""

from __future__ import annotations

import pickle
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from holdfast.lab.search.facts import Fact, Facts
from holdfast.lab.search.parts import Input, Message, Step
from holdfast.lab.search.space import BrokerKey, Space, State
from holdfast.lab.search.walk import Way, depth_of
from holdfast.lab.search.wires import Value

_QUICKEST: Final = 1
"""Of zlib's levels: ways in order and small numbers get small anyway."""

Lessons = Mapping[int, list[tuple[BrokerKey, Step]]]
"""Steps that were taken, by the broker."""


class _Lesson(NamedTuple):
    """A step with the numbers of a parcel."""

    broker: int
    given: Input
    fetch_number: int
    controller_epoch: int
    result: int
    sent: tuple[int, ...]
    facts: tuple[Fact, ...]


class _Content(NamedTuple):
    brokers: list[bytes]
    controls: list[bytes]
    wires: list[Value]
    facts: list[Facts]
    budgets: list[tuple[int, ...]]
    messages: list[Message]
    lessons: list[_Lesson]
    results: list[bytes]
    """What brokers are after their next steps."""
    numbers: bytes
    ways: list[Way]


def lessons_of(space: Space) -> Lessons:
    """All that has been learnt."""
    found: dict[int, list[tuple[BrokerKey, Step]]] = {}
    for key, step in space.broker_steps.items():
        found.setdefault(key[0], []).append((key, step))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """Some states that were found elsewhere."""

    count: int
    depth: int
    """The least of their depths."""
    data: bytes

    @classmethod
    def packed(cls, space: Space, found: Iterable[tuple[Way, State]], lessons: Lessons) -> Parcel:
        """States of a space."""
        packing = _Packing(space)
        numbers = array("I")
        ways: list[Way] = []
        for way, state in found:
            ways.append(way)
            numbers.extend(packing.numbers(state))
        content = packing.content(lessons, numbers.tobytes(), ways)
        return cls(
            count=len(ways),
            depth=min(map(depth_of, ways)),
            data=zlib.compress(pickle.dumps(content, protocol=5), _QUICKEST),
        )

    def opened(self, space: Space) -> Iterator[tuple[Way, State]]:
        """The states as this space knows them."""
        content: _Content = pickle.loads(zlib.decompress(self.data))  # noqa: S301  # our own
        parts = space.parts
        ours = [parts.message(*one) for one in content.messages]
        brokers = [parts.take_broker(one) for one in content.brokers]
        _hear(space, content, brokers, ours)
        columns = [brokers] * space.count
        columns.append([parts.take_control(one) for one in content.controls])
        columns.append([space.wires.number(_translated(one, ours)) for one in content.wires])
        columns.append([space.ledger(one) for one in content.facts])
        columns.append([space.budget(one) for one in content.budgets])
        numbers = array("I", content.numbers)
        width = len(columns)
        for place, way in enumerate(content.ways):
            row = numbers[place * width : (place + 1) * width]
            yield way, tuple([column[one] for column, one in zip(columns, row, strict=True)])


def _translated(value: Value, numbers: Mapping[int, int] | list[int]) -> Value:
    return tuple(tuple(numbers[one] for one in link) for link in value)


def _given(given: Input, numbers: Mapping[int, int] | list[int]) -> Input:
    """An input with other numbers; the only one with a message in it is its arrival."""
    return (given[0], numbers[given[1]]) if given[0] == "deliver" else given


def _hear(space: Space, content: _Content, brokers: list[int], ours: list[int]) -> None:
    for one in content.lessons:
        given = _given(one.given, ours)
        key = (brokers[one.broker], given, one.fetch_number, one.controller_epoch)
        if key not in space.broker_steps:
            sent = tuple(ours[message] for message in one.sent)
            space.hearsay[key] = (content.results[one.result], sent, one.facts)


class _Packing:
    """Which brokers, controllers, … the states of a parcel refer to, numbered from 0."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._brokers: dict[int, int] = {}
        self._others: tuple[dict[int, int], ...] = ({}, {}, {}, {})
        self._messages: dict[int, int] = {}
        self._results: dict[int, int] = {}

    def numbers(self, state: State) -> list[int]:
        """A state with the numbers of the parcel."""
        brokers, count = self._brokers, self._space.count
        found = [brokers.setdefault(one, len(brokers)) for one in state[:count]]
        for one, table in zip(state[count:], self._others, strict=True):
            found.append(table.setdefault(one, len(table)))
        return found

    def content(self, lessons: Lessons, numbers: bytes, ways: list[Way]) -> _Content:
        """Everything that these numbers mean."""
        space, parts = self._space, self._space.parts
        control, wires, facts, budget = self._others
        values = [space.wires.value(one) for one in wires]
        self._meet(one for value in values for link in value for one in link)
        learnt = [
            self._lesson(key, step)
            for number in self._brokers
            for key, step in lessons.get(number, ())
        ]
        return _Content(
            brokers=[parts.brokers[one] for one in self._brokers],
            controls=[parts.controls[one] for one in control],
            wires=[_translated(one, self._messages) for one in values],
            facts=[space.ledgers[one] for one in facts],
            budgets=[space.budgets[one] for one in budget],
            messages=[parts.messages[one] for one in self._messages],
            lessons=learnt,
            results=[parts.brokers[one] for one in self._results],
            numbers=numbers,
            ways=ways,
        )

    def _meet(self, messages: Iterable[int]) -> None:
        for one in messages:
            self._messages.setdefault(one, len(self._messages))

    def _lesson(self, key: BrokerKey, step: Step) -> _Lesson:
        number, given, fetch_number, epoch = key
        self._meet(step.sent)
        if given[0] == "deliver":
            self._meet(given[1:])
        result = self._results.setdefault(step.part, len(self._results))
        sent = tuple(self._messages[one] for one in step.sent)
        given = _given(given, self._messages)
        return _Lesson(self._brokers[number], given, fetch_number, epoch, result, sent, step.facts)
