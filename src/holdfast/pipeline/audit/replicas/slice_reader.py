"""Reads a stretch of one copy of a partition: its batches by their headers, and their records.

Copies of a partition are nearly always equal batch by batch. So every batch of every copy is read
and its CRC verified, but only the truth's batches are decoded, and those of the others that differ
from it.

A damaged batch is skipped if its length leads to the next one. Otherwise the rest of the segment
counts as unreadable: what a search finds there may be bytes of a record. At the end of the last
segment that is no damage: there a running broker is writing, or a crash has left a torn batch,
which recovery truncates. That excuse ends at `settled`: everything below the recovery point or the
high watermark was complete before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.pipeline.audit.jobs.row_types import RECORD, Bools, Ints, Table, content
from holdfast.protocol.records import MalformedBatchError, RecordBatchHeader
from holdfast.protocol.records.arrow.batch_walk import HEADER_FIELDS
from holdfast.protocol.records.arrow.reader import read_runs
from holdfast.protocol.records.batch_header import HEADER_BYTES, LENGTH_END
from holdfast.storage.inspect.segment_reader import FAR, SegmentFile, SegmentReader, opened
from holdfast.storage.segment.batch_scan import Run
from holdfast.storage.segment.damage import OFFSETS, Damage, Fault

COLUMNS: Final = (
    "offset",
    "leader_epoch",
    "is_control",
    "key_crc",
    "key_len",
    "value_crc",
    "value_len",
)
_HEADER_RANGE = np.arange(HEADER_BYTES)


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
    segments: Sequence[SegmentFile], first: int, until: int, *, settled: int, is_decoded: bool
) -> Slice:
    """The batches that hold offsets of [first, until)."""
    pieces: list[_Piece] = []
    unreadable: list[Unreadable] = []
    for nth, segment in enumerate(segments):
        if segment.base < until and (segment.span.upper or FAR) > first:
            walk = _Walk(segment, (first, until), settled, unreadable)
            pieces += (one._replace(segment=nth) for one in walk.pieces(is_decoded=is_decoded))
    records = [piece.records for piece in pieces if piece.records is not None]
    return Slice(
        _joined([piece.headers for piece in pieces], HEADER_FIELDS),
        _joined([np.full(len(piece.positions), piece.segment) for piece in pieces], np.int64),
        _joined([piece.positions for piece in pieces], np.int64),
        within(_joined(records, RECORD), first, until),
        tuple(unreadable),
    )


def read_batches(
    segments: Sequence[SegmentFile], part: Slice, is_wanted: Bools, first: int, until: int
) -> Table:
    """The records of some batches of a slice, one after the other."""
    records = []
    wanted = np.flatnonzero(is_wanted).tolist()
    for nth, batches in groupby(wanted, key=lambda at: int(part.segments[at])):
        with opened(segments[nth]) as reader:
            if reader is None:
                continue  # Retention has removed it.
            for at in batches:
                size = int(part.headers["length"][at]) + LENGTH_END
                # Replaced or truncated since; or its records do not match its CRC.
                with suppress(MalformedBatchError):
                    records.append(_decoded(reader.file.read(int(part.positions[at]), size)))
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


def last_batch(segment: SegmentFile) -> Last | None:
    """A segment's last good batch; None if it has none."""
    last = None
    for piece in _Walk(segment, (FAR, FAR), 0, []).pieces(is_decoded=False):
        bases = piece.headers["base_offset"].astype(np.int64)
        ends = bases + piece.headers["last_offset_delta"] + 1
        first = bases[0] if piece.positions[0] else segment.base
        before = ends[-2] if len(ends) > 1 else first if last is None else last.end
        is_solid = before == bases[-1]
        epoch = int(piece.headers["leader_epoch"][-1])
        time_ms = int(piece.headers["max_timestamp"][-1])
        last = Last(int(ends[-1]), epoch, int(ends[-1] if is_solid else before), time_ms)
    return last


