"""The trace of a real broker: one line of JSON per event, written by a thread of its own.

Events go into a queue; the thread turns them into lines and writes them, milliseconds later. The
queue is bounded: events that do not fit are dropped and counted, and the trace records how many are
missing. A broker without a trace has None in its place, so the hot path pays for one comparison.

A line is that of `model.trace`, with one more key: `ns`, the nanoseconds after `t`, by which the
traces of several brokers are put in order. `id` continues over the restarts of a broker.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from holdfast.model import KINDS, TopicPartition

MOST_EVENTS: Final = 50_000
"""The limit of unwritten events; some 20 MB."""
PAUSE_S: Final = 0.01
"""How long the writer collects events."""
_TAIL_BYTES: Final = 65_536

_Event = tuple[int, str, "TopicPartition | None", "int | None", dict[str, Any]]


class TraceFile:
    """Appends events to a file. `emit` may be called from any thread, and never blocks."""

    def __init__(
        self,
        path: str | Path,
        broker: int | None,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
        most: int = MOST_EVENTS,
    ) -> None:
        self.broker = broker
        self.broker_epoch: int | None = None
        self.dropped = 0
        """Events that did not fit, since the file was opened."""
        self._clock_ns = clock_ns
        self._most = most
        self._events: deque[_Event] = deque()
        self._reported_dropped = 0
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._next_id = self._continue()
        self._has_events = threading.Event()
        self._is_closed = False
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="trace", daemon=True)
        self._thread.start()

    def _continue(self) -> int:
        """The id after the last one in the file; ends a line that a kill left incomplete."""
        size = os.fstat(self._descriptor).st_size
        if not size:
            return 0
        tail = os.pread(self._descriptor, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
        if not tail.endswith(b"\n"):
            os.write(self._descriptor, b"\n")
        for line in reversed(tail.splitlines()):
            with contextlib.suppress(ValueError, TypeError, KeyError):
                return int(json.loads(line)["id"]) + 1
        return 0

    def emit(self, kind: str, partition: TopicPartition | None = None, **numbers: Any) -> None:
        """Add one event. `why` among the fields is the id of its cause."""
        assert kind in KINDS, kind
        if len(self._events) >= self._most:
            self.dropped += 1
            return
        self._events.append((self._clock_ns(), kind, partition, self.broker_epoch, numbers))
        if not self._has_events.is_set():
            self._has_events.set()

    def flush(self) -> None:
        """Write everything emitted so far before this returns."""
        with self._writing:
            waiting = self._events
            # One by one, at most as many as there are now: other threads keep adding at the end.
            events = [waiting.popleft() for _ in range(len(waiting))]
            missing, self._reported_dropped = self.dropped - self._reported_dropped, self.dropped
            lines = [self._line(event) for event in events]
            if missing:
                lines.append(self._gap(missing))
            if lines:
                self._write("".join(lines).encode())

    def _write(self, data: bytes) -> None:
        try:
            while data:  # Each round writes at least one byte, or raises.
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            self.dropped += data.count(b"\n")  # A full disk must not stop the broker.

    def _gap(self, missing: int) -> str:
        text = f"{missing} events are missing here: more happened than could be written"
        return self._line((self._clock_ns(), "said", None, self.broker_epoch, {"text": text}))

    def _line(self, event: _Event) -> str:
        now_ns, kind, partition, epoch, numbers = event
        now_ms, rest_ns = divmod(now_ns, 1_000_000)
        number, self._next_id = self._next_id, self._next_id + 1
        line = {
            "id": number,
            "t": now_ms,
            "b": self.broker,
            "be": epoch,
            "p": "" if partition is None else str(partition),
            "k": kind,
            "why": None,
            **numbers,
            "ns": rest_ns,
        }
        return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"

    def _run(self) -> None:
        while not self._is_closed:
            self._has_events.wait()
            time.sleep(PAUSE_S)
            self._has_events.clear()  # first: an event after the last check sets it again
            self.flush()

    def close(self) -> None:
        """Write the remaining events."""
        if self._is_closed:
            return
        self._is_closed = True
        self._has_events.set()
        self._thread.join()
        self.flush()
        os.close(self._descriptor)
