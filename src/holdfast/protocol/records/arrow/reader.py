"""Decodes many record batches into Arrow columns, for the pipeline and the audit.

The reader takes batches in runs of some megabytes; `rows` creates the columns of a run.

Control batches are rows too, marked `is_control`: the audit and readers of committed data need
them. The CRC is checked by default.

The caller names the columns that it needs: copying keys and values is most of the work. Their
lengths and checksums need no copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.protocol.records.arrow.batch_walk import (
    Ints,
    Octets,
    Untrue,
    batch_starts,
    headers_at,
    record_starts,
)
from holdfast.protocol.records.arrow.columns import decode_fields
from holdfast.protocol.records.arrow.rows import FIELDS, SCHEMA, Rows
from holdfast.protocol.records.batch_header import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    HEADER_BYTES,
    LENGTH_END,
    Bytes,
    batches,
)
from holdfast.protocol.records.compression import decompress
from holdfast.protocol.records.crc import crc32c_in_place
from holdfast.protocol.records.errors import MalformedBatchError
from holdfast.protocol.records.record import DECOMPRESSED_LIMIT, read_records

RUN_BYTES = 8 << 20
"""Large enough to make numpy's fixed costs small, small enough for the processor's cache."""
MOST_LIMIT = 1 << 30
"""Arrow's plain binary arrays count bytes in 32 bits."""


def read_table(
    data: Bytes,
    *,
    check_crc: bool = True,
    partial_end: bool = False,
    limit: int = DECOMPRESSED_LIMIT,
) -> Any:
    """A pyarrow.Table of every record in the buffer, or MalformedBatchError."""
    runs = read_runs(data, check_crc=check_crc, partial_end=partial_end, limit=limit)
    return pa.Table.from_batches(runs, SCHEMA)


def read_runs(
    data: Bytes,
    *,
    check_crc: bool = True,
    partial_end: bool = False,
    limit: int = DECOMPRESSED_LIMIT,
    columns: Sequence[str] = tuple(SCHEMA.names),
) -> Iterator[Any]:
    """The same as pyarrow.RecordBatch after pyarrow.RecordBatch, each of a bounded size.

    `columns` are names of SCHEMA and MEASURES.
    """
    assert 0 < limit <= MOST_LIMIT
    schema = pa.schema([FIELDS[name] for name in columns])
    view = memoryview(data)
    position = 0
    # Every round reads at least one batch, and so 61 bytes.
    while position < len(view):
        try:
            starts, after = batch_starts(view, position, RUN_BYTES)
            if after > len(view):
                starts.pop()
                if not partial_end:
                    raise Untrue
            if starts:
                yield from _run(view, starts, schema, check_crc, limit)
        except (Untrue, MalformedBatchError):
            # A codec may have failed on a later batch than the first that is wrong.
            _explain(view, position, check_crc, partial_end, limit)
        position = after


def _explain(
    view: memoryview, position: int, check_crc: bool, partial_end: bool, limit: int
) -> NoReturn:
    """The plain reader's error for the data from here on."""
    for batch in batches(view, position, partial_end=partial_end):
        if check_crc:
            batch.check_crc()
        for _ in read_records(batch, limit):
            pass
    raise AssertionError("the plain reader finds nothing wrong")


def _run(
    view: memoryview, starts: list[int], schema: Any, check_crc: bool, limit: int
) -> Iterator[Any]:
    """One run of whole batches: as stored, or in pieces after decompression."""
    octets = np.frombuffer(view, np.uint8)
    headers = headers_at(octets, starts)
    at = np.array(starts, np.int64)
    sizes = headers["length"].astype(np.int64) + LENGTH_END
    if check_crc:
        _check_sums(octets, starts, sizes, headers["crc"])
    if not (headers["attributes"] & COMPRESSION_MASK).any():
        base, end = starts[0], starts[-1] + int(sizes[-1])
        begins = at - base
        data = view[base:end]
        yield _rows(schema, data, headers, at, begins + HEADER_BYTES, begins + sizes)
        return
    done = 0
    while done < len(starts):
        bodies = _expanded(view, headers[done:], at[done:], limit)
        taken = slice(done, done + len(bodies))
        lengths = np.array([len(body) for body in bodies], np.int64)
        ends = np.cumsum(lengths)
        joined = b"".join(bodies)
        yield _rows(schema, joined, headers[taken], at[taken], ends - lengths, ends)
        done = taken.stop


def _check_sums(octets: Octets, starts: list[int], sizes: Ints, sums: Ints) -> None:
    for start, size, crc in zip(starts, sizes.tolist(), sums.tolist(), strict=True):
        if crc32c_in_place(octets[start + ATTRIBUTES_POSITION : start + size]) != crc:
            raise Untrue


def _expanded(
    view: memoryview, headers: npt.NDArray[Any], at: Ints, limit: int
) -> list[bytes | memoryview]:
    """Decompress one batch after the other, until there is enough for one run."""
    bodies: list[bytes | memoryview] = []
    size = 0
    codecs = (headers["attributes"] & COMPRESSION_MASK).tolist()
    for codec, start, length in zip(codecs, at.tolist(), headers["length"].tolist(), strict=True):
        begin = start + HEADER_BYTES
        body = decompress(codec, view[begin : start + length + LENGTH_END], limit, begin)
        bodies.append(body)
        size += len(body)
        if size >= RUN_BYTES:
            break
    return bodies


def _rows(
    schema: Any,
    data: bytes | memoryview,
    headers: npt.NDArray[Any],
    at: Ints,
    begins: Ints,
    ends: Ints,
) -> Any:
    """The rows of batches whose records are in `data` from each of `begins` to each of `ends`."""
    counts = headers["record_count"].astype(np.int64)
    starts = record_starts(data, begins, ends, counts)
    octets = np.frombuffer(data, np.uint8)
    fields = decode_fields(octets, starts, _record_ends(starts, ends, counts))
    rows = Rows(octets, headers, counts, at, fields)
    return pa.RecordBatch.from_arrays([rows.column(name) for name in schema.names], schema=schema)


def _record_ends(starts: Ints, ends: Ints, counts: Ints) -> Ints:
    """A record ends where the next one starts, and the last of a batch where the batch does."""
    after = np.empty_like(starts)
    after[:-1] = starts[1:]
    is_filled = counts > 0
    after[np.cumsum(counts)[is_filled] - 1] = ends[is_filled]
    return after
