"""What producers were promised, and whether the cluster kept it.

A record is acknowledged when its producer was told an offset. From then on it must be found at that
offset, with that key and value, whatever happened in between, unless retention or a deletion took
it. Records whose producer was told an error, or nothing, may be there or not: nobody promised.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from holdfast.cluster.client.records import Kept

MOST_SHOWN: Final = 10


class Promise(NamedTuple):
    """An acknowledged record."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    acks: int = -1


class Finding(NamedTuple):
    """A promise that was not kept."""

    promise: Promise
    kind: str
    """lost, or changed."""
    found: Kept | None

    def __str__(self) -> str:
        where = f"{self.promise.topic}-{self.promise.partition} offset {self.promise.offset}"
        what = f"{where}: {_shown(self.promise.value)} was acknowledged"
        if self.found is None:
            return f"{what} and is gone"
        return f"{what}, and {_shown(self.found.value)} is there"


@dataclass(slots=True)
class Ledger:
    """Promises in the order in which they were made. From any thread."""

    promises: list[Promise] = field(default_factory=list)
    refused: int = 0
    """Sends that ended with an error or without an answer."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledged(self, promise: Promise) -> None:
        """A producer was told the offset of its record."""
        with self._lock:
            self.promises.append(promise)

    def failed(self) -> None:
        """A producer was told an error."""
        with self._lock:
            self.refused += 1

    def partitions(self) -> list[tuple[str, int]]:
        """Those that promises were made for."""
        with self._lock:
            return sorted({(one.topic, one.partition) for one in self.promises})

    def check(
        self, topic: str, partition: int, start: int, records: Iterable[Kept]
    ) -> list[Finding]:
        """Promises of one partition that its log does not keep; `start`: where the log begins."""
        with self._lock:
            wanted = {
                one.offset: one
                for one in self.promises
                if (one.topic, one.partition) == (topic, partition) and one.offset >= start
            }
        findings: list[Finding] = []
        for record in records:
            promise = wanted.pop(record.offset, None)
            if promise is not None and (promise.key, promise.value) != (record.key, record.value):
                findings.append(Finding(promise, "changed", record))
        return [*findings, *(Finding(promise, "lost", None) for promise in wanted.values())]


class AckedLossError(AssertionError):
    """Acknowledged records are not where they were promised to be."""

    def __init__(self, findings: list[Finding], promised: int) -> None:
        shown = [str(finding) for finding in findings[:MOST_SHOWN]]
        if len(findings) > MOST_SHOWN:
            shown.append(f"and {len(findings) - MOST_SHOWN} more")
        lines = "\n  ".join(shown)
        super().__init__(f"{len(findings)} of {promised} acknowledged records:\n  {lines}")
        self.findings = findings


def _shown(value: bytes | None) -> str:
    if value is None:
        return "a record without a value"
    return repr(value if len(value) <= 40 else value[:37] + b"...")
