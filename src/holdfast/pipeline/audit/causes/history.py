"""The history of a range of offsets in a trace: which logs had it, and what ended each copy.

One pass over the events of one partition, real or simulated. A log is kept as spans of one leader
epoch, not as records, so millions of appends cost a few spans. A truncation ends the spans above it
and shortens the span that it falls into. Elections keep the spans that every log had then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, NamedTuple

from holdfast.pipeline.audit.causes.traces import Seen

UNKNOWN: Final = -1
"""An epoch that the trace does not contain."""
_FAULTS: Final = ("crashed", "stopped", "power-lost", "disk-lost", "disk-failed")
_ENDS: Final = {
    "truncated": ("was", "end_offset"),
    "power-lost": ("was", "kept"),
    "disk-lost": ("was", ""),
    "restarted": ("", "log_end_offset"),
}
"""The fields of an event with the former and the new length of the log."""


class Span(NamedTuple):
    """Offsets, half open."""

    start: int
    end: int

    def covers(self, offset: int) -> bool:
        return self.start <= offset < self.end

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A span of one epoch in one broker's log, from its append to its end."""

    broker: int
    span: Span
    epoch: int
    since: Seen
    """Its first append."""
    until: Seen | None = None
    """The event that ended it; None while it exists."""

    def is_of(self, offset: int, epoch: int) -> bool:
        """Whether it is the record that this epoch wrote here; an unknown epoch matches any."""
        return self.span.covers(offset) and (self.epoch == epoch or UNKNOWN in (self.epoch, epoch))


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """A leader in the store, and what the logs held at that time."""

    seen: Seen
    leader: int | None
    epoch: int
    rule: str
    isr: tuple[int, ...]
    copies: tuple[Copy, ...]

    def leader_has(self, offset: int, epoch: int) -> bool:
        """Whether the new leader's log held the record that this epoch wrote at this offset."""
        return any(copy.broker == self.leader and copy.is_of(offset, epoch) for copy in self.copies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """A sequence of equal acknowledgements."""

    first: Seen
    span: Span
    acks: int
    isr: tuple[int, ...]
    epoch: int
    """The epoch of the leader that acknowledged."""

    def goes_on_with(self, other: Acknowledgement) -> bool:
        """Whether the other one continues the sequence."""
        alike = (self.acks, self.isr, self.epoch) == (other.acks, other.isr, other.epoch)
        return alike and self.span.end == other.span.start


@dataclass(slots=True)
class History:
    """One partition, as its brokers traced it. `take` expects the events oldest first."""

    starts: Collection[int] = ()
    """Offsets at which something is missing: a new sequence of acknowledgements begins there."""
    ended: list[Copy] = field(default_factory=list)
    elections: list[Election] = field(default_factory=list)
    acknowledgements: list[Acknowledgement] = field(default_factory=list)
    faults: list[Seen] = field(default_factory=list)
    """Deaths of brokers, of any kind."""
    became: list[Seen] = field(default_factory=list)
    """Brokers that became leader or follower."""
    isr_changes: list[Seen] = field(default_factory=list)
    _open: dict[int, list[Copy]] = field(default_factory=dict)
    _isr: tuple[int, ...] = ()
    _batches: dict[tuple[int | None, int], int] = field(default_factory=dict)
    """Ends of batches that a leader has written and not yet acknowledged."""

    def take(self, seen: Seen) -> None:
        """Take one event."""
        event = seen.event
        match event.kind:
            case "appended":
                self._appended(seen)
            case "acknowledged":
                self._acknowledged(seen)
            case "elected":
                self._elected(seen)
            case "truncated" | "power-lost" | "disk-lost" | "restarted":
                self._shortened(seen)
            case "begins" if event.numbers["leader"] is not None:
                self._elected(seen)
            case "isr-committed":
                self._isr = _brokers(event.numbers["isr"])
                self.isr_changes.append(seen)
            case "became-leader" | "became-follower":
                self.became.append(seen)
            case _:
                pass
        if event.kind in _FAULTS:
            self.faults.append(seen)

    def _shortened(self, seen: Seen) -> None:
        """A log has a new end; what was above it is gone."""
        numbers = seen.event.numbers
        was, end = (numbers.get(key) for key in _ENDS[seen.event.kind])
        if end is None:
            end = 0  # the whole log
        if was is None:
            was = end
        self._learn_end(seen, was)
        # A log that starts again beyond its former end keeps nothing.
        self._truncate(seen, end if end <= was else 0)

    def _appended(self, seen: Seen) -> None:
        numbers = seen.event.numbers
        base, end, epoch = numbers["base_offset"], numbers["end_offset"], numbers["leader_epoch"]
        broker = _broker(seen)
        if numbers["as_leader"]:
            self._batches[broker, base] = end
        self._truncate(seen, base)
        copies = self._open.setdefault(broker, [])
        if copies and copies[-1].epoch == epoch and copies[-1].span.end == base:
            copies[-1] = replace(copies[-1], span=Span(copies[-1].span.start, end))
        else:
            copies.append(Copy(broker=broker, span=Span(base, end), epoch=epoch, since=seen))

    def _learn_end(self, seen: Seen, end: int) -> None:
        """A log may be longer than the trace says: a kill loses the last lines of a trace."""
        copies = self._open.setdefault(_broker(seen), [])
        known = copies[-1].span.end if copies else 0
        if known >= end:
            return
        if copies:
            copies[-1] = replace(copies[-1], span=Span(copies[-1].span.start, end))
        else:
            copies.append(Copy(broker=_broker(seen), span=Span(0, end), epoch=UNKNOWN, since=seen))

    def _truncate(self, seen: Seen, end: int) -> None:
        copies = self._open.get(_broker(seen), [])
        while copies and copies[-1].span.end > end:  # Each round ends one span, or shortens it.
            copy = copies.pop()
            start = max(end, copy.span.start)
            self.ended.append(replace(copy, span=Span(start, copy.span.end), until=seen))
            if copy.span.start < end:
                copies.append(replace(copy, span=Span(copy.span.start, end)))

    def _acknowledged(self, seen: Seen) -> None:
        offset, acks = seen.event.numbers["offset"], seen.event.numbers["acks"]
        if not isinstance(offset, int) or offset < 0:
            return
        copies = self._open.get(seen.event.broker, []) if seen.event.broker is not None else []
        epoch = next((copy.epoch for copy in reversed(copies) if copy.span.covers(offset)), UNKNOWN)
        acknowledgement = Acknowledgement(
            first=seen,
            span=Span(offset, self._batches.pop((seen.event.broker, offset), offset + 1)),
            acks=-1 if acks in ("all", "-1") else int(acks),
            isr=self._isr,
            epoch=epoch,
        )
        last = self.acknowledgements[-1] if self.acknowledgements else None
        if last is not None and last.goes_on_with(acknowledgement) and offset not in self.starts:
            self.acknowledgements[-1] = replace(
                last, span=Span(last.span.start, acknowledgement.span.end)
            )
        else:
            self.acknowledgements.append(acknowledgement)

    def _elected(self, seen: Seen) -> None:
        numbers = seen.event.numbers
        self._isr = _brokers(numbers["isr"])
        rule = str(numbers.get("rule") or "isr")
        leads = rule != "none" and numbers["leader"] is not None
        self.elections.append(
            Election(
                seen=seen,
                leader=numbers["leader"] if leads else None,
                epoch=numbers["leader_epoch"],
                rule=rule,
                isr=self._isr,
                copies=self.held(),
            )
        )

    def held(self) -> tuple[Copy, ...]:
        """What every log has now."""
        return tuple(copy for copies in self._open.values() for copy in copies)

    def copies_of(self, offset: int) -> list[Copy]:
        """Every copy of any record at this offset, oldest first."""
        found = [copy for copy in (*self.ended, *self.held()) if copy.span.covers(offset)]
        return sorted(found, key=lambda copy: (copy.since.event.t, copy.broker))

    def pieces(self, span: Span) -> list[Span]:
        """The span in parts whose records all have one fate."""
        edges = {span.start: None, span.end: None}
        for copy in (*self.ended, *self.held()):
            edges |= {edge: None for edge in copy.span if span.start < edge < span.end}
        ordered = sorted(edges)
        return [Span(start, end) for start, end in pairwise(ordered)]


def histories(events: Iterable[Seen], wanted: Mapping[str, Collection[int]]) -> dict[str, History]:
    """One history per partition, with the offsets at which something is missing in it.

    Events of a whole broker go to all of them.
    """
    found = {partition: History(frozenset(starts)) for partition, starts in wanted.items()}
    for seen in events:
        if seen.event.partition:
            if seen.event.partition in found:
                found[seen.event.partition].take(seen)
        else:
            for history in found.values():
                history.take(seen)
    return found


def _broker(seen: Seen) -> int:
    assert seen.event.broker is not None, seen
    return seen.event.broker


def _brokers(value: object) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else ()
