"""Many record batches into Arrow columns, for the pipeline and the audit.

Batches are taken in runs of some megabytes. The bytes of keys and values never become Python
objects: a run's data is seen as one Arrow array of all the byte strings in it, the gaps between
them included, and Arrow's `take` copies out those that are wanted.

Control batches are rows like any other, marked `is_control`: the audit wants to see them, and a
reader of committed data must know them. The CRC is checked unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.protocol.records.columns import (
    Fields,
    HeaderFields,
    Spans,
    decode_fields,
    decode_headers,
)
from holdfast.protocol.records.compression import decompress
from holdfast.protocol.records.crc import crc32c_in_place
from holdfast.protocol.records.errors import MalformedBatchError
from holdfast.protocol.records.header import (
    APPEND_TIME,
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL,
    HEADER_BYTES,
    LENGTH_END,
    MAX_SEQUENCE,
    TRANSACTIONAL,
    Bytes,
    batches,
)
from holdfast.protocol.records.hops import (
    Ints,
    Octets,
    Untrue,
    batch_starts,
    headers_at,
    record_starts,
)
from holdfast.protocol.records.record import DECOMPRESSED_LIMIT, read_records

RUN_BYTES = 8 << 20
"""Large enough that numpy's fixed costs vanish, small enough to stay near the cache."""
MOST_LIMIT = 1 << 30
"""Arrow's plain binary arrays count bytes in 32 bits."""

HEADER_TYPE = pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())])
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("is_append_time", pa.bool_(), nullable=False),
        ("key", pa.binary()),
        ("value", pa.binary()),
        pa.field("headers", pa.list_(HEADER_TYPE), nullable=False),
        pa.field("leader_epoch", pa.int32(), nullable=False),
        pa.field("producer_id", pa.int64(), nullable=False),
        pa.field("producer_epoch", pa.int16(), nullable=False),
        pa.field("sequence", pa.int32(), nullable=False),
        pa.field("is_transactional", pa.bool_(), nullable=False),
        pa.field("is_control", pa.bool_(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
    ]
)
"""One row a record; `position` is where its batch starts in the buffer."""


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
) -> Iterator[Any]:
    """The same as pyarrow.RecordBatch after pyarrow.RecordBatch, each of a bounded size."""
    assert 0 < limit <= MOST_LIMIT
    view = memoryview(data)
    position = 0
    # Every round takes a batch at least, and so 61 bytes.
    while position < len(view):
        try:
            starts, after = batch_starts(view, position, RUN_BYTES)
            if after > len(view):
                starts.pop()
                if not partial_end:
                    raise Untrue
            if starts:
                yield from _run(view, starts, check_crc, limit)
        except (Untrue, MalformedBatchError):
            # A codec may have failed on a later batch than the first that is wrong.
            _explain(view, position, check_crc, partial_end, limit)
        position = after


def _explain(
    view: memoryview, position: int, check_crc: bool, partial_end: bool, limit: int
) -> NoReturn:
    """The plain reader's word on what is wrong from here on."""
    for batch in batches(view, position, partial_end=partial_end):
        if check_crc:
            batch.check_crc()
        for _ in read_records(batch, limit):
            pass
    raise AssertionError("the plain reader finds nothing wrong")


def _run(view: memoryview, starts: list[int], check_crc: bool, limit: int) -> Iterator[Any]:
    """One run of whole batches: as it lies there, or in pieces as it comes out of the codecs."""
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
        yield _rows(data, headers, at, begins + HEADER_BYTES, begins + sizes)
        return
    done = 0
    while done < len(starts):
        bodies = _expanded(view, headers[done:], at[done:], limit)
        taken = slice(done, done + len(bodies))
        lengths = np.array([len(body) for body in bodies], np.int64)
        ends = np.cumsum(lengths)
        yield _rows(b"".join(bodies), headers[taken], at[taken], ends - lengths, ends)
        done = taken.stop


def _check_sums(octets: Octets, starts: list[int], sizes: Ints, sums: Ints) -> None:
    for start, size, crc in zip(starts, sizes.tolist(), sums.tolist(), strict=True):
        if crc32c_in_place(octets[start + ATTRIBUTES_POSITION : start + size]) != crc:
            raise Untrue


