"""Reads waits, silences and copies from a trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from holdfast.model import TraceEvent

PATIENCE_MS: Final = 200
"""A shorter silence does not count as unavailability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """What producers experienced."""

    waits_ms: tuple[int, ...]
    """From the first send of each acknowledged record to its acknowledgement."""
    silent_ms: int
    """Time without acknowledgements, less the tolerated part."""
    copies: tuple[int, ...]
    """The number of logs that held each record at its acknowledgement."""


def waits_of(events: Iterable[TraceEvent], duration_ms: int) -> Waits:
    """Compute the figures in one pass over a trace."""
    sent: dict[str, int] = {}
    logs: dict[int, list[str]] = {}
    waits: list[int] = []
    copies: list[int] = []
    silent, heard = 0, 0
    for event in events:
        match event.kind:
            case "sent":
                sent.setdefault(event.numbers["record"], event.t)
            case "acknowledged":
                record = event.numbers["record"]
                waits.append(event.t - sent[record])
                copies.append(sum(record in log for log in logs.values()))
                silent += max(0, event.t - heard - PATIENCE_MS)
                heard = event.t
            case _:
                _follow(logs, event)
    silent += max(0, duration_ms - heard - PATIENCE_MS)
    return Waits(waits_ms=tuple(waits), silent_ms=silent, copies=tuple(copies))


def _follow(logs: dict[int, list[str]], event: TraceEvent) -> None:
    """Update the logs to their content after the event."""
    if event.broker is None:
        return
    log = logs.setdefault(event.broker, [])
    match event.kind:
        case "appended":
            log.extend(event.numbers["records"])
        case "truncated":
            del log[event.numbers["end_offset"] :]
        case "power-lost":
            del log[event.numbers["kept"] :]
        case _:
            pass
