"""The records that brokers acknowledged to producers, and a check that the cluster still has them.

A record is acknowledged when its producer received an offset. From then on it must be found at that
offset, with that key and value, whatever happened in between, unless retention or a deletion
removed it. A record whose producer received an error, or no answer, may exist or not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from holdfast.cluster.client.records import Kept

MOST_SHOWN: Final = 10


class Acknowledgement(NamedTuple):
    """An acknowledged record."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    acks: int = -1


class Finding(NamedTuple):
    """An acknowledged record that is lost or changed."""

    acknowledgement: Acknowledgement
    kind: str
    """lost, or changed."""
    found: Kept | None

    def __str__(self) -> str:
        acked = self.acknowledgement
        where = f"{acked.topic}-{acked.partition} offset {acked.offset}"
        what = f"{where}: {_shown(acked.value)} was acknowledged"
        if self.found is None:
            return f"{what} and is gone"
        return f"{what}, and {_shown(self.found.value)} is there"


@dataclass(slots=True)
class Ledger:
    """Acknowledged records in the order of their acknowledgements. Safe from any thread."""

    acknowledgements: list[Acknowledgement] = field(default_factory=list)
    refused: int = 0
    """Sends that ended with an error or without an answer."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledged(self, acknowledgement: Acknowledgement) -> None:
        """Note that a producer received the offset of its record."""
        with self._lock:
            self.acknowledgements.append(acknowledgement)

    def failed(self) -> None:
        """Note that a producer received an error."""
        with self._lock:
            self.refused += 1

    def partitions(self) -> list[tuple[str, int]]:
        """Partitions with acknowledged records."""
        with self._lock:
            return sorted({(one.topic, one.partition) for one in self.acknowledgements})

    def check(
        self, topic: str, partition: int, start: int, records: Iterable[Kept]
    ) -> list[Finding]:
        """Acknowledged records that this partition's log lacks; `start`: where the log begins."""
        with self._lock:
            wanted = {
                one.offset: one
                for one in self.acknowledgements
                if (one.topic, one.partition) == (topic, partition) and one.offset >= start
            }
        findings: list[Finding] = []
        for record in records:
            acked = wanted.pop(record.offset, None)
            if acked is not None and (acked.key, acked.value) != (record.key, record.value):
                findings.append(Finding(acked, "changed", record))
        return [*findings, *(Finding(acked, "lost", None) for acked in wanted.values())]


class AckedLossError(AssertionError):
    """Acknowledged records are not at their offsets."""

    def __init__(self, findings: list[Finding], total: int) -> None:
        shown = [str(finding) for finding in findings[:MOST_SHOWN]]
        if len(findings) > MOST_SHOWN:
            shown.append(f"and {len(findings) - MOST_SHOWN} more")
        lines = "\n  ".join(shown)
        super().__init__(f"{len(findings)} of {total} acknowledged records:\n  {lines}")
        self.findings = findings


def _shown(value: bytes | None) -> str:
    if value is None:
        return "a record without a value"
    return repr(value if len(value) <= 40 else value[:37] + b"...")
