"""Reads the traces of a cluster: all files as one stream of events, in time order.

A trace may have millions of lines; a cause needs few of them. The reader skips lines of other
partitions and of irrelevant kinds before it parses them. It leaves out a line that a kill has torn.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.cluster.timeline import MERGED
from holdfast.model.trace import MalformedTraceError, TraceEvent, parse_trace

_RELEVANT_KINDS: Final = (
    *("begins", "said", "registered", "restarted", "elected", "isr-committed"),
    *("became-leader", "became-follower", "appended", "truncated", "acknowledged"),
    *("crashed", "power-lost", "disk-lost", "stopped", "disk-failed", "went-offline"),
)
"""The kinds that explain the end of a record."""


class Seen(NamedTuple):
    """One event, and where it was read."""

    event: TraceEvent
    path: Path
    line: int

    @property
    def place(self) -> str:
        """File and line, for the evidence."""
        return f"{self.path}:{self.line}"


def trace_files(given: Iterable[Path]) -> list[Path]:
    """The trace files of a user's paths: files, directories, a cluster's data directory.

    The merged timeline repeats the others, so it is read only if it is the only one.
    """
    found: dict[Path, None] = {}
    for path in given:
        places = [path, path / "traces"] if path.is_dir() else [path.parent]
        inside = [one for place in places for one in sorted(place.glob("*.trace"))]
        chosen = inside if path.is_dir() else [path]
        found |= dict.fromkeys(chosen)
    single = [path for path in found if path.name != MERGED]
    return sorted(single or found)


def read_traces(
    paths: Sequence[Path],
    partitions: Iterable[str] | None,
    kinds: tuple[str, ...] = _RELEVANT_KINDS,
) -> Iterator[Seen]:
    """The events of some kinds about these partitions, and about whole brokers, oldest first.

    None: about all partitions.
    """
    wanted = None if partitions is None else dict.fromkeys(["", *partitions])
    streams = [_events(path, wanted, kinds) for path in paths]
    return heapq.merge(*streams, key=_when)


def _when(seen: Seen) -> tuple[int, int]:
    return seen.event.t, seen.event.numbers.get("ns", 0)


def _events(path: Path, wanted: dict[str, None] | None, kinds: tuple[str, ...]) -> Iterator[Seen]:
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if not _is_of(line, kinds):
                continue
            try:
                [event] = parse_trace((line,))
            except (MalformedTraceError, ValueError):
                continue  # a kill left an incomplete line
            if wanted is None or event.partition in wanted:
                yield Seen(event, path, number)


def _is_of(line: str, kinds: tuple[str, ...]) -> bool:
    """Whether the kind is one of these; the key may be written with a space or without."""
    _, found, rest = line.partition('"k":')
    return bool(found) and rest.lstrip(' "').startswith(kinds)
