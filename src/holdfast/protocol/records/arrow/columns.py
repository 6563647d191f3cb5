"""Decodes the record fields of a whole run of batches in numpy, one field after the other.

`batch_walk` has found where the records start. The checks are done on whole columns and are
complete: every field starts where the one before ends, so if the last one ends exactly where its
record does, none has left it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.protocol.records.arrow.batch_walk import Ints, Octets, Untrue
from holdfast.protocol.records.errors import MalformedBatchError
from holdfast.protocol.records.record import LEAST_HEADER_BYTES
from holdfast.protocol.records.varints import VARINT_BYTES, VARLONG_BYTES, decode_varint

FEW = 16
"""Headers of so few records are decoded one by one: a round in numpy costs more. It also bounds the
rounds that one record with a hundred thousand headers could ask for."""


class Spans(NamedTuple):
    """Where bytes start and end in the run's data; a null has length -1 and no bytes."""

    starts: Ints
    ends: Ints
    is_null: npt.NDArray[np.bool_]


class Fields(NamedTuple):
    """One entry per record."""

    time_deltas: Ints
    offset_deltas: Ints
    keys: Spans
    values: Spans
    header_counts: Ints
    header_starts: Ints
    """Where the first header's key length is."""
    ends: Ints


class HeaderFields(NamedTuple):
    """One entry per header, in the order of the records."""

    keys: Spans
    values: Spans


def varints(data: Octets, at: Ints, most: int) -> tuple[Ints, Ints]:
    """Zigzag numbers at all the places, and the places after them."""
    first = data[at]
    after = at + 1
    more = np.flatnonzero(first & 0x80)
    if not more.size:
        small = first.astype(np.int64)
        return (small >> 1) ^ -(small & 1), after
    values = (first & 0x7F).astype(np.uint64)
    for nth in range(1, most):  # Rounds: the bytes a number may have.
        byte = data[at[more] + nth]
        values[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * nth)
        if nth == most - 1 and (byte > (0x0F if most == VARINT_BYTES else 0x01)).any():
            raise Untrue
        after[more] += 1
        more = more[byte >= 0x80]
        if not more.size:
            break
    signs = (values & np.uint64(1)).astype(np.int64)
    return (values >> np.uint64(1)).astype(np.int64) ^ -signs, after


def lengths_and_bytes(data: Octets, at: Ints) -> tuple[Spans, Ints]:
    """Byte strings after their lengths, and the places after them."""
    lengths, starts = varints(data, at, VARINT_BYTES)
    least = lengths.min(initial=0)
    if least < -1:
        raise Untrue
    ends = starts + (np.maximum(lengths, 0) if least < 0 else lengths)
    return Spans(starts, ends, lengths < 0), ends


def decode_fields(data: Octets, starts: Ints, ends: Ints) -> Fields:
    """All fields but the headers of the records that start and end there."""
    lengths, at = varints(data, starts, VARINT_BYTES)
    if not np.array_equal(at + lengths, ends):
        raise Untrue
    try:
        time_deltas, at = varints(data, at + 1, VARLONG_BYTES)  # One byte of attributes.
        offset_deltas, at = varints(data, at, VARINT_BYTES)
        keys, at = lengths_and_bytes(data, at)
        values, at = lengths_and_bytes(data, at)
        counts, at = varints(data, at, VARINT_BYTES)
    except IndexError as error:
        raise Untrue from error
    if counts.any():
        room = ends - at
        if (counts < 0).any() or (counts > room // LEAST_HEADER_BYTES).any():
            raise Untrue
        if (at != ends)[counts == 0].any():
            raise Untrue
    elif not np.array_equal(at, ends):
        raise Untrue
    return Fields(time_deltas, offset_deltas, keys, values, counts, at, ends)


def decode_headers(data: Octets, fields: Fields) -> HeaderFields:
    """All headers of all records: the first of every record, then the second, and so on."""
    counts = fields.header_counts
    slots = np.cumsum(counts) - counts
    places = _Places(int(counts.sum()))
    at = fields.header_starts.copy()
    active = np.flatnonzero(counts)
    nth = 0
    try:
        while active.size > FEW:  # Each round sees one header more of the records that have one.
            keys, after = lengths_and_bytes(data, at[active])
            values, after = lengths_and_bytes(data, after)
            places.put(slots[active] + nth, keys, values)
            at[active] = after
            nth += 1
            active = active[counts[active] > nth]
        view = data.data
        for one in active.tolist():
            at[one] = places.put_rest(
                view, int(at[one]), int(slots[one]) + nth, int(counts[one]) - nth
            )
    except (IndexError, MalformedBatchError) as error:
        raise Untrue from error
    if not np.array_equal(at, fields.ends) or places.key_nulls.any():
        raise Untrue
    return places.fields()


class _Places:
    """Header spans by slot, filled in any order."""

    def __init__(self, size: int) -> None:
        self.bounds = np.zeros((size, 4), np.int64)
        self.key_nulls = np.zeros(size, np.bool_)
        self.value_nulls = np.zeros(size, np.bool_)

    def put(self, slots: Ints, keys: Spans, values: Spans) -> None:
        bounds = (keys.starts, keys.ends, values.starts, values.ends)
        self.bounds[slots] = np.stack(bounds, axis=1)
        self.key_nulls[slots] = keys.is_null
        self.value_nulls[slots] = values.is_null

    def put_rest(self, view: memoryview, at: int, slot: int, count: int) -> int:
        """The last headers of one record, by the plain decoder; the place after them."""
        end = len(view)
        for nth in range(slot, slot + count):
            key_length, key_start = decode_varint(view, at, end, "")
            key_end = key_start + key_length
            value_length, value_start = decode_varint(view, key_end, end, "")
            if key_length < 0 or value_length < -1:
                raise Untrue
            at = value_start + max(value_length, 0)
            self.bounds[nth] = (key_start, key_end, value_start, at)
            self.value_nulls[nth] = value_length < 0
        return at

    def fields(self) -> HeaderFields:
        """In slot order."""
        key_starts, key_ends, value_starts, value_ends = self.bounds.T
        return HeaderFields(
            Spans(key_starts, key_ends, self.key_nulls),
            Spans(value_starts, value_ends, self.value_nulls),
        )
