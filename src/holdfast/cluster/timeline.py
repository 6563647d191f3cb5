"""One trace of a whole cluster: merges the brokers' traces and the injected faults by time.

All brokers run on one machine, so they share one clock; nanoseconds decide within a millisecond.
The result has the lab's trace format: `holdfast lab replay` steps through it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from holdfast.model.trace import SCHEMA

MERGED: Final = "cluster-timeline.trace"
INTERNAL: Final = "__"
_OF_FILES: Final = ("file", "ns")
"""Fields that order the events of several files, and have no use after that."""


def read_events(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Events of several traces in the order in which they happened, without torn lines."""
    events: list[tuple[int, int, int, dict[str, Any]]] = []
    for file, path in enumerate(sorted(paths)):
        ids: dict[int, int] = {}
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                event = json.loads(line)
                when = (event["t"], event.setdefault("ns", 0))
            except (ValueError, KeyError, TypeError):
                continue  # a kill left an incomplete line
            event["file"] = file
            ids[event["id"]] = len(events)
            events.append((*when, len(events), event))
    events.sort(key=lambda one: one[:3])
    return [event for *_, event in events]


def merged(events: list[dict[str, Any]], partition: str | None = None) -> list[dict[str, Any]]:
    """The events with new ids, times from 0, and a first event that introduces the brokers."""
    begins = events[0]["t"] if events else 0
    chosen = partition or _first_partition(events)
    lines = [_opening(events, chosen)]
    ids: dict[tuple[int, int], int] = {}
    for number, event in enumerate(events, 1):
        ids[event["file"], event["id"]] = number
        cause = ids.get((event["file"], event["why"])) if event["why"] is not None else None
        line = {key: value for key, value in event.items() if key not in _OF_FILES}
        lines.append({**line, "id": number, "t": event["t"] - begins, "why": cause})
    return lines


def _first_partition(events: list[dict[str, Any]]) -> str:
    """The first partition of a user's topic; otherwise the first of all."""
    names = [event["p"] for event in events if event["p"]]
    return next(
        (name for name in names if not name.startswith(INTERNAL)), names[0] if names else ""
    )


def _opening(events: list[dict[str, Any]], partition: str) -> dict[str, Any]:
    brokers = sorted({event["b"] for event in events if event["b"] is not None})
    return {
        "id": 0,
        "t": 0,
        "b": None,
        "be": None,
        "p": partition,
        "k": "begins",
        "why": None,
        "schema": SCHEMA,
        "names": {str(broker): f"b{broker}" for broker in brokers},
        "replicas": brokers,
        "isr": [],
        "leader": None,
        "leader_epoch": -1,
        "settings": {},
        "rules": {},
    }


def write_timeline(folder: Path, partition: str | None = None) -> Path | None:
    """Merge the traces below a data directory; the new file, or None if there are no traces."""
    traces = folder / "traces"
    paths = [path for path in traces.glob("*.trace") if path.name != MERGED]
    events = read_events(paths)
    if not events:
        return None
    lines = [json.dumps(line, ensure_ascii=False) for line in merged(events, partition)]
    target = traces / MERGED
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return target


def last_events(path: Path, most: int) -> list[str]:
    """The last events as short lines: time, broker, partition, what, its numbers."""
    lines = path.read_text(encoding="utf-8").splitlines()[-most:]
    return [_rendered(json.loads(line)) for line in lines]


_COMMON: Final = ("id", "t", "b", "be", "p", "k", "why")


def _rendered(event: dict[str, Any]) -> str:
    who = "     " if event["b"] is None else f"b{event['b']:<4}"
    numbers = " ".join(
        f"{key}={json.dumps(value, separators=(',', ':'))}"
        for key, value in event.items()
        if key not in _COMMON and value not in ([], {}, "")
    )
    return f"{event['t'] / 1000:9.3f} {who} {event['p']:<20} {event['k']:<16} {numbers}".rstrip()
