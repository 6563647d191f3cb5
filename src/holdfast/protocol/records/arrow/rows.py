"""The columns of a run of records, created one by one on request.

The bytes of keys and values never become Python objects: the run's data is seen as one Arrow array
of all the byte strings in it, the gaps between them included, and Arrow's `take` copies out those
that are wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.protocol.records.arrow.batch_walk import Ints, Octets, Untrue
from holdfast.protocol.records.arrow.columns import Fields, HeaderFields, Spans, decode_headers
from holdfast.protocol.records.arrow.crc_columns import sums
from holdfast.protocol.records.batch_header import APPEND_TIME, CONTROL, MAX_SEQUENCE, TRANSACTIONAL

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
"""One row per record; `position` is where its batch starts in the buffer."""
MEASURES = pa.schema(
    [
        pa.field("key_crc", pa.int64(), nullable=False),
        pa.field("value_crc", pa.int64(), nullable=False),
        pa.field("key_len", pa.int32(), nullable=False),
        pa.field("value_len", pa.int32(), nullable=False),
    ]
)
"""Columns on request only: CRC-32C and size. A null has the length -1 and the checksum 0."""
FIELDS = {field.name: field for field in [*SCHEMA, *MEASURES]}


class Rows:
    """One run. All checks are done, whichever columns are requested."""

    def __init__(
        self, octets: Octets, headers: npt.NDArray[Any], counts: Ints, at: Ints, fields: Fields
    ) -> None:
        self.octets, self.fields = octets, fields
        self.headers, self.counts, self.at = headers, counts, at
        deltas = fields.offset_deltas
        if ((deltas < 0) | (deltas > self.spread("last_offset_delta", np.int64))).any():
            raise Untrue
        self.attributes = self.spread("attributes", np.int16)
        self.times = _sums(self.spread("base_timestamp", np.int64), fields.time_deltas)
        self.header_lists = _header_lists(octets, fields)

    def column(self, name: str) -> Any:
        """A name of SCHEMA or MEASURES."""
        made = _MAKERS[name](self)
        return made if isinstance(made, pa.Array) else pa.array(made)

    def spread(self, field: str, kind: type[np.generic]) -> npt.NDArray[Any]:
        """A field of the batches, for each of their records."""
        return np.repeat(self.headers[field].astype(kind), self.counts)

    def flag(self, mask: int) -> npt.NDArray[np.bool_]:
        """One bit of the attributes."""
        is_set: npt.NDArray[np.bool_] = (self.attributes & mask) != 0
        return is_set

    def timestamps(self) -> Ints:
        """The records' own, or the broker's with LogAppendTime."""
        is_append_time = self.flag(APPEND_TIME)
        if not is_append_time.any():
            return self.times
        return np.where(is_append_time, self.spread("max_timestamp", np.int64), self.times)

    def sequences(self) -> npt.NDArray[np.int32]:
        """They start again at 0 after the largest."""
        base = self.spread("base_sequence", np.int64)
        sums = (base + self.fields.offset_deltas) & MAX_SEQUENCE
        return np.where(base < 0, -1, sums).astype(np.int32)


_MAKERS: Final[dict[str, Callable[[Rows], Any]]] = {
    "offset": lambda rows: rows.spread("base_offset", np.int64) + rows.fields.offset_deltas,
    "timestamp": Rows.timestamps,
    "is_append_time": lambda rows: rows.flag(APPEND_TIME),
    "key": lambda rows: _strings(rows.octets, rows.fields.keys),
    "value": lambda rows: _strings(rows.octets, rows.fields.values),
    "headers": lambda rows: rows.header_lists,
    "leader_epoch": lambda rows: rows.spread("leader_epoch", np.int32),
    "producer_id": lambda rows: rows.spread("producer_id", np.int64),
    "producer_epoch": lambda rows: rows.spread("producer_epoch", np.int16),
    "sequence": Rows.sequences,
    "is_transactional": lambda rows: rows.flag(TRANSACTIONAL),
    "is_control": lambda rows: rows.flag(CONTROL),
    "position": lambda rows: np.repeat(rows.at, rows.counts),
    "key_crc": lambda rows: _checksums(rows.octets, rows.fields.keys),
    "value_crc": lambda rows: _checksums(rows.octets, rows.fields.values),
    "key_len": lambda rows: _lengths(rows.fields.keys),
    "value_len": lambda rows: _lengths(rows.fields.values),
}


def _lengths(spans: Spans) -> npt.NDArray[np.int32]:
    lengths: npt.NDArray[np.int32] = (spans.ends - spans.starts).astype(np.int32)
    lengths[spans.is_null] = -1
    return lengths


def _checksums(octets: Octets, spans: Spans) -> Ints:
    """The checksum of a null is that of no bytes, which is 0."""
    return sums(octets, spans.starts, spans.ends)


def _sums(base: Ints, deltas: Ints) -> Ints:
    """Base and delta; a sum beyond 64 bits has a sign that neither of the two has."""
    sums = base + deltas
    if (((base ^ sums) & (deltas ^ sums)) < 0).any():
        raise Untrue
    return sums


def _strings(octets: Octets, spans: Spans) -> Any:
    """A column of byte strings. The data becomes one array of gap, string, gap, string and so on;
    every other one is wanted.
    """
    count = len(spans.starts)
    bounds = np.zeros(2 * count + 1, np.int32)
    bounds[1::2] = spans.starts
    bounds[2::2] = spans.ends
    # The last gap is left out, and the first starts at 0, whatever comes before it.
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(octets)]
    everything = pa.Array.from_buffers(pa.binary(), 2 * count, buffers)
    indices = np.arange(1, 2 * count, 2, dtype=np.int32)
    mask = spans.is_null if spans.is_null.any() else None
    return everything.take(pa.array(indices, mask=mask))


def _header_lists(octets: Octets, fields: Fields) -> Any:
    counts = fields.header_counts
    offsets = np.zeros(len(counts) + 1, np.int32)
    if not counts.any():
        empty = pa.array([], HEADER_TYPE)
        return pa.ListArray.from_arrays(pa.array(offsets), empty, SCHEMA.field("headers").type)
    np.cumsum(counts, out=offsets[1:])
    found: HeaderFields = decode_headers(octets, fields)
    names, values = _strings(octets, found.keys), _strings(octets, found.values)
    structs = pa.StructArray.from_arrays([_text(names), values], fields=list(HEADER_TYPE))
    return pa.ListArray.from_arrays(pa.array(offsets), structs, SCHEMA.field("headers").type)


def _text(names: Any) -> Any:
    """Bytes that are not UTF-8 become U+FFFD, as in the plain reader."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([str(name, "utf-8", "replace") for name in names.to_pylist()], pa.string())