def _expanded(
    view: memoryview, headers: npt.NDArray[Any], at: Ints, limit: int
) -> list[bytes | memoryview]:
    """What comes out of one batch after the other, until it is enough for one run."""
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
    data: bytes | memoryview, headers: npt.NDArray[Any], at: Ints, begins: Ints, ends: Ints
) -> Any:
    """The rows of batches whose records lie in `data` from each of `begins` to each of `ends`."""
    counts = headers["record_count"].astype(np.int64)
    starts = record_starts(data, begins, ends, counts)
    octets = np.frombuffer(data, np.uint8)
    fields = decode_fields(octets, starts, _record_ends(starts, ends, counts))

    def spread(field: str, kind: type[np.generic]) -> npt.NDArray[Any]:
        return np.repeat(headers[field].astype(kind), counts)

    attributes = spread("attributes", np.int16)
    is_append_time = (attributes & APPEND_TIME) != 0
    deltas = fields.offset_deltas
    if ((deltas < 0) | (deltas > spread("last_offset_delta", np.int64))).any():
        raise Untrue
    times = _sums(spread("base_timestamp", np.int64), fields.time_deltas)
    if is_append_time.any():
        times = np.where(is_append_time, spread("max_timestamp", np.int64), times)
    sequences = spread("base_sequence", np.int64)
    sequences = np.where(sequences < 0, -1, (sequences + deltas) & MAX_SEQUENCE)
    keys, values = _strings(octets, fields.keys, fields.values)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(spread("base_offset", np.int64) + deltas),
            pa.array(times),
            pa.array(is_append_time),
            keys,
            values,
            _header_lists(octets, fields),
            pa.array(spread("leader_epoch", np.int32)),
            pa.array(spread("producer_id", np.int64)),
            pa.array(spread("producer_epoch", np.int16)),
            pa.array(sequences.astype(np.int32)),
            pa.array((attributes & TRANSACTIONAL) != 0),
            pa.array((attributes & CONTROL) != 0),
            pa.array(np.repeat(at, counts)),
        ],
        schema=SCHEMA,
    )


def _record_ends(starts: Ints, ends: Ints, counts: Ints) -> Ints:
    """A record ends where the next one starts, and the last of a batch where the batch does."""
    after = np.empty_like(starts)
    after[:-1] = starts[1:]
    is_filled = counts > 0
    after[np.cumsum(counts)[is_filled] - 1] = ends[is_filled]
    return after


def _sums(base: Ints, deltas: Ints) -> Ints:
    """Base and delta; a sum beyond 64 bits has a sign that neither of the two has."""
    sums = base + deltas
    if (((base ^ sums) & (deltas ^ sums)) < 0).any():
        raise Untrue
    return sums


def _strings(octets: Octets, first: Spans, second: Spans) -> tuple[Any, Any]:
    """Two columns of byte strings that take turns in the data: key, value, key, value.

    The data becomes one array of gap, key, gap, value and so on; every fourth is a key.
    """
    count = len(first.starts)
    bounds = np.zeros(4 * count + 1, np.int32)
    bounds[1::4] = first.starts
    bounds[2::4] = first.ends
    bounds[3::4] = second.starts
    bounds[4::4] = second.ends
    # The last gap is left out, and the first starts at 0, whatever comes before it.
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(octets)]
    everything = pa.Array.from_buffers(pa.binary(), 4 * count, buffers)
    return (
        everything.take(_indices(1, count, first.is_null)),
        everything.take(_indices(3, count, second.is_null)),
    )


def _indices(start: int, count: int, is_null: npt.NDArray[np.bool_]) -> Any:
    """Every fourth, with a null where the string is null."""
    indices = np.arange(start, 4 * count, 4, dtype=np.int32)
    return pa.array(indices, mask=is_null) if is_null.any() else pa.array(indices)


def _header_lists(octets: Octets, fields: Fields) -> Any:
    counts = fields.header_counts
    offsets = np.zeros(len(counts) + 1, np.int32)
    if not counts.any():
        empty = pa.array([], HEADER_TYPE)
        return pa.ListArray.from_arrays(pa.array(offsets), empty, SCHEMA.field("headers").type)
    np.cumsum(counts, out=offsets[1:])
    found: HeaderFields = decode_headers(octets, fields)
    names, values = _strings(octets, found.keys, found.values)
    structs = pa.StructArray.from_arrays([_text(names), values], fields=list(HEADER_TYPE))
    return pa.ListArray.from_arrays(pa.array(offsets), structs, SCHEMA.field("headers").type)


def _text(names: Any) -> Any:
    """Bytes that are not UTF-8 become U+FFFD, as in the plain reader."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([str(name, "utf-8", "replace") for name in names.to_pylist()], pa.string())
