"""Formats names, ranges and lists for every text about a trace.

There are two styles: terse, as scenario files expect (`(b2,b3)`, `[1,3)`), and spoken, for people
who do not know Kafka ("B and C", "offsets 1 and 2").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.model.trace import TraceEvent

Names = Mapping[int, str]
"""Broker id to name. A broker without a name is called b<ID>."""

MANY = 6
"""Of more labels than this, only the first and the last are shown."""


def names_in(begins: TraceEvent) -> dict[int, str]:
    """The names that a `begins` event gives to brokers."""
    return {int(key): str(name) for key, name in (begins.numbers.get("names") or {}).items()}


class Words:
    """One event, with its numbers and names ready for a text."""

    def __init__(self, event: TraceEvent, names: Names) -> None:
        self.event = event
        self.numbers = event.numbers
        self.names = names

    def __getitem__(self, key: str) -> Any:
        return self.numbers.get(key)

    @property
    def who(self) -> str:
        """The broker that the event is about."""
        return self.name(self.event.broker)

    def name(self, who: object) -> str:
        """A broker's name by its id. Clients and the controller already have names."""
        if isinstance(who, int):
            return "nobody" if who < 0 else self.names.get(who, f"b{who}")
        return "nobody" if who is None else str(who)

    def set_of(self, key: str) -> str:
        """Terse: (b2,b3)."""
        return f"({','.join(map(self.name, self[key] or ()))})"

    def list_of(self, key: str) -> str:
        """Spoken: B and C."""
        return spoken_list([self.name(who) for who in self[key] or ()])

    def client(self, key: str) -> str:
        """A producer or a consumer: by its name, if it has one."""
        name = str(self[key] or "")
        return f"the {key}" if name in ("", key) else f"{key} {name}"

    def record(self) -> str:
        """The record's label, or else its offset."""
        label = self["record"]
        if label not in (None, ""):
            return str(label)
        return "a record" if not at_offset(self["offset"]) else f"the record at {self['offset']}"

    def labels(self, key: str = "records") -> str:
        """Terse: m1 m2, and r0 … r39 for many."""
        words = [str(one) for one in self[key] or ()]
        return " ".join(words) if len(words) <= MANY else f"{words[0]} … {words[-1]}"

    def acks(self) -> str:
        return acks_word(self["acks"])

    def cause(self) -> str:
        """The error in plain words, if known, with its wire name."""
        error = str(self["error"] or "an error")
        plain = ERRORS.get(error)
        return f"{plain} ({error})" if plain else error


def spoken_list(items: Sequence[str]) -> str:
    if not items:
        return "nobody"
    if len(items) == 1:
        return items[0]
    return f"{', '.join(items[:-1])} and {items[-1]}"


def span(base: int, end: int) -> str:
    """Terse: [1,3)."""
    return f"[{base},{end})"


def spoken_span(base: int, end: int) -> str:
    """Spoken: the record at offset 1."""
    if end <= base:
        return "no record"
    if end == base + 1:
        return f"the record at offset {base}"
    return f"the {end - base} records at offsets {base} to {end - 1}"


def below(end: int) -> str:
    """Spoken: everything below 3."""
    return "nothing" if end <= 0 else f"everything below offset {end}"


def acks_word(acks: object) -> str:
    """On the wire, all is -1."""
    return "all" if acks in (-1, "-1") else str(acks)


def at_offset(offset: object) -> bool:
    return isinstance(offset, int) and offset >= 0


def headline(verdict: Mapping[str, Any]) -> str:
    """The worst outcome, in a few words."""
    for key, words in _HEADLINES:
        value = verdict.get(key)
        if value:
            items = value if isinstance(value, (list, tuple)) else [value]
            return f"{words} {spoken_list([str(item) for item in items])}"
    return str(verdict.get("outcome") or "").replace("-", " ")


_HEADLINES = (
    ("lost", "acknowledged and lost:"),
    ("diverged", "the logs differ at offset"),
    ("exposed_lost", "seen by a reader, then lost:"),
    ("refused_kept", "refused but kept:"),
)


def listed(items: Iterable[object]) -> str:
    """Terse: (m1,m2)."""
    return f"({','.join(map(str, items))})"


ERRORS: Mapping[str, str] = {
    "BROKER_NOT_AVAILABLE": "the broker cannot be reached",
    "CORRUPT_MESSAGE": "the record is damaged",
    "FENCED_LEADER_EPOCH": "the request is from an older epoch",
    "INELIGIBLE_REPLICA": "this replica may not join now",
    "INVALID_UPDATE_VERSION": "the proposal was made against an older state",
    "KAFKA_STORAGE_ERROR": "the disk failed",
    "LEADER_NOT_AVAILABLE": "there is no leader at the moment",
    "NEW_LEADER_ELECTED": "a new leader was elected meanwhile",
    "NOT_ENOUGH_REPLICAS": "too few replicas are in sync to acknowledge it",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "written, but too few replicas were in sync to acknowledge",
    "NOT_LEADER_OR_FOLLOWER": "this broker does not lead any more",
    "OFFSET_NOT_AVAILABLE": "this offset cannot be read just yet",
    "OFFSET_OUT_OF_RANGE": "this log has no such offset",
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "an earlier record of this producer is missing",
    "REQUEST_TIMED_OUT": "the answer took too long",
    "STALE_BROKER_EPOCH": "it is about an earlier incarnation of the broker",
    "STALE_CONTROLLER_EPOCH": "the request comes from a former controller",
    "UNKNOWN_LEADER_EPOCH": "the request is from a newer epoch than the one of this broker",
    "UNKNOWN_PRODUCER_ID": "this producer is not known here",
}
