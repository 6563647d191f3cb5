"""What happened in a simulated cluster: one trace of all brokers, and what they said.

The events are those of `model.trace`, in the order in which they happened, with virtual time. Every
observer is shown each event right after it: that is where invariants are looked at.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.broker.log_lines import LogLines
from holdfast.model import KINDS, TopicPartition, TraceEvent
from holdfast.model.trace import SCHEMA
from holdfast.simulation.virtual_time_loop import Timeline


class Recording:
    """The events so far, and the bugs that brokers told of."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.events: list[TraceEvent] = []
        self.lines: list[str] = []
        """What brokers said to people."""
        self.bugs: list[str] = []
        self.observers: list[Callable[[TraceEvent], None]] = []
        self._logs: dict[int, LogLines] = {}

    def now_ms(self) -> int:
        return int(self._timeline.now_s * 1000)

    def begin(self, brokers: Sequence[int], partition: TopicPartition) -> None:
        """The opening: who is there, and which partition a picture shows."""
        self.emit(
            "begins",
            None,
            partition,
            schema=SCHEMA,
            names={str(broker): f"b{broker}" for broker in brokers},
            replicas=list(brokers),
            isr=[],
            leader=None,
            leader_epoch=-1,
            settings={},
            rules={},
        )

    def emit(
        self,
        kind: str,
        broker: int | None = None,
        partition: TopicPartition | None = None,
        broker_epoch: int | None = None,
        **numbers: Any,
    ) -> None:
        """Something happened."""
        assert kind in KINDS, kind
        name = "" if partition is None else str(partition)
        number, now_ms = len(self.events), self.now_ms()
        event = TraceEvent(number, now_ms, kind, broker, broker_epoch, name, numbers)
        self.events.append(event)
        for observer in self.observers:
            observer(event)

    def log_of(self, broker: int) -> LogLines:
        """Where a broker says what people read."""
        return self._logs.setdefault(broker, _Said(self, broker))


class Sink:
    """Where one life of a broker sends its events; closed with that life."""

    def __init__(self, recording: Recording, broker: int) -> None:
        self._recording = recording
        self._broker = broker
        self.broker_epoch: int | None = None
        self.is_closed = False

    def emit(self, kind: str, partition: TopicPartition | None = None, **numbers: Any) -> None:
        if not self.is_closed:
            self._recording.emit(kind, self._broker, partition, self.broker_epoch, **numbers)

    def flush(self) -> None:
        """Nothing waits: what is emitted is in the recording."""


class _Said(LogLines):
    """Keeps the lines, with virtual time, and counts a bug as one."""

    def __init__(self, recording: Recording, broker: int) -> None:
        super().__init__(broker, now_s=lambda: recording.now_ms() / 1000)
        self._recording = recording

    def bug(self, event: str, error: BaseException, **fields: object) -> None:
        self._write("error", event, {**fields, "error": repr(error)})
        report = "".join(traceback.format_exception(error))
        self._recording.bugs.append(f"b{self._broker}: {event}: {report}")

    def _write(self, level: str, event: str, fields: dict[str, object]) -> None:
        pairs = " ".join(f"{key}={value}" for key, value in fields.items())
        line = f"{self._recording.now_ms():>8} b{self._broker} {level} {event} {pairs}"
        self._recording.lines.append(line.rstrip())
