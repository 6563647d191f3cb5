"""A block: an Arrow record batch at the end of a file, mapped and filled cell by cell.

The writer appends a whole block of unused rows with an ordinary write, sequence numbers and
defaults included, and maps it afterwards. So the file is a valid Arrow stream at every moment, and
a full disk is an error of that write, never a SIGBUS later. A process that dies during the write
leaves a last block that is too short, and none of its rows were in use. After that only single
cells change, in the page cache, which outlives the process.
"""

from __future__ import annotations

import mmap
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from holdfast.ledger.columns import KINDS, Kind
from holdfast.ledger.errors import LedgerError

_CODES: Final = {
    pa.uint8(): "B",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.uint32(): "I",
    pa.int64(): "q",
}
"""Formats of memoryview.cast."""

Cells = dict[str, Any]
"""The cells of a block, by column: writable views with one number per row."""


class Layout(NamedTuple):
    """The bytes of a block of unused rows, and the place of each column in them."""

    content: bytes
    cells: dict[str, tuple[int, int, str]]
    """Where a column starts and ends in the content, and its format."""


@cache
def layout(kind: str, rows: int) -> Layout:
    """The layout of all blocks of one table and size; only the sequence numbers differ."""
    cells = KINDS[kind].cells
    defaults = KINDS[kind].defaults
    columns = [
        pa.array(np.full(rows, defaults.get(field.name, 0), field.type.to_pandas_dtype()))
        for field in cells
    ]
    content = pa.record_batch(columns, schema=cells).serialize()
    # Read back without a copy: the addresses of the columns give their places without a parser.
    batch = pa.ipc.read_record_batch(content, cells)
    found = {}
    for name, column in zip(cells.names, batch.columns, strict=True):
        start = column.buffers()[1].address - content.address
        found[name] = (start, start + rows * column.type.bit_width // 8, _CODES[column.type])
    return Layout(content.to_pybytes(), found)


def schema_message(kind: Kind, metadata: dict[str, str]) -> bytes:
    """The first bytes of a file."""
    content: bytes = kind.cells.with_metadata(metadata).serialize().to_pybytes()
    return content


def append_block(path: Path, kind: Kind, rows: int, sequence: int) -> Cells:
    """Append unused rows, numbered from `sequence`, and return their cells by column."""
    content, cells = layout(kind.name, rows)
    block = bytearray(content)
    first, last, _ = cells["sequence"]
    block[first:last] = np.arange(sequence, sequence + rows, dtype=np.int64).tobytes()
    try:
        with path.open("r+b") as file:
            start = file.seek(0, 2)
            file.write(block)
            file.flush()
            skipped = start % mmap.ALLOCATIONGRANULARITY
            size = skipped + len(block)
            mapped: Any = mmap.mmap(file.fileno(), size, offset=start - skipped)
    except OSError as error:
        raise LedgerError(
            f"the ledger file {path} cannot grow: {error.strerror or error}",
            hint="make room, or raise the limit of open files (one for each topic in use)",
        ) from error
    view: Any = memoryview(mapped)[skipped:]
    return {name: view[start:end].cast(code) for name, (start, end, code) in cells.items()}
