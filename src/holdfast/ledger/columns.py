"""The columns of a ledger, in its files and as its readers return them.

In a file every cell has a fixed width and no cell is null, so that a row is filled in place. A
sentinel means "none": -1 for counts and offsets, 0 for times and error codes. Times are in
nanoseconds there, because a division per record would be the most expensive part of a row.
Readers turn sentinels into nulls and times into milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

FORMAT: Final = "holdfast-ledger"
VERSION: Final = "1"

UNUSED: Final = 0
"""No row yet. `result` is the last cell written of a row; until then there is no row."""
OPEN: Final = 1
"""Sent and not answered; delivered and not processed."""
DONE: Final = 2
"""Acknowledged; processed; committed."""
REFUSED: Final = 3

NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the three tables."""

    name: str
    cells: Any
    """Arrow schema of the cells in a file."""
    defaults: dict[str, int]
    """The content of a cell before it is written; 0 for columns not listed."""
    logical: Any
    """Arrow schema of the batches that readers return."""
    mark: str
    """A column that only this table has; it identifies the table's Parquet files."""
    times: dict[str, str]
    """The column of nanoseconds behind each column of milliseconds."""
    answer: tuple[str, ...]
    """Cells that are valid only if `result` is DONE or REFUSED."""
    results: tuple[str | None, ...]
    """The readers' name of each result."""


def _schema(*columns: tuple[str, Any]) -> Any:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns])


_RECORD: Final = (
    ("key_crc", pa.uint32()),
    ("value_crc", pa.uint32()),
    ("key_len", pa.int32()),
    ("value_len", pa.int32()),
)
# Spark has no unsigned numbers: a checksum is read as a long.
_RECORD_LOGICAL: Final = (
    ("key_crc", pa.int64()),
    ("value_crc", pa.int64()),
    ("key_len", pa.int32()),
    ("value_len", pa.int32()),
)

SENT: Final = Kind(
    name="sent",
    cells=_schema(
        ("sequence", pa.int64()),
        ("partition_asked", pa.int32()),
        *_RECORD,
        ("sent_ns", pa.int64()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("answered_ns", pa.int64()),
        ("error", pa.int16()),
        ("result", pa.uint8()),
    ),
    defaults=dict.fromkeys(("partition_asked", "key_len", "value_len", "partition", "offset"), -1),
    logical=pa.schema(
        [
            ("run", pa.string()),
            ("producer", pa.string()),
            ("sequence", pa.int64()),
            ("topic", pa.string()),
            ("partition_asked", pa.int32()),
            *_RECORD_LOGICAL,
            ("sent_ms", pa.int64()),
            ("result", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("acked_ms", pa.int64()),
            ("error", pa.int16()),
            ("acks", pa.int16()),
            ("idempotent", pa.bool_()),
        ]
    ),
    mark="sent_ms",
    times={"sent_ms": "sent_ns", "acked_ms": "answered_ns"},
    answer=("offset", "acked_ms"),
    results=(None, "unknown", "acked", "refused"),
)

CONSUMED: Final = Kind(
    name="consumed",
    cells=_schema(
        ("sequence", pa.int64()),
        ("poll", pa.int64()),
        ("assignment", pa.int32()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        *_RECORD,
        ("polled_ns", pa.int64()),
        ("processed_ns", pa.int64()),
        ("result", pa.uint8()),
    ),
    defaults=dict.fromkeys(("key_len", "value_len", "leader_epoch"), -1),
    logical=pa.schema(
        [
            ("run", pa.string()),
            ("consumer", pa.string()),
            ("group", pa.string()),
            ("sequence", pa.int64()),
            ("poll", pa.int64()),
            ("assignment", pa.int32()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("leader_epoch", pa.int32()),
            *_RECORD_LOGICAL,
            ("polled_ms", pa.int64()),
            ("result", pa.string()),
            ("processed_ms", pa.int64()),
        ]
    ),
    mark="polled_ms",
    times={"polled_ms": "polled_ns", "processed_ms": "processed_ns"},
    answer=("processed_ms",),
    results=(None, "delivered", "processed", None),
)

COMMITTED: Final = Kind(
    name="committed",
    cells=_schema(
        ("sequence", pa.int64()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("committed_ns", pa.int64()),
        ("error", pa.int16()),
        ("result", pa.uint8()),
    ),
    defaults={},
    logical=pa.schema(
        [
            ("run", pa.string()),
            ("consumer", pa.string()),
            ("group", pa.string()),
            ("sequence", pa.int64()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("committed_ms", pa.int64()),
            ("result", pa.string()),
            ("error", pa.int16()),
        ]
    ),
    mark="committed_ms",
    times={"committed_ms": "committed_ns"},
    answer=(),
    results=(None, None, "committed", "refused"),
)

KINDS: Final = {kind.name: kind for kind in (SENT, CONSUMED, COMMITTED)}
