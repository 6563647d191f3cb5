"""Records a simulated cluster: one trace of all brokers, and their log lines.

The events are those of `model.trace`, in the order in which they happened, with virtual time. Every
observer receives each event right after it happened; the invariants are checked there.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.broker.log_lines import LogLines, Sender
from holdfast.model import KINDS, TopicPartition, TraceEvent
from holdfast.model.trace import SCHEMA
from holdfast.simulation.virtual_time_loop import Timeline


class Recording:
    """The events, log lines and bugs that the brokers have reported so far."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.events: list[TraceEvent] = []
        self.lines: list[str] = []
        """The log lines of the brokers."""
        self.bugs: list[str] = []
        self.observers: list[Callable[[TraceEvent], None]] = []
        self._logs: dict[int, LogLines] = {}

    def now_ms(self) -> int:
        return int(self._timeline.now_s * 1000)

    def begin(self, brokers: Sequence[int], partition: TopicPartition) -> None:
        """Emit the first event: the brokers, and the partition that a picture shows."""
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
        """Record an event, and pass it to every observer."""
        assert kind in KINDS, kind
        name = "" if partition is None else str(partition)
        number, now_ms = len(self.events), self.now_ms()
        event = TraceEvent(number, now_ms, kind, broker, broker_epoch, name, numbers)
        self.events.append(event)
        for observer in self.observers:
            observer(event)

    def log_of(self, broker: int) -> LogLines:
        """The log of a broker."""
        return self._logs.setdefault(broker, _Said(self, broker))


class Sink:
    """Receives the events of one broker incarnation; closed when its process ends."""

    def __init__(self, recording: Recording, broker: int) -> None:
        self._recording = recording
        self._broker = broker
        self.broker_epoch: int | None = None
        self.is_closed = False

    def emit(self, kind: str, partition: TopicPartition | None = None, **numbers: Any) -> None:
        if not self.is_closed:
            self._recording.emit(kind, self._broker, partition, self.broker_epoch, **numbers)

    def flush(self) -> None:
        """Does nothing: every event is already in the recording."""


class _Said(LogLines):
    """Keeps the log lines, with virtual time, and collects the bugs."""

    def __init__(self, recording: Recording, broker: int) -> None:
        super().__init__(broker, now_s=lambda: recording.now_ms() / 1000)
        self._recording = recording

    def bug(
        self, event: str, error: BaseException, sender: Sender | None = None, /, **fields: object
    ) -> None:
        self._write("error", event, {**(sender or {}), **fields, "error": repr(error)})
        report = "".join(traceback.format_exception(error))
        self._recording.bugs.append(f"b{self._broker}: {event}: {report}")

    def _write(self, level: str, event: str, fields: dict[str, object]) -> None:
        pairs = " ".join(f"{key}={value}" for key, value in fields.items())
        line = f"{self._recording.now_ms():>8} b{self._broker} {level} {event} {pairs}"
        self._recording.lines.append(line.rstrip())
