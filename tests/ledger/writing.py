"""Ledgers as producers write them, without a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from holdfast.ledger import read_ledger
from holdfast.ledger.book import Book, Writer
from holdfast.ledger.columns import DONE, OPEN, REFUSED, SENT

FACTS = {"acks": -1, "idempotent": True, "client": "test"}
ROUND = (DONE, REFUSED, OPEN)
"""Results by row number."""


def write_ledger(folder: Path, rows: int, topic: str = "t") -> Path:
    """Write a ledger with so many sends; returns its file."""
    book = Book(folder, "run", "producer", FACTS, "producer")
    writer = Writer(book, SENT, topic, book.owner)
    free = number = 0
    cells: dict[str, Any] = {}
    for number in range(rows):
        if free == 0:
            free, cells = writer.next_block()
            row = 0
        result = ROUND[number % len(ROUND)]
        cells["value_crc"][row] = number
        cells["value_len"][row] = 5
        cells["sent_ns"][row] = 1_000_000 * (number + 1)
        if result != OPEN:
            cells["partition"][row] = 1
            cells["answered_ns"][row] = 1_000_000 * (number + 2)
        if result == DONE:
            cells["offset"][row] = number
        if result == REFUSED:
            cells["error"][row] = 19
        cells["result"][row] = result
        row += 1
        free -= 1
    [path] = book.folder.glob("*.arrows")
    return path


def rows_of(folder: Path, topic: str | None = None) -> list[dict[str, Any]]:
    """All rows, in the order of their sequence numbers."""
    found = pa.Table.from_batches(read_ledger(folder, topic)).to_pylist() if _any(folder) else []
    return sorted(found, key=lambda row: (row["producer"], row["sequence"]))


def _any(folder: Path) -> bool:
    return next(iter(read_ledger(folder)), None) is not None
