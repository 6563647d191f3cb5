"""Converts cells of a block to the rows that readers return: sentinels to nulls, codes to names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.ledger.columns import DONE, NONE, REFUSED, UNUSED, Kind
from holdfast.ledger.errors import LedgerError

_NS_PER_MS: Final = 1_000_000
_LENGTH: Final = {"key_crc": "key_len", "value_crc": "value_len"}
"""A checksum is null if its key or value is."""
_COUNTS: Final = ("partition", "offset", "partition_asked", "key_len", "value_len", "leader_epoch")
Cells = dict[str, npt.NDArray[Any]]


def facts_of(kind: Kind) -> list[str]:
    """The columns that have one value per file, kept in the file's schema."""
    return [name for name in kind.logical.names if name not in {*kind.cells.names, *kind.times}]


def logical_batch(
    path: Path, position: int, batch: Any, kind: Kind, columns: list[str], facts: dict[str, str]
) -> Any:
    """The used rows of a block, with the columns asked for."""
    # The writer may be running. Copy the results first: the cells they cover are complete then.
    results = batch.column("result").to_numpy(zero_copy_only=False).copy()
    used = results != UNUSED
    cells: Cells = {
        name: batch.column(name).to_numpy(zero_copy_only=False)[used] for name in kind.cells.names
    }
    cells["result"] = results[used]
    _check(path, position, cells, kind)
    schema = pa.schema([kind.logical.field(name) for name in columns])
    made = [_column(name, cells, kind, facts, schema.field(name).type) for name in columns]
    return pa.record_batch(made, schema=schema)


def _column(name: str, cells: Cells, kind: Kind, facts: dict[str, str], wanted: Any) -> Any:
    if name == "result":
        words = pa.array(kind.results, pa.string())
        return words.take(pa.array(cells["result"]))
    if name in facts_of(kind):
        return pa.repeat(_fact(facts[name], wanted), len(cells["result"]))
    values = cells[kind.times.get(name, name)]
    if name in kind.times:
        empty = values == 0
        values = values // _NS_PER_MS
    elif name == "error":
        empty = values == 0
    elif name in _LENGTH:
        empty = cells[_LENGTH[name]] == NONE
    else:
        empty = values < 0
    if name in kind.answer:
        # A writer that died while it wrote an answer had not called the application back.
        empty = empty | ~np.isin(cells["result"], (DONE, REFUSED))
    return pa.array(values, mask=empty).cast(wanted)


def _fact(value: str, wanted: Any) -> Any:
    if pa.types.is_boolean(wanted):
        return pa.scalar(value.lower() == "true")
    return pa.scalar(int(value) if pa.types.is_integer(wanted) else value, wanted)


def _check(path: Path, position: int, cells: Cells, kind: Kind) -> None:
    """Refuse rows that no writer can have written."""
    results = cells["result"]
    known = [number for number, word in enumerate(kind.results) if word is not None]
    wrong = ~np.isin(results, known)
    for name in _COUNTS:
        # librdkafka uses -1001 for an unknown offset.
        if name in cells and name != "offset":
            wrong |= cells[name] < NONE
    first = next(iter(kind.times.values()))
    wrong |= cells[first] <= 0
    if "error" in cells:
        wrong |= (results == DONE) != ((results == DONE) & (cells["error"] == 0))
        wrong |= (results == REFUSED) & (cells["error"] == 0)
    if kind.name == "sent":
        wrong |= (results == DONE) & (cells["partition"] < 0)
    wrong[1:] |= np.diff(cells["sequence"]) <= 0
    if wrong.any():
        sequence = cells["sequence"][wrong.argmax()]
        raise LedgerError(
            f"{path}, block at byte {position}: the row with sequence {sequence} is impossible",
            hint=f"restore it from a copy, or truncate it to {position} bytes and lose the rest",
        )
