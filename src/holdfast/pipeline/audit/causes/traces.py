"""Reading the traces of a cluster: all files as one stream, in the order in which things happened.

A trace may have millions of lines; a cause needs few of them. Lines about other partitions are
passed over before they are parsed, and so are the kinds that tell nothing about a record's end. A
line that a kill has torn is left out.
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
"""The kinds that a record's end can be told from."""


class Seen(NamedTuple):
    """One event, and where it is written."""

    event: TraceEvent
    path: Path
    line: int

    @property
    def place(self) -> str:
        """For the evidence: file and line."""
        return f"{self.path}:{self.line}"

    @property
    def name(self) -> str:
        """The event's id, which counts by file: `broker-2.trace#57`."""
        return f"{self.path.name}#{self.event.id}"


def trace_files(given: Iterable[Path]) -> list[Path]:
    """The trace files in what a user named: files, directories, a cluster's data directory.

    The merged timeline repeats what the others say, so it is read only where it is alone.
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
    """The events of some kinds about these partitions, and about brokers as a whole, oldest first.

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
                continue  # cut short by a kill
            if wanted is None or event.partition in wanted:
                yield Seen(event, path, number)


def _is_of(line: str, kinds: tuple[str, ...]) -> bool:
    """Whether the kind is one of these; the key may be written with a space or without."""
    _, found, rest = line.partition('"k":')
    return bool(found) and rest.lstrip(' "').startswith(kinds)