def began_ms(segments: Sequence[SegmentFile]) -> int | None:
    """The time of a log's first record; None if that is gone already, or cannot be read."""
    if not segments or segments[0].base > 0:
        return None
    with suppress(OSError), opened(segments[0]) as reader:
        header = None if reader is None else reader.header_at(0)
        return None if header is None else header.base_timestamp
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
        segment: SegmentFile,
        stretch: tuple[int, int],
        settled: int,
        unreadable: list[Unreadable],
    ) -> None:
        self.segment = segment
        self.first, self.until = stretch
        self.settled = settled
        self.unreadable = unreadable
        self.expected = segment.base
        """The end of the last good batch."""

    def pieces(self, *, is_decoded: bool) -> Iterator[_Piece]:
        """At most one round per batch."""
        try:
            with opened(self.segment) as reader:
                if reader is None:
                    return  # Retention has removed it: the copy starts later now.
                start = reader.start_below(self.first)
                for found in reader.read(start, reader.end):
                    for part in found.without(OFFSETS) if isinstance(found, Run) else (found,):
                        if isinstance(part, Run):
                            yield from self._piece(part, is_decoded)
                        elif not self._passes(part, reader):
                            return
                    if self.expected >= self.until:
                        return
        except OSError as error:
            until = self.segment.span.upper or FAR
            self._note(self.expected, until, None, f"{error.strerror}", is_damage=False)

    def _passes(self, damage: Damage, reader: SegmentReader) -> bool:
        """Note damage. Returns whether it is known where it ends."""
        if damage.fault is Fault.SHRUNK:
            return False
        header, upper = damage.header, self.segment.span.upper
        is_torn = upper is None and self.expected >= self.settled
        if header is None or not (damage.is_length_true or is_torn):
            if not is_torn:
                until = self.settled if upper is None else upper
                reason = f"no batch: {damage.reason}"
                self._note(self.expected, until, damage.position, reason)
            return False
        self._note(*self._extent(damage, header, reader), damage.position, _reason(damage))
        return damage.is_length_true

    def _extent(
        self, damage: Damage, header: RecordBatchHeader, reader: SegmentReader
    ) -> tuple[int, int]:
        """The offsets of a damaged batch, as far as its header and its neighbours are plausible.

        Its header may have the wrong count, so it reaches to the next batch or segment.
        """
        first, base, span = self.expected, header.base_offset, self.segment.span
        following = reader.base_at(damage.end)
        if following is None:
            following = span.upper
        limit = span.limit if following is None else following
        if damage.fault not in OFFSETS and first <= base < limit:
            first = base
        if following is not None and following > first:
            return first, following
        end = max(first + max(header.last_offset_delta, 0) + 1, self.settled)
        return first, min(end, span.limit)

    def _note(
        self, first: int, until: int, position: int | None, reason: str, *, is_damage: bool = True
    ) -> None:
        first, until = max(first, self.first), min(until, self.until)
        place = self.segment.path if position is None else f"{self.segment.path}:{position}"
        if first < until:
            self.unreadable.append(Unreadable(first, until, place, reason, is_damage))

    def _piece(self, run: Run, is_decoded: bool) -> Iterator[_Piece]:
        at = np.array(run.places(), np.int64)[:-1]
        octets = np.frombuffer(run.chunk, np.uint8)
        headers = octets[at[:, None] + _HEADER_RANGE].view(HEADER_FIELDS)[:, 0]
        bases = headers["base_offset"].astype(np.int64)
        ends = bases + headers["last_offset_delta"] + 1
        self.expected = int(ends[-1])
        # Offsets rise.
        before = 0 if self.first == FAR else int(np.searchsorted(ends, self.first, "right"))
        after = int(np.searchsorted(bases, self.until))
        if before < after:
            headers, at = headers[before:after], at[before:after]
            records = self._records(run, at, headers) if is_decoded else None
            yield _Piece(headers, 0, at + run.start, records)

    def _records(self, run: Run, starts: Ints, headers: npt.NDArray[Any]) -> Table:
        """Decode all batches together; if the decoder refuses one, one by one."""
        ends = starts + headers["length"] + LENGTH_END
        with suppress(MalformedBatchError):
            return _decoded(run.view[int(starts[0]) : int(ends[-1])])
        records = []
        for start, end, header in zip(starts.tolist(), ends.tolist(), headers, strict=True):
            try:
                records.append(_decoded(run.view[start:end]))
            except MalformedBatchError as error:
                base = int(header["base_offset"])
                until = base + int(header["last_offset_delta"]) + 1
                self._note(base, until, run.start + start, error.reason)
        return _joined(records, RECORD)


def _reason(damage: Damage) -> str:
    return "its offset is out of order" if damage.fault in OFFSETS else damage.reason


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
