"""Reads a stretch of one copy of a partition: its batches by their headers, and their records.

Copies of a partition are nearly always equal batch by batch. So every batch of every copy is read
and its CRC verified, but only the truth's batches are decoded, and those of the others that differ
from it. Files are read, not mapped: a running broker may truncate one, and a mapping would then
crash the process.

A batch with a wrong CRC or an offset out of order is skipped. Where no batch can start, the rest of
the segment cannot be read, except at the end of the last one: there a running broker is writing, or
a crash has left a torn batch, which recovery truncates. That excuse ends at `settled`: everything
below the recovery point or the high watermark was complete before.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.pipeline.audit.jobs.row_types import RECORD, Bools, Ints, Table, content
from holdfast.pipeline.audit.replicas.segments import Segment, opened
from holdfast.protocol.records import MalformedBatchError
from holdfast.protocol.records.arrow.batch_walk import HEADER_FIELDS
from holdfast.protocol.records.arrow.reader import read_runs
from holdfast.protocol.records.batch_header import (
    ATTRIBUTES_POSITION,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
)
from holdfast.protocol.records.crc import crc32c_parts

CHUNK_BYTES: Final = 16 << 20
COLUMNS: Final = (
    "offset",
    "leader_epoch",
    "is_control",
    "key_crc",
    "key_len",
    "value_crc",
    "value_len",
)
_START = struct.Struct(">qiib6xi")
"""Base offset, length, epoch, magic, last offset delta."""
_HEADER_RANGE = np.arange(HEADER_BYTES)
_INDEX_ENTRY = np.dtype([("offset", ">u4"), ("position", ">u4")])
_LEAST_LENGTH = HEADER_BYTES - LENGTH_END
FAR: Final = 1 << 62
MOST_OFFSETS: Final = 1 << 31
"""The maximum within a segment: its indexes have no room for more."""


class Unreadable(NamedTuple):
    """Offsets [first, until) of a copy that cannot be read."""

    first: int
    until: int
    place: str
    """The file, and the byte where that is known."""
    reason: str
    is_damage: bool
    """The bytes are there and wrong. Otherwise they could not be read: another reader may succeed.
    """


class Slice(NamedTuple):
    """Batches that hold offsets of a stretch, in order."""

    headers: npt.NDArray[Any]
    """HEADER_FIELDS."""
    segments: Ints
    """The copy's segment of each batch,"""
    positions: Ints
    """and the position in it."""
    records: Table
    """RECORD; empty unless asked for."""
    unreadable: tuple[Unreadable, ...]


def read_slice(
    segments: Sequence[Segment], first: int, until: int, *, settled: int, is_decoded: bool
) -> Slice:
    """The batches that hold offsets of [first, until)."""
    pieces: list[_Piece] = []
    unreadable: list[Unreadable] = []
    for nth, segment in enumerate(segments):
        after = segments[nth + 1].base if nth + 1 < len(segments) else FAR
        if segment.base >= until or after <= first:
            continue
        walk = _Walk(segment, nth, (first, until), after, settled, unreadable)
        pieces += walk.pieces(is_decoded=is_decoded)
    records = [piece.records for piece in pieces if piece.records is not None]
    return Slice(
        _joined([piece.headers for piece in pieces], HEADER_FIELDS),
        _joined([np.full(len(piece.positions), piece.segment) for piece in pieces], np.int64),
        _joined([piece.positions for piece in pieces], np.int64),
        within(_joined(records, RECORD), first, until),
        tuple(unreadable),
    )


def read_batches(
    segments: Sequence[Segment], part: Slice, is_wanted: Bools, first: int, until: int
) -> Table:
    """The records of some batches of a slice, one after the other."""
    records = []
    for at in np.flatnonzero(is_wanted).tolist():
        segment = segments[int(part.segments[at])]
        size = int(part.headers["length"][at]) + LENGTH_END
        # Removed or truncated since; or its records do not match its CRC.
        with suppress(MalformedBatchError, FileNotFoundError), opened(segment.path) as file:
            records.append(_decoded(os.pread(file, size, int(part.positions[at]))))
    return within(_joined(records, RECORD), first, until)


class Last(NamedTuple):
    """The end of a log."""

    end: int
    """The log end offset."""
    epoch: int
    """The leader epoch that the last batch names."""
    solid_end: int
    """The same, unless the last batch lies after a gap: then the gap's start."""
    time_ms: int


def last_batch(segment: Segment) -> Last | None:
    """A segment's last good batch; None if it has none."""
    for is_hinted in (True, False):  # The hint may lead to a batch that is torn or damaged.
        walk = _Walk(segment, 0, (FAR, FAR), FAR, 0, [])
        last = None
        for piece in walk.pieces(is_decoded=False, is_hinted=is_hinted):
            bases = piece.headers["base_offset"].astype(np.int64)
            ends = bases + piece.headers["last_offset_delta"] + 1
            before = ends[-2] if len(ends) > 1 else last.end if last else walk.began
            is_solid = before == bases[-1]
            epoch = int(piece.headers["leader_epoch"][-1])
            time_ms = int(piece.headers["max_timestamp"][-1])
            last = Last(int(ends[-1]), epoch, int(ends[-1] if is_solid else before), time_ms)
        if last is not None:
            return last
    return None


