"""Finds where each batch and each record starts, by following their lengths.

Each batch or record starts after the length of the one before, so one chain must be followed step
by step. Many chains can be followed together: numpy steps over the first record of all batches in a
run, then over the second, and so on. A plain loop follows the rest (few batches, or a few that are
much longer than the others).

This module does not check the lengths; `columns` compares every record with its length afterwards.
A failed check raises `Untrue` without details. The plain reader then reads the same bytes to find
the position and the reason; tests check that the two agree.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.protocol.records.batch_header import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    LEAST_RECORD_BYTES,
    LENGTH_END,
    MAGIC,
)
from holdfast.protocol.records.compression import Compression
from holdfast.protocol.records.errors import MalformedBatchError
from holdfast.protocol.records.varints import decode_varint

Ints = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]

HEADER_FIELDS = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
assert HEADER_FIELDS.itemsize == HEADER_BYTES

FEW = 48
"""Fewer chains than this are followed one by one: a round in numpy costs as much as so many steps
of the loop."""

LEAST_STRETCH = 16
MOST_STRETCH = 4096
"""Records of one size that are worth a look in numpy, and how many one look takes in."""

_HEADER_RANGE = np.arange(HEADER_BYTES)
_LENGTH = struct.Struct(">i")


class Untrue(Exception):  # noqa: N818  an internal signal, never seen outside
    """Something in the run is malformed."""


def batch_starts(view: memoryview, position: int, most: int) -> tuple[list[int], int]:
    """Where batches start, for about `most` bytes, and where the next one would.

    The last one may be truncated; then its end is after the view's. At most one round for every
    61 bytes.
    """
    starts: list[int] = []
    end = len(view)
    enough = min(end, position + most)
    unpack = _LENGTH.unpack_from
    while position < enough:
        starts.append(position)
        if end - position < LENGTH_END:
            return starts, end + 1
        size = unpack(view, position + 8)[0] + LENGTH_END
        if size < HEADER_BYTES:
            raise Untrue
        position += size
    return starts, position


def headers_at(octets: Octets, starts: list[int]) -> npt.NDArray[Any]:
    """The headers of whole batches, as one structured array, each fit to be read on."""
    at = np.array(starts, np.int64)
    headers: npt.NDArray[Any] = octets[at[:, None] + _HEADER_RANGE].view(HEADER_FIELDS)[:, 0]
    deltas = headers["last_offset_delta"].astype(np.int64)
    bases = headers["base_offset"].astype(np.int64)
    counts = headers["record_count"].astype(np.int64)
    codecs = headers["attributes"] & COMPRESSION_MASK
    room = (headers["length"] - (HEADER_BYTES - LENGTH_END)) // LEAST_RECORD_BYTES
    is_fit = (
        (headers["magic"] == MAGIC)
        & (bases >= 0)
        & (deltas >= 0)
        & (bases + deltas >= 0)  # Below 0 only if the sum went beyond 64 bits.
        & (counts >= 0)
        & (counts <= deltas + 1)
        & ((counts <= room) | (codecs > 0))
        & (codecs <= max(Compression))
    )
    if not is_fit.all():
        raise Untrue
    return headers


def record_starts(data: bytes | memoryview, begins: Ints, ends: Ints, counts: Ints) -> Ints:
    """Where every record starts, in order; batch n should fill [begins[n], ends[n]) exactly.

    At most max(counts) rounds, and every count is held against the least size of a record.
    """
    if (counts > (ends - begins) // LEAST_RECORD_BYTES).any():
        raise Untrue
    # Longest first, so that the unfinished batches are always at the front.
    order = np.argsort(-counts, kind="stable")
    sorted_counts = counts[order]
    slots = (np.cumsum(counts) - counts)[order]
    starts = np.empty(int(counts.sum()), np.int64)
    at = begins[order]
    try:
        rounds = _hop_together(np.frombuffer(data, np.uint8), at, slots, sorted_counts, starts)
        rest = int(np.count_nonzero(sorted_counts > rounds))
        for nth in range(rest):
            count = int(sorted_counts[nth]) - rounds
            hops, position = _hop_alone(data, int(at[nth]), count)
            slot = int(slots[nth]) + rounds
            starts[slot : slot + count] = hops
            at[nth] = position
    except (IndexError, MalformedBatchError, struct.error) as error:
        raise Untrue from error
    if not np.array_equal(at, ends[order]):
        raise Untrue
    return starts


def _hop_together(octets: Octets, at: Ints, slots: Ints, counts: Ints, starts: Ints) -> int:
    """Step through all chains together while there are enough; return the number of rounds."""
    rounds = 0
    if len(counts) < FEW:
        return rounds
    # How many batches have more than n records, for each n up to where they get too few.
    enough = int(counts[FEW - 1])
    active = np.searchsorted(-counts, -np.arange(enough), side="left").tolist()
    for width in active:
        here = at[:width]
        starts[slots[:width] + rounds] = here
        first = octets[here]
        if (first < 0x80).all():
            here += 1 + (first >> 1).astype(np.int64)
        else:
            here += _sizes(octets, here, first)
        rounds += 1
    return rounds


def _sizes(octets: Octets, at: Ints, first: Octets) -> Ints:
    """Sizes of records, their length included, where some lengths take two bytes or more."""
    second = octets[at + 1]
    if (first & second & 0x80).any():
        return np.array([_size(octets.data, position) for position in at.tolist()])
    is_short = first < 0x80
    wide = second.astype(np.int64)
    wide[is_short] = 0
    return (((first & 0x7F) | (wide << 7)) >> 1) + 2 - is_short


def _size(view: memoryview, position: int) -> int:
    length, after = decode_varint(view, position, len(view), "")
    return after - position + length


def _hop_alone(data: bytes | memoryview, position: int, count: int) -> tuple[Ints, int]:
    """One chain. Records of one size follow each other often, and such a stretch is one step.

    A stretch is looked for at the start and then at ever larger distances, for as long as none is
    found: records of mixed sizes cost a few looks, not one each.
    """
    octets = np.frombuffer(data, np.uint8)
    pieces: list[Ints] = []
    patience = LEAST_STRETCH
    while count:  # Every round takes a record at least.
        stretch, size = _stretch(octets, position, count)
        pieces.append(np.arange(stretch) * size + position)
        position += stretch * size
        count -= stretch
        if stretch < LEAST_STRETCH:
            hops, position = _hop_one_by_one(data, position, min(count, patience))
            pieces.append(np.array(hops, np.int64))
            count -= len(hops)
            patience *= 4
        else:
            patience = LEAST_STRETCH
    return np.concatenate(pieces), position


def _stretch(octets: Octets, position: int, count: int) -> tuple[int, int]:
    """How many records from here on have the same length, byte for byte, and their size.

    No guess: if the length here leads to the same length, that leads on by as much, and so forth.
    """
    size = _size(octets.data, position)
    if size <= 0:
        raise Untrue
    width = 1
    while octets[position + width - 1] & 0x80:  # At most 5: `_size` has decoded it.
        width += 1
    most = min(count, (len(octets) - position - width) // size + 1)
    for look in (LEAST_STRETCH, MOST_STRETCH):
        stretch = min(look, most)
        is_same = np.ones(stretch, np.bool_)
        for nth in range(position, position + width):
            is_same &= octets[nth : nth + (stretch - 1) * size + 1 : size] == octets[nth]
        if not is_same.all():
            return int(is_same.argmin()), size
    return stretch, size


def _hop_one_by_one(data: bytes | memoryview, position: int, count: int) -> tuple[list[int], int]:
    """Two bytes hold the length of any record below 8 KiB, so a look into a table is a hop."""
    starts: list[int] = []
    append, unpack, sizes = starts.append, _TWO_BYTES.unpack_from, _SIZES
    for _ in range(count):
        append(position)
        position += sizes[unpack(data, position)[0]] or _size(memoryview(data), position)
    return starts, position


def _sizes_by_two_bytes() -> list[int]:
    """The size of a record by the two bytes it starts with; 0 where its length takes more."""
    both = np.arange(1 << 16, dtype=np.int64)
    first, second = both & 0xFF, both >> 8
    wide = np.where(second < 0x80, 2 + ((first & 0x7F | second << 7) >> 1), 0)
    sizes: list[int] = np.where(first < 0x80, 1 + (first >> 1), wide).tolist()
    return sizes


_TWO_BYTES = struct.Struct("<H")
_SIZES = _sizes_by_two_bytes()
