"""Progress of a stream: reported by Spark's own listener, shown on stderr.

On a terminal a bar; elsewhere a line now and then, so that a log file stays readable.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

EVERY_S: Final = 10.0
"""Between two lines where there is no terminal."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A stream's state after a batch."""

    rows: int = 0
    batches: int = 0
    rows_per_second: float = 0.0
    read: int = 0
    """Offsets, since the start of this run."""
    behind: int = 0
    """Offsets that were available but not read, all partitions together."""

    def __str__(self) -> str:
        return (
            f"{self.rows:,} rows in {self.batches} batches, {self.rows_per_second:,.0f} rows/s, "
            f"{self.behind:,} offsets behind"
        )


class Listener(StreamingQueryListener):
    """Sums up Spark's progress events of one query; called on a thread of Spark's."""

    def __init__(self) -> None:
        self.reading = Reading()
        self.ended = threading.Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # Spark's name
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802  # Spark's name
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark's name
        self.reading = after(self.reading, json.loads(event.progress.json))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  # Spark's name
        del event
        self.ended.set()


def after(reading: Reading, progress: Mapping[str, Any]) -> Reading:
    """The reading, one batch later."""
    read = behind = 0
    for source in progress["sources"]:
        begin, end = _offsets(source["startOffset"]), _offsets(source["endOffset"])
        # A new partition has no start: it is read from 0.
        read += sum(offset - begin.get(place, 0) for place, offset in end.items())
        latest = _offsets(source["latestOffset"])
        behind += sum(max(0, offset - end.get(place, 0)) for place, offset in latest.items())
    if not progress["numInputRows"] and not read:
        return replace(reading, rows_per_second=0.0, behind=behind)
    return Reading(
        rows=reading.rows + progress["numInputRows"],
        batches=reading.batches + 1,
        rows_per_second=progress["processedRowsPerSecond"],
        read=reading.read + read,
        behind=behind,
    )


def _offsets(offsets: Mapping[str, Mapping[str, int]] | None) -> dict[tuple[str, str], int]:
    """From {"topic": {"0": 5}}; empty where Spark has none."""
    return {
        (topic, partition): offset
        for topic, partitions in (offsets or {}).items()
        for partition, offset in partitions.items()
    }


class Meter(Protocol):
    """Where readings are shown."""

    def show(self, reading: Reading) -> None: ...

    def close(self) -> None: ...


def meter(what: str) -> Meter:
    """A bar on a terminal, lines elsewhere; both on stderr."""
    console = Console(stderr=True)
    return Bar(what, console) if console.is_terminal else Lines(what, console)


class Bar:
    def __init__(self, what: str, console: Console) -> None:
        columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}")
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task(what, total=None, words="starting")
        self._progress.start()

    def show(self, reading: Reading) -> None:
        total = reading.read + reading.behind
        self._progress.update(
            self._task, completed=reading.read, total=total or None, words=str(reading)
        )

    def close(self) -> None:
        self._progress.stop()


class Lines:
    def __init__(self, what: str, console: Console) -> None:
        self._what = what
        self._console = console
        self._shown = Reading()
        self._next = time.monotonic()

    def show(self, reading: Reading) -> None:
        if reading.batches > self._shown.batches and time.monotonic() >= self._next:
            self._console.print(f"{self._what}: {reading}", highlight=False, soft_wrap=True)
            self._shown = reading
            self._next = time.monotonic() + EVERY_S

    def close(self) -> None:
        pass
