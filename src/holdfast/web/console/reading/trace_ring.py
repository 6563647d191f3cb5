"""The last minutes of a cluster's trace, in bounded memory.

The brokers and the cluster append to trace files; the ring reads what is new. What leaves the ring
is not lost altogether: of each replica, the last event of each kind stays, so that a replay can
begin with the state at the ring's start.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.cluster.timeline import MERGED, merged
from holdfast.model.trace import MalformedTraceError, TraceEvent, parse_trace

MINUTES: Final = 5
MOST_EVENTS: Final = 60_000
MOST_BYTES: Final = 4 * 1024 * 1024
"""Read from one file in one turn. What a faster file has beyond that is skipped."""
_STATE: Final = (
    *("registered", "became-leader", "became-follower", "went-offline", "elected"),
    *("isr-committed", "isr-applied", "appended", "truncated", "flushed", "high-watermark"),
    *("fetched", "crashed", "power-lost", "stopped", "restarted", "paused", "resumed"),
    *("session-expired", "cut", "healed"),
)
"""The kinds whose last event says something about the present."""


class Kept(NamedTuple):
    """An event as its line, and what it is looked up by."""

    t: int
    ns: int
    file: int
    broker: int | None
    partition: str
    kind: str
    line: str


class TraceRing:
    """Reads the trace files of one data directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "traces"
        self._places: dict[Path, int] = {}
        self._ring: deque[Kept] = deque()
        self._base: dict[tuple[int | None, str, str], Kept] = {}
        self.skipped = 0
        """Bytes of the trace that came faster than they could be read."""

    def __len__(self) -> int:
        return len(self._ring)

    def poll(self) -> list[Kept]:
        """The new events, in their order."""
        new: list[Kept] = []
        for path in sorted(self._folder.glob("*.trace")):
            if path.name != MERGED:
                file = list(self._places).index(path) if path in self._places else None
                new += self._read(path, len(self._places) if file is None else file)
        new.sort(key=lambda one: (one.t, one.ns))
        self._ring.extend(new)
        self._forget()
        return new

    def _read(self, path: Path, file: int) -> Iterator[Kept]:
        place = self._places.setdefault(path, 0)
        with path.open("rb") as source:
            size = source.seek(0, 2)
            if size - place > MOST_BYTES:
                self.skipped += size - MOST_BYTES - place
                place = size - MOST_BYTES
            source.seek(place)
            data = source.read(size - place)
        # Up to the last complete line: the writer may be in the middle of one.
        data = data[: data.rfind(b"\n") + 1]
        self._places[path] = place + len(data)
        for line in data.decode(errors="replace").splitlines():
            kept = _kept(line, file)
            if kept is not None:
                yield kept

    def _forget(self) -> None:
        oldest = self._ring[-1].t - MINUTES * 60_000 if self._ring else 0
        while self._ring and (len(self._ring) > MOST_EVENTS or self._ring[0].t < oldest):
            gone = self._ring.popleft()
            if gone.kind in _STATE:
                key = (gone.broker, gone.partition, gone.kind)
                self._base.pop(key, None)  # so that the order is that of time
                self._base[key] = gone

    def replay(
        self, partition: str, minutes: float = MINUTES, most: int = MOST_EVENTS
    ) -> tuple[list[TraceEvent], int]:
        """The newest events of one partition, at most so many and so old, after those that restore
        the state before; and how many of these there are.
        """
        newest = self._ring[-1].t if self._ring else 0
        since = newest - minutes * 60_000
        wanted = [one for one in self._ring if one.partition in ("", partition)]
        first = max(len(wanted) - most, sum(one.t < since for one in wanted))
        before = [one for one in self._base.values() if one.partition in ("", partition)]
        before += [one for one in wanted[:first] if one.kind in _STATE]
        recent = wanted[first:]
        base = _last_of_each(before)
        lines = merged([_event(one) for one in (*base, *recent)], partition)
        return [*_parsed(lines)], len(base) + 1

    def all_events(self, partition: str) -> list[TraceEvent]:
        """Everything that is still known of one partition."""
        return self.replay(partition)[0]

    def latest(self, kinds: tuple[str, ...], partition: str, most: int) -> list[dict[str, Any]]:
        """The newest events of some kinds of one partition, newest first, at most so many."""
        found: list[dict[str, Any]] = []
        for one in reversed((*self._base.values(), *self._ring)):
            if one.kind in kinds and one.partition in ("", partition):
                found.append(json.loads(one.line))
                if len(found) == most:
                    break
        return found


def event_of(one: Kept) -> TraceEvent | None:
    """The event of a line; None if it is of an unknown kind."""
    return next(_parsed([_event(one)]), None)


def _last_of_each(events: list[Kept]) -> list[Kept]:
    last: dict[tuple[int | None, str, str], Kept] = {}
    for one in events:
        last[one.broker, one.partition, one.kind] = one
    return sorted(last.values(), key=lambda one: (one.t, one.ns))


def _kept(line: str, file: int) -> Kept | None:
    try:
        fields = json.loads(line)
        return Kept(
            fields["t"], fields.get("ns", 0), file, fields["b"], fields["p"], fields["k"], line
        )
    except (ValueError, KeyError, TypeError):
        return None  # a kill left an incomplete line


def _event(one: Kept) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(one.line)
    return {**fields, "ns": one.ns, "file": one.file}


def _parsed(lines: list[dict[str, Any]]) -> Iterator[TraceEvent]:
    for line in lines:
        try:
            yield from parse_trace([json.dumps(line)])
        except MalformedTraceError:
            continue  # a newer broker's kind of event