def within(records: Table, first: int, until: int) -> Table:
    """Batches may reach beyond a stretch on both sides."""
    offsets = records["offset"]
    if not len(offsets) or (offsets[0] >= first and offsets[-1] < until):
        return records
    return records[(offsets >= first) & (offsets < until)]


def _joined(arrays: list[npt.NDArray[Any]], kind: Any) -> npt.NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, kind)


class _Piece(NamedTuple):
    headers: npt.NDArray[Any]
    segment: int
    positions: Ints
    records: Table | None


class _Walk:
    """Walks through one segment, chunk by chunk."""

    def __init__(
        self,
        segment: Segment,
        nth: int,
        stretch: tuple[int, int],
        after: int,
        settled: int,
        unreadable: list[Unreadable],
    ) -> None:
        self.segment, self.nth = segment, nth
        self.first, self.until = stretch
        self.after = after
        """Where the next segment starts."""
        self.settled = settled
        self.unreadable = unreadable
        self.expected = segment.base
        """The expected base offset of the next batch."""
        self.began = segment.base
        self._newest_base = segment.base - 1
        self._out_of_order: dict[int, int] = {}
        """Positions of batches with an impossible offset -> the expected base offset."""

    def pieces(self, *, is_decoded: bool, is_hinted: bool = True) -> Iterator[_Piece]:
        """At most one round per batch."""
        try:
            with opened(self.segment.path) as file:
                position = self._start(file) if is_hinted else 0
                self.began = self.expected
                while position < self.segment.size:
                    data = os.pread(file, self._chunk_bytes(file, position), position)
                    starts, end = self._starts(file, data, position)
                    yield from self._piece(data, position, starts, is_decoded)
                    if end <= 0:
                        return
                    position += end
        except FileNotFoundError:
            pass  # Retention has removed it: the copy starts later now.
        except OSError as error:
            self._note(self.expected, self.after, None, f"{error.strerror}", is_damage=False)

    def _start(self, file: int) -> int:
        """A batch to begin with, at or before the first offset: from the index, verified."""
        try:
            entries = np.fromfile(self.segment.path.removesuffix(".log") + ".index", _INDEX_ENTRY)
        except OSError:
            return 0
        positions = entries["position"].astype(np.int64)
        # A preallocated index ends with zeros.
        used = int(np.argmax(np.diff(positions) <= 0)) + 1 if (np.diff(positions) <= 0).any() else 0
        entries = entries[: used or len(entries)]
        offsets = entries["offset"].astype(np.int64) + self.segment.base
        place = int(np.searchsorted(offsets, self.first, side="left")) - 1
        if place < 0:
            return 0
        position = int(entries["position"][place])
        header = np.frombuffer(os.pread(file, HEADER_BYTES, position), np.uint8)
        if len(header) < HEADER_BYTES:
            return 0
        one = header.view(HEADER_FIELDS)[0]
        last = int(one["base_offset"]) + int(one["last_offset_delta"])
        if one["magic"] != MAGIC or last != offsets[place]:
            return 0
        self.expected = int(one["base_offset"])
        self._newest_base = self.expected - 1
        return position

    def _chunk_bytes(self, file: int, position: int) -> int:
        """A batch may be larger than a chunk."""
        start = os.pread(file, LENGTH_END, position)
        length = struct.unpack_from(">i", start, 8)[0] if len(start) == LENGTH_END else 0
        left = self.segment.size - position
        return min(left, max(CHUNK_BYTES, length + LENGTH_END))

    def _starts(self, file: int, data: bytes, position: int) -> tuple[list[int], int]:
        """Where batches start in a chunk, and where the next chunk should; 0 if none should."""
        starts: list[int] = []
        place, end = 0, len(data)
        is_whole = position + end >= self.segment.size
        while place < end:
            if place + HEADER_BYTES > end:
                return starts, self._incomplete(is_whole, place, position + place)
            base, length, _, magic, delta = _START.unpack_from(data, place)
            size = length + LENGTH_END
            if magic != MAGIC or length < _LEAST_LENGTH or base < 0:
                self._stuck(position + place, f"message format {magic}, {size} bytes")
                return starts, 0
            if place + size > end:
                return starts, self._incomplete(is_whole, place, position + place)
            if self._is_in_order(file, base, position + place + size):
                if base >= self.until:
                    return starts, 0
                self._newest_base, self.expected = base, base + delta + 1
            else:
                self._out_of_order[position + place] = self.expected
            starts.append(place)
            place += size
        return starts, place

    def _is_in_order(self, file: int, base: int, following: int) -> bool:
        """No CRC covers a batch's offset. It may leave a gap, but not go back or pass the next."""
        if not self._newest_base < base < min(self.after, self.segment.base + MOST_OFFSETS):
            return False
        if base == self.expected:
            return True
        after = os.pread(file, LENGTH_END, following)
        return len(after) < LENGTH_END or base < struct.unpack_from(">q", after)[0]

    def _incomplete(self, is_whole: bool, place: int, position: int) -> int:
        """A batch reaches beyond the chunk: read on there, or it is torn."""
        if is_whole:
            self._stuck(position, "the file ends within it")
            return 0
        return place

    def _stuck(self, position: int, reason: str) -> None:
        if self.after == FAR and self.expected >= self.settled:
            return  # Torn, or being written.
        until = self.settled if self.after == FAR else self.after
        self._damaged(self.expected, until, position, f"no batch: {reason}")

    def _damaged(self, first: int, until: int, position: int, reason: str) -> None:
        self._note(first, until, position, reason, is_damage=True)

    def _note(
        self, first: int, until: int, position: int | None, reason: str, *, is_damage: bool
    ) -> None:
        first, until = max(first, self.first), min(until, self.until)
        place = self.segment.path if position is None else f"{self.segment.path}:{position}"
        if first < until:
            self.unreadable.append(Unreadable(first, until, place, reason, is_damage))

    def _piece(
        self, data: bytes, position: int, starts: list[int], is_decoded: bool
    ) -> Iterator[_Piece]:
        if not starts:
            return
        at = np.array(starts, np.int64)
        octets = np.frombuffer(data, np.uint8)
        headers = octets[at[:, None] + _HEADER_RANGE].view(HEADER_FIELDS)[:, 0]
        bases = headers["base_offset"].astype(np.int64)
        deltas = headers["last_offset_delta"].astype(np.int64)
        sizes = headers["length"].astype(np.int64) + LENGTH_END
        spans = np.stack([at + ATTRIBUTES_POSITION, sizes - ATTRIBUTES_POSITION], 1)
        sums = crc32c_parts(data, spans.astype(np.uint64).reshape(-1).data)
        is_whole = (np.array(sums, np.int64) == headers["crc"]) & (deltas >= 0)
        is_good = is_whole.copy()
        for place, first in self._out_of_order.items():
            nth = np.searchsorted(at, place - position)
            is_good[nth], bases[nth] = False, first
        self._out_of_order.clear()
        ends = bases + np.maximum(deltas, 0) + 1
        for bad in np.flatnonzero(~is_good).tolist():
            reason = "its offset is out of order" if is_whole[bad] else "the CRC does not match"
            until = int(bases[bad + 1]) if bad + 1 < len(bases) else int(ends[bad])
            self._damaged(int(bases[bad]), until, position + starts[bad], reason)
        is_wanted = is_good & ((ends > self.first) | (self.first == FAR))
        if not is_wanted.any():
            return
        kept = np.flatnonzero(is_wanted)
        headers, at = headers[kept], at[kept]
        records = self._records(data, position, at, headers) if is_decoded else None
        yield _Piece(headers, self.nth, at + position, records)

    def _records(
        self, data: bytes, position: int, starts: Ints, headers: npt.NDArray[Any]
    ) -> Table:
        """Decode neighbouring batches together; those that the decoder refuses, one by one."""
        view = memoryview(data)
        ends = starts + headers["length"] + LENGTH_END
        breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1
        records = []
        for group in np.split(np.arange(len(starts)), breaks):
            try:
                records.append(_decoded(view[int(starts[group[0]]) : int(ends[group[-1]])]))
            except MalformedBatchError:
                for one in group.tolist():
                    batch = view[int(starts[one]) : int(ends[one])]
                    records += self._careful(batch, position + int(starts[one]), headers[one])
        return _joined(records, RECORD)

    def _careful(self, batch: memoryview, position: int, header: Any) -> list[Table]:
        try:
            return [_decoded(batch)]
        except MalformedBatchError as error:
            base = int(header["base_offset"])
            until = base + int(header["last_offset_delta"]) + 1
            self._damaged(base, until, position, error.reason)
            return []


def _decoded(data: bytes | memoryview) -> Table:
    tables = []
    for run in read_runs(data, check_crc=False, columns=COLUMNS):
        columns = {name: run.column(name).to_numpy(zero_copy_only=False) for name in COLUMNS}
        table = np.empty(len(columns["offset"]), RECORD)
        table["offset"] = columns["offset"]
        table["epoch"] = columns["leader_epoch"]
        table["is_data"] = ~columns["is_control"]
        table["key"] = content(columns["key_crc"], columns["key_len"])
        table["value"] = content(columns["value_crc"], columns["value_len"])
        tables.append(table)
    return _joined(tables, RECORD)
