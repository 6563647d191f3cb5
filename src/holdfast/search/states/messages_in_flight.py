"""The messages in flight, link by link, oldest first.

A link is a connection: in order, or broken. The messages in flight on all links are one value with
a number; adding or removing a message gives another number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.lab.world.messages import FetchRequest, FetchResponse
from holdfast.lab.world.world import STORE
from holdfast.search.states.step_cache import Message, Parts

Value = tuple[tuple[int, ...], ...]
"""The numbers of every link's messages, oldest first; empty links at the end are omitted."""


class Place(NamedTuple):
    """A message's link and its position there, from the oldest."""

    message: int
    link: int
    position: int


class Wires:
    """All sets of messages in flight that a search has seen, by number. Number 0: no messages."""

    def __init__(self, parts: Parts, controllers: int) -> None:
        """`controllers`: the most that there may be, one after the other."""
        self._parts = parts
        # Messages flow in the order of the links: those of the first controller first.
        names = parts.names
        first, *others = [f"controller-{epoch}" for epoch in range(1, controllers + 1)]
        ends = [*_both_ways(first, names)]
        ends += [(one, other) for one in names for other in names if one != other]
        for node in (STORE, *others):
            ends += _both_ways(node, names)
        self._links: dict[tuple[str, str], int] = {one: place for place, one in enumerate(ends)}
        self._values: list[Value] = [()]
        self._numbers: dict[Value, int] = {(): 0}
        self._put: dict[tuple[int, int], int] = {}
        self._taken: dict[tuple[int, int, int], int] = {}
        self._without: dict[tuple[int, str, bool], int] = {}
        self._heads: list[tuple[Place, ...] | None] = [None]
        self._link_of: list[int] = []
        self._fetches: dict[int, dict[str, tuple[int, ...]]] = {}
        self._kinds: dict[int, frozenset[tuple[str, str, str]]] = {}

    def value(self, wires: int) -> Value:
        """The messages in flight, link by link."""
        return self._values[wires]

    def number(self, value: Sequence[tuple[int, ...]]) -> int:
        """The number of these messages in flight."""
        end = len(value)
        while end and not value[end - 1]:
            end -= 1
        key = tuple(value[:end])
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._values)
            self._values.append(key)
            self._heads.append(None)
        return number

    def link(self, message: int) -> int:
        """The link that a message travels on."""
        links = self._link_of
        while message >= len(links):
            one = self._parts.messages[len(links)]
            links.append(self._links[one.source, one.target])
        return links[message]

    def put(self, wires: int, message: int) -> int:
        """With one more message, at the end of its link."""
        key = (wires, message)
        found = self._put.get(key)
        if found is None:
            link = self.link(message)
            value = list(self._values[wires])
            value.extend(() for _ in range(link + 1 - len(value)))
            value[link] = (*value[link], message)
            found = self._put[key] = self.number(value)
        return found

    def take(self, wires: int, place: Place) -> int:
        """Without that message."""
        key = (wires, place.link, place.position)
        found = self._taken.get(key)
        if found is None:
            value = list(self._values[wires])
            link = value[place.link]
            value[place.link] = (*link[: place.position], *link[place.position + 1 :])
            found = self._taken[key] = self.number(value)
        return found

    def without(self, wires: int, node: str, *, keep_sent: bool) -> int:
        """Without the messages to a node, and those from it unless they are kept."""
        key = (wires, node, keep_sent)
        found = self._without.get(key)
        if found is None:
            gone = [
                link
                for (source, target), link in self._links.items()
                if target == node or (source == node and not keep_sent)
            ]
            value = [
                () if link in gone else messages
                for link, messages in enumerate(self._values[wires])
            ]
            found = self._without[key] = self.number(value)
        return found

    def heads(self, wires: int) -> tuple[Place, ...]:
        """The oldest message of every link."""
        found = self._heads[wires]
        if found is None:
            found = self._heads[wires] = tuple(
                Place(messages[0], link, 0)
                for link, messages in enumerate(self._values[wires])
                if messages
            )
        return found

    def all(self, wires: int) -> tuple[Place, ...]:
        """Every message."""
        return tuple(
            Place(message, link, index)
            for link, messages in enumerate(self._values[wires])
            for index, message in enumerate(messages)
        )

    def messages(self, wires: int) -> list[Message]:
        """The messages in flight."""
        return [self._parts.messages[one.message] for one in self.all(wires)]

    def fetch_numbers(self, wires: int, follower: str) -> tuple[int, ...]:
        """The numbers of a follower's fetch requests and responses in flight."""
        known = self._fetches.get(wires)
        if known is None:
            known = self._fetches[wires] = self._count(wires)
        return known.get(follower, ())

    def _count(self, wires: int) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for source, target, payload in self.messages(wires):
            if isinstance(payload, FetchRequest):
                found[source] = (*found.get(source, ()), payload.number)
            elif isinstance(payload, FetchResponse):
                found[target] = (*found.get(target, ()), payload.number)
        return found

    def kinds(self, wires: int) -> frozenset[tuple[str, str, str]]:
        """Kind, source and target of all messages in flight."""
        found = self._kinds.get(wires)
        if found is None:
            found = self._kinds[wires] = frozenset(
                (type(payload).__name__, source, target)
                for source, target, payload in self.messages(wires)
            )
        return found


def _both_ways(node: str, names: Sequence[str]) -> list[tuple[str, str]]:
    return [(node, name) for name in names] + [(name, node) for name in names]
