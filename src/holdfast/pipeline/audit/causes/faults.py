"""The faults of a cluster, from its traces, for the report's timeline.

A clean report shows them too: a verdict is worth as much as the faults that the cluster survived.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from holdfast.model.trace import TraceEvent
from holdfast.pipeline.audit.causes.leader_epochs import names_of
from holdfast.pipeline.audit.causes.traces import read_traces, trace_files
from holdfast.pipeline.audit.findings.findings import Step

MOST: Final = 1_000
_SENTENCES: Final = {
    "crashed": "{0} was killed",
    "power-lost": "the power of {0} failed",
    "disk-lost": "the disk of {0} came back empty",
    "stopped": "{0} shut down",
    "elected": "leaders were elected",
}
_NO_FAULT: Final = ("created", "preferred", "reassigned")
"""Rules of elections that were requested."""


def faults(traces: Iterable[Path], logs: Mapping[str, Path]) -> tuple[Step, ...]:
    """Kills, power failures and elections, oldest first; one of a kind per broker and second."""
    names = names_of(logs)
    found: dict[tuple[int, str, int | None], Step] = {}
    for seen in read_traces(trace_files(traces), None, tuple(_SENTENCES)):
        event = seen.event
        if event.numbers.get("rule") in _NO_FAULT or len(found) >= MOST:
            continue
        broker = None if event.kind == "elected" else event.broker
        found.setdefault((event.t // 1000, event.kind, broker), _step(event, names))
    return tuple(found.values())


def _step(event: TraceEvent, names: Mapping[int, str]) -> Step:
    broker = None if event.broker is None else names.get(event.broker, f"broker {event.broker}")
    return Step(
        time_ms=event.t,
        kind=event.kind,
        broker=broker,
        offset=None,
        sentence=_SENTENCES[event.kind].format(broker),
    )
