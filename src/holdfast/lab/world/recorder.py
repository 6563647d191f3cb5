"""Records the trace of a simulated run, with the cause of each event."""

from __future__ import annotations

from typing import Any

from holdfast.model import KINDS, TraceEvent


class Recorder:
    """Collects trace events. `cause` is the event that causes the next ones."""

    def __init__(self, partition: str) -> None:
        self.events: list[TraceEvent] = []
        self.partition = partition
        self.cause: int | None = None
        self.now_ms = 0

    def emit(
        self, kind: str, broker: int | None = None, broker_epoch: int | None = None, **numbers: Any
    ) -> int:
        """Add an event; it becomes the cause of what follows in the same handler."""
        expected = KINDS[kind].numbers
        assert tuple(sorted(numbers)) == tuple(sorted(expected)), (kind, tuple(numbers), expected)
        ordered = {name: numbers[name] for name in expected}
        event = TraceEvent(
            len(self.events),
            self.now_ms,
            kind,
            broker,
            broker_epoch,
            self.partition,
            ordered,
            self.cause,
        )
        self.events.append(event)
        if kind not in ("said", "step"):
            self.cause = event.id
        return event.id
