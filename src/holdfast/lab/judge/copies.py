"""Follows the copies of one record through the logs of all replicas.

One pass over the trace: the tracker looks only at the asked offset or the asked label.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.lab.render.wording import at_offset
from holdfast.model.trace import TraceEvent

_MOST_CAUSES = 20
"""The longest chain of causes that still explains something."""


class Identity(NamedTuple):
    """One record. Offset and epoch name it; both are None if it never reached a log."""

    offset: int | None
    epoch: int | None
    label: str


@dataclass(slots=True)
class Copy:
    """One copy of one record in one log, from its append to its end."""

    identity: Identity
    broker: int
    begins: TraceEvent
    ends: TraceEvent | None = None


class _Acknowledgement(NamedTuple):
    event: TraceEvent
    isr: tuple[int, ...]
    holders: tuple[int, ...]


class Tracker:
    """The history of the records at the asked offset, or with the asked label."""

    def __init__(self, events: Sequence[TraceEvent], asked: int | str) -> None:
        self._asked = asked
        self._events = {event.id: event for event in events}
        self._copies: list[Copy] = []
        self._isr: tuple[int, ...] = ()
        self._leader: int | None = None
        self._answers: dict[tuple[Identity, str], TraceEvent] = {}
        self._acknowledgements: dict[Identity, _Acknowledgement] = {}
        self._unwritten: dict[str, list[TraceEvent]] = {}
        self._seen: dict[Identity | str, None] = {}
        self._election: TraceEvent | None = None
        self._lost: dict[str, None] = {}
        self.alive: dict[int, None] = {}
        self._brokers: dict[int, None] = {}
        for event in events:
            self._take(event)

    @property
    def brokers(self) -> tuple[int, ...]:
        """All replicas in the trace, by id."""
        return tuple(sorted(self._brokers))

    def identities(self) -> tuple[Identity, ...]:
        """The records asked for, in order of appearance."""
        found = {copy.identity: None for copy in self._copies}
        labels = {identity.label: None for identity in found}
        for label in self._unwritten:
            if label not in labels and label == self._asked:
                found[Identity(None, None, label)] = None
        return tuple(found)

    def copies(self, identity: Identity) -> list[Copy]:
        return [copy for copy in self._copies if copy.identity == identity]

    def holders(self, identity: Identity) -> tuple[int, ...]:
        """The brokers, running or not, whose log has the record now."""
        return tuple(copy.broker for copy in self.copies(identity) if copy.ends is None)

    def answer(self, identity: Identity, kind: str) -> TraceEvent | None:
        """The event of this kind (sent, acknowledged, refused) about this record."""
        found = self._answers.get((identity, kind))
        if found is not None:
            return found
        # Events before the record reached a log, or of a record that never did, have only a label.
        for event in self._unwritten.get(self.label(identity), ()):
            elsewhere = at_offset(event.numbers.get("offset")) and identity.offset is not None
            if event.kind == kind and not elsewhere:
                return event
        return None

    def acknowledgement(self, identity: Identity) -> TraceEvent | None:
        """The event that acknowledged the record: with acks=0, the send itself."""
        sent = self.answer(identity, "sent")
        unasked = sent is not None and str(sent.numbers.get("acks")) == "0"
        return self.answer(identity, "acknowledged") or (sent if unasked else None)

    def label(self, identity: Identity) -> str:
        """The record's label: from the log, or else from its producer."""
        acknowledgement = self._acknowledgements.get(identity)
        if acknowledgement is None or not _anonymous(identity):
            return identity.label
        return str(acknowledgement.event.numbers.get("record") or identity.label)

    def at_acknowledgement(self, identity: Identity) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(ISR, holders) at the time of the acknowledgement; both empty if there was none."""
        acknowledgement = self._acknowledgements.get(identity)
        return (
            ((), ()) if acknowledgement is None else (acknowledgement.isr, acknowledgement.holders)
        )

    def outcome(self, identity: Identity) -> str:
        """What became of the record, as in `Account.outcome`."""
        acknowledged = self.acknowledgement(identity) is not None
        if self.label(identity) in self._lost:
            return "lost"
        if self.holders(identity):
            if not self._readable(identity):
                return "unavailable"
            refused = self.answer(identity, "refused") is not None
            return "refused-kept" if refused and not acknowledged else "kept"
        if identity.offset is None:
            return "never-written"
        if acknowledged:
            return "lost"
        seen = identity in self._seen or identity.label in self._seen
        return "exposed-lost" if seen else "dropped"

    def _readable(self, identity: Identity) -> bool:
        holders = self.holders(identity)
        if self._leader is not None and self._leader in self.alive:
            return self._leader in holders
        return any(broker in self.alive for broker in holders)

    def causes(self, identity: Identity) -> list[TraceEvent]:
        """The event that made the record unreadable, and its causes, the nearest first."""
        return self.chain(self._origin(identity))

    def chain(self, event: TraceEvent | None) -> list[TraceEvent]:
        """An event and its causes, the nearest first."""
        chain = [] if event is None else [event]
        # Every cause is older than its effect, so the walk ends; the bound guards a broken trace.
        while chain and chain[-1].why is not None and len(chain) < _MOST_CAUSES:
            cause = self._events.get(chain[-1].why)
            if cause is None or cause.id >= chain[-1].id:
                break
            chain.append(cause)
        return chain

    def _origin(self, identity: Identity) -> TraceEvent | None:
        """What ended the last copy; if a copy exists that nobody can read, the last election."""
        if self.holders(identity):
            return None if self._readable(identity) else self._election
        ends = [copy.ends for copy in self.copies(identity) if copy.ends is not None]
        return max(ends, key=lambda event: event.id, default=None)

    # One event after the other.

    def _take(self, event: TraceEvent) -> None:
        self._meet(event)
        match event.kind:
            case "appended":
                self._appended(event)
            case "truncated":
                end = event.numbers["end_offset"]
                # A log that starts again beyond its former end keeps nothing.
                self._end_copies(event, end if end <= event.numbers["was"] else 0)
            case "power-lost":
                self._end_copies(event, event.numbers["kept"])
            case "disk-lost":
                self._end_copies(event, 0)
            case "restarted":
                self._end_copies(event, event.numbers["log_end_offset"])
            case "sent" | "acknowledged" | "refused" | "unanswered" | "consumed":
                self._on_client_event(event)
            case _:
                self._on_store_event(event)

    def _meet(self, event: TraceEvent) -> None:
        if event.kind in ("begins", "reassigned"):
            for broker in event.numbers.get("replicas") or ():
                self._brokers[broker] = self.alive[broker] = None
        if event.broker is None:
            return
        if event.broker not in self._brokers or event.kind == "restarted":
            self._brokers[event.broker] = self.alive[event.broker] = None
        if event.kind in ("crashed", "power-lost", "stopped"):
            self.alive.pop(event.broker, None)

    def _on_store_event(self, event: TraceEvent) -> None:
        if event.kind in ("begins", "elected", "isr-committed"):
            self._isr = tuple(event.numbers.get("isr") or ())
        if event.kind == "verdict":
            self._lost = dict.fromkeys(map(str, event.numbers.get("lost") or ()))
        if event.kind in ("begins", "elected"):
            leader = event.numbers.get("leader")
            online = event.numbers.get("rule") != "none" and isinstance(leader, int) and leader >= 0
            self._leader = leader if online else None
            self._election = event

    def _appended(self, event: TraceEvent) -> None:
        base, end = event.numbers["base_offset"], event.numbers["end_offset"]
        self._end_copies(event, base)
        labels = [str(label) for label in event.numbers["records"] or ()]
        named = len(labels) == end - base
        for offset in self._wanted(base, end, labels if named else []):
            label = labels[offset - base] if named else str(offset)
            identity = Identity(offset, event.numbers["leader_epoch"], label)
            assert event.broker is not None
            self._copies.append(Copy(identity, event.broker, event))

    def _wanted(self, base: int, end: int, labels: Sequence[str]) -> Iterable[int]:
        if isinstance(self._asked, int):
            return [self._asked] if base <= self._asked < end else []
        return [base + place for place, label in enumerate(labels) if label == self._asked]

    def _end_copies(self, event: TraceEvent, end: int) -> None:
        for copy in self._copies:
            offset = copy.identity.offset
            if copy.broker == event.broker and copy.ends is None and offset is not None:
                copy.ends = event if offset >= end else None

    def _on_client_event(self, event: TraceEvent) -> None:
        label, offset = event.numbers.get("record"), event.numbers.get("offset")
        identity = self._identity_of(event, label, offset)
        if event.kind == "consumed":
            self._seen[identity or str(label)] = None
        elif identity is None:
            self._unwritten.setdefault(str(label), []).append(event)
        else:
            self._answers.setdefault((identity, event.kind), event)
            if event.kind == "acknowledged":
                self._acknowledgements[identity] = _Acknowledgement(
                    event, self._isr, self.holders(identity)
                )

    def _identity_of(self, event: TraceEvent, label: object, offset: object) -> Identity | None:
        """The record that a client's event is about, found in its broker's log."""
        if event.kind == "sent":
            return None  # It may be a retry: a copy that is there now is not what was sent.
        matching = [
            copy.identity
            for copy in self._copies
            if copy.broker == event.broker
            and (not at_offset(offset) or copy.identity.offset == offset)
            and (label in (None, "", copy.identity.label) or _anonymous(copy.identity))
        ]
        return matching[-1] if matching else None


def offset_of(events: Iterable[TraceEvent], label: str) -> int | None:
    """The acknowledged offset of a record that no log names; None if a log names it."""
    offset: int | None = None
    for event in events:
        if event.kind == "appended" and label in map(str, event.numbers["records"] or ()):
            return None
        if event.kind == "acknowledged" and str(event.numbers.get("record")) == label:
            answered = event.numbers["offset"]
            offset = answered if at_offset(answered) else offset
    return offset


def _anonymous(identity: Identity) -> bool:
    return identity.label == str(identity.offset)
