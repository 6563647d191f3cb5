"""The trace of a real broker: one line of JSON an event, written beside the work, not in its way.

Events go into a queue; a thread of its own turns them into lines and writes them, milliseconds
later. If it cannot keep up the queue stays bounded: what does not fit is dropped, counted, and the
trace itself says how much is missing. A broker without a trace has None in its place, so the hot
path pays for one comparison.

A line is that of `model.trace`, with one key more: `ns`, the nanoseconds behind `t`, by which the
traces of several brokers are put in order. `id` counts on over the lives of a broker.
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
from typing import TYPE_CHECKING, Any, Final

from holdfast.core import Fetch, FetchAnswer, HighWatermarkMoved, IsrApplied, ProposeIsr, TruncateTo
from holdfast.model import KINDS, ErrorCode, PartitionState
from holdfast.protocol.records import RecordBatchHeader

if TYPE_CHECKING:
    from holdfast.broker.partition import Partition

MOST_EVENTS: Final = 50_000
"""Events that wait to be written; some 20 MB."""
PAUSE_S: Final = 0.01
"""How long the writer lets events gather."""
_TAIL_BYTES: Final = 65_536

_Event = tuple[int, int, str, str, "int | None", "int | None", dict[str, Any]]


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
        self._told_dropped = 0
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._next_id = self._continue()
        self._has_events = threading.Event()
        self._is_closed = False
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="trace", daemon=True)
        self._thread.start()

    def _continue(self) -> int:
        """The id after the last one in the file; a line that was torn by a kill is ended."""
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

    def emit(self, kind: str, partition: str = "", why: int | None = None, **numbers: Any) -> int:
        """Something happened; gives its id, so that what follows can name it as its cause."""
        assert kind in KINDS, kind
        number = self._next_id
        events = self._events
        if len(events) >= self._most:
            self.dropped += 1
            return number
        self._next_id = number + 1
        events.append(
            (number, self._clock_ns(), kind, partition, self.broker_epoch, why, numbers),
        )
        if not self._has_events.is_set():
            self._has_events.set()
        return number

    def flush(self) -> None:
        """Everything emitted so far is in the file when this returns."""
        with self._writing:
            waiting = self._events
            # Taken one by one, at most as many as there are now: others go on adding at the end.
            events = [waiting.popleft() for _ in range(len(waiting))]
            missing, self._told_dropped = self.dropped - self._told_dropped, self.dropped
            lines = [self._line(event) for event in events]
            if missing:
                lines.append(self._gap(missing))
            if lines:
                self._write("".join(lines).encode())

    def _write(self, data: bytes) -> None:
        try:
            while data:  # Each round writes a byte at least, or raises.
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            self.dropped += data.count(b"\n")  # A full disk must not stop the broker.

    def _gap(self, missing: int) -> str:
        text = f"{missing} events are missing here: more happened than could be written"
        number, self._next_id = self._next_id, self._next_id + 1
        return self._line(
            (number, self._clock_ns(), "said", "", self.broker_epoch, None, {"text": text})
        )

    def _line(self, event: _Event) -> str:
        number, now_ns, kind, partition, epoch, why, numbers = event
        now_ms, rest_ns = divmod(now_ns, 1_000_000)
        line = {
            "id": number,
            "t": now_ms,
            "b": self.broker,
            "be": epoch,
            "p": partition,
            "k": kind,
            "why": why,
            **numbers,
            "ns": rest_ns,
        }
        return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"

    def _run(self) -> None:
        while not self._is_closed:
            self._has_events.wait()
            time.sleep(PAUSE_S)
            self._has_events.clear()  # first: an event that comes after the last look sets it again
            self.flush()

    def close(self) -> None:
        """Write what is left."""
        if self._is_closed:
            return
        self._is_closed = True
        self._has_events.set()
        self._thread.join()
        self.flush()
        os.close(self._descriptor)


class BrokerTrace:
    """The broker's events in the words of `model.trace`."""

    def __init__(self, file: TraceFile) -> None:
        self.file = file
        self.emit = file.emit

    # The broker.

    def registered(self, broker_epoch: int) -> None:
        """A new life has begun."""
        self.file.broker_epoch = broker_epoch
        self.emit("registered")

    def restarted(self, partition: Partition, *, clean: bool) -> None:
        """A log has been opened."""
        numbers = partition.replica.log
        self.emit(
            "restarted",
            str(partition.name),
            log_end_offset=numbers.log_end_offset,
            high_watermark=numbers.high_watermark,
            clean=clean,
        )

    def session_expired(self) -> None:
        """The store no longer believes that we live."""
        self.emit("session-expired")

    def stopped(self) -> None:
        """A clean end; nothing comes after it."""
        self.emit("stopped")
        self.file.flush()

    # Control.

    def controller(self, controller_epoch: int) -> None:
        """We have become the controller."""
        self.emit("controller", controller_epoch=controller_epoch)

    def elected(self, partition: str, state: PartitionState, rule: str) -> None:
        """The store has a new leader. The election is nobody's in particular."""
        self.emit(
            "elected",
            partition,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            isr=list(state.isr),
            eligible=list(state.eligible_leaders),
            rule=rule,
        )

    def isr_committed(self, partition: str, state: PartitionState) -> None:
        """The store has another ISR."""
        self.emit(
            "isr-committed",
            partition,
            isr=list(state.isr),
            partition_epoch=state.partition_epoch,
            eligible=list(state.eligible_leaders),
        )

    # One partition.

    def role_changed(self, partition: Partition, state: PartitionState) -> None:
        """We lead or follow from now on."""
        replica = partition.replica
        if state.leader != replica.broker:
            self.emit(
                "became-follower",
                str(partition.name),
                leader=state.leader if state.leader >= 0 else None,
                leader_epoch=state.leader_epoch,
            )
            return
        numbers = replica.log
        self.emit(
            "became-leader",
            str(partition.name),
            leader_epoch=state.leader_epoch,
            start_offset=numbers.log_end_offset,
            log_end_offset=numbers.log_end_offset,
            high_watermark=numbers.high_watermark,
            isr=list(state.isr),
        )

    def went_offline(self, partition: Partition, reason: str) -> None:
        """Its disk has failed."""
        self.emit("disk-failed", str(partition.name), error=reason)
        self.emit("went-offline", str(partition.name), reason=reason)

    def appended(self, partition: Partition, header: RecordBatchHeader, *, as_leader: bool) -> None:
        """A batch has been written."""
        self.emit(
            "appended",
            str(partition.name),
            base_offset=header.base_offset,
            end_offset=header.end_offset,
            leader_epoch=header.leader_epoch,
            records=[],
            as_leader=as_leader,
        )

    def truncated(self, partition: Partition, cut: TruncateTo) -> None:
        """The end of the log is gone."""
        end = partition.log.log_end_offset
        self.emit("truncated", str(partition.name), end_offset=end, was=cut.was, records=[])

    def flushed(self, partition: Partition, end_offset: int) -> None:
        """Everything below is on the disk."""
        self.emit("flushed", str(partition.name), end_offset=end_offset)

    def high_watermark(self, partition: Partition, moved: HighWatermarkMoved) -> None:
        """More is committed."""
        self.emit(
            "high-watermark",
            str(partition.name),
            high_watermark=moved.high_watermark,
            was=moved.was,
        )

    def fetched(self, partition: Partition, fetch: Fetch, answer: FetchAnswer) -> None:
        """A follower's request has been looked at."""
        name = str(partition.name)
        cause = self.emit(
            "fetched",
            name,
            follower=fetch.follower,
            fetch_offset=fetch.fetch_offset,
            last_fetched_epoch=fetch.last_fetched_epoch,
            leader_epoch=fetch.current_leader_epoch,
            noted=not answer.error and answer.diverging is None,
        )
        if answer.error:
            self.emit(
                "fetch-refused", name, cause, follower=fetch.follower, error=answer.error.name
            )
        elif answer.diverging is not None:
            epoch, end_offset = answer.diverging
            self.emit(
                "diverged",
                name,
                cause,
                follower=fetch.follower,
                epoch=epoch,
                end_offset=end_offset,
            )
        elif answer.end_offset > fetch.fetch_offset:
            self.emit(
                "fetch-answered",
                name,
                cause,
                follower=fetch.follower,
                base_offset=fetch.fetch_offset,
                end_offset=answer.end_offset,
                high_watermark=answer.high_watermark,
            )

    # The in-sync set.

    def isr_proposed(self, partition: Partition, proposal: ProposeIsr) -> None:
        """We ask for another ISR."""
        self.emit(
            "isr-proposed",
            str(partition.name),
            isr=[one.broker for one in proposal.isr],
            partition_epoch=proposal.partition_epoch,
        )

    def isr_applied(self, partition: Partition, applied: IsrApplied) -> None:
        """We count on another ISR."""
        self.emit(
            "isr-applied",
            str(partition.name),
            isr=list(applied.isr),
            partition_epoch=applied.partition_epoch,
        )

    def isr_refused(self, partition: Partition, error: ErrorCode) -> None:
        """The controller said no."""
        proposed = partition.state.isr if partition.state is not None else ()
        self.emit("isr-refused", str(partition.name), isr=list(proposed), error=error.name)
