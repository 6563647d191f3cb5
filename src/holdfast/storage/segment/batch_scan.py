"""Iterates over the batches of a log file: headers only, or verified byte by byte.

A scan ends at the end of the file, or raises BadBatchError at the first bytes that cannot be a
batch. It cannot continue after that point, because only the length of a batch leads to the next.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from google_crc32c import extend

from holdfast.protocol.records import Batch, MalformedBatchError, RecordBatchHeader, crc32c
from holdfast.protocol.records.batch_header import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    HEADER,
    HEADER_BYTES,
    LEAST_RECORD_BYTES,
    LENGTH_END,
    MAGIC,
    MAGIC_POSITION,
    Bytes,
    check_span,
    parse_header,
)
from holdfast.protocol.records.crc import crc32c_parts
from holdfast.storage.disk import File
from holdfast.storage.segment.damage import Damage, Doubt, Fault

CHUNK_BYTES = 1 << 20
"""Large enough that system calls are negligible, small enough for the processor's cache."""
_FAR_OFFSET = 1 << 62
"""Offsets below this cannot overflow."""
_LEAST_LENGTH = HEADER_BYTES - LENGTH_END
_NOT_SUMMED = LENGTH_END - ATTRIBUTES_POSITION
LARGE_BYTES = 64 << 20
"""A batch above this size is read into memory only if its CRC matches."""
_WINDOW_BYTES = 1 << 16
_SMALL_BATCH_BYTES = 1 << 12
"""Headers of batches below this size are read many at a time, larger ones one by one."""


class BadBatchError(Exception):
    """The bytes at this position are not a batch, or it is damaged."""

    def __init__(self, path: str, position: int, fault: Fault, reason: str) -> None:
        super().__init__(f"{path}: byte {position}: {reason}")
        self.path = path
        self.position = position
        self.fault = fault
        self.reason = reason


class FoundHeader(NamedTuple):
    """A header and where its batch starts."""

    position: int
    header: RecordBatchHeader

    @property
    def end(self) -> int:
        """Where the batch ends."""
        return self.position + self.header.size


class FoundBatch(NamedTuple):
    """A whole batch and where it starts in the file."""

    position: int
    header: RecordBatchHeader
    chunk: Bytes
    """Contains the batch, among others."""
    place: int
    """Where it starts in the chunk."""

    def batch(self) -> Batch:
        """The batch, for reading its records."""
        return Batch(self.chunk, self.place)

    def view(self) -> memoryview:
        """Its bytes."""
        return memoryview(self.chunk)[self.place : self.place + self.header.size]


def read_header(file: File, position: int, end: int) -> RecordBatchHeader:
    """The header at a position, if a whole batch can lie between it and `end`."""
    return _header(file, file.read(position, HEADER_BYTES), 0, position, end)


def walk_headers(file: File, position: int, end: int) -> Iterator[FoundHeader]:
    """Headers from `position` to `end`; trusts the lengths. One round per 61 bytes at most."""
    window, start, size = b"", position, HEADER_BYTES
    while position < end:
        if position + HEADER_BYTES > start + len(window) or position < start:
            window, start = file.read(position, size), position
        header = _header(file, window, position - start, position, end)
        yield FoundHeader(position, header)
        position += header.length + LENGTH_END
        size = _WINDOW_BYTES if header.length < _SMALL_BATCH_BYTES else HEADER_BYTES


def _header(file: File, data: bytes, place: int, position: int, end: int) -> RecordBatchHeader:
    left = end - position
    if len(data) - place < HEADER_BYTES or left < HEADER_BYTES:
        reason = f"truncated: {left} bytes of a header"
        raise BadBatchError(file.path, position, Fault.TRUNCATED, reason)
    header = RecordBatchHeader._make(HEADER.unpack_from(data, place))
    if header.magic != MAGIC:
        reason = f"message format {header.magic}, not {MAGIC}"
        raise BadBatchError(file.path, position, Fault.MAGIC, reason)
    if not HEADER_BYTES <= header.size <= left:
        fault = Fault.TRUNCATED if header.size > left else Fault.LENGTH
        reason = f"a batch of {header.size} bytes, {left} are left"
        raise BadBatchError(file.path, position, fault, reason)
    return header


Fields = tuple[int, ...]
"""The fields of RecordBatchHeader as a plain tuple."""


class Run(NamedTuple):
    """Adjacent verified batches in one chunk: a million of them cost no object each."""

    chunk: Bytes
    start: int
    """Where the chunk, and the first batch, starts in the file."""
    batches: list[Fields]
    end: int
    """Where in the file the last of them ends."""
    doubts: Sequence[Doubt] = ()
    """What `inspect.segment_reader` objects to."""

    @property
    def view(self) -> memoryview:
        """The bytes of the batches."""
        return memoryview(self.chunk)[: self.end - self.start]

    def batch(self, place: int) -> Batch:
        """The batch at a place in the chunk, for reading its records."""
        return Batch(self.chunk, place)

    def places(self) -> list[int]:
        """Where the batches start in the chunk, and where the last one ends."""
        return list(accumulate([fields[1] + LENGTH_END for fields in self.batches], initial=0))

    def each(self) -> Iterator[FoundBatch]:
        """One batch at a time."""
        place = 0
        for fields in self.batches:
            header = RecordBatchHeader._make(fields)
            yield FoundBatch(self.start + place, header, self.chunk, place)
            place += header.size

    def without(self, faults: Collection[Fault]) -> Iterator[Run | Damage]:
        """The batches without these faults, and the others as damage."""
        doubts = [one for one in self.doubts if one.fault in faults]
        if not doubts:
            yield self
            return
        first, places = 0, self.places()
        for doubt in doubts:
            if first < doubt.nth:
                yield self.part(places, first, doubt.nth)
            header = RecordBatchHeader._make(self.batches[doubt.nth])
            position = self.start + places[doubt.nth]
            yield Damage(position, position + header.size, doubt.fault, doubt.reason, header)
            first = doubt.nth + 1
        if first < len(self.batches):
            yield self.part(places, first, len(self.batches))

    def part(self, places: Sequence[int], first: int, last: int) -> Run:
        """The batches [first, last)."""
        start, end = places[first], places[last]
        chunk = memoryview(self.chunk)[start:end]
        return Run(chunk, self.start + start, self.batches[first:last], self.start + end)


def verified_runs(
    file: File, position: int, end: int, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Run]:
    """Batches with a matching CRC and a valid header, a chunk at a time.

    The loop takes valid batches; `_check` finds the reason where it stops.
    """
    while position < end:  # Each round passes a batch at least, or raises.
        chunk = _chunk_at(file, position, end, chunk_bytes)
        good, place = _good_batches(chunk)
        if not good:
            place = _check(file, chunk, position)
            good = [HEADER.unpack_from(chunk)]
        run = Run(chunk, position, good, position + place)
        # Free it before the next read, which then uses the same, warm memory.
        del chunk, good
        yield run
        del run
        position += place


def base_after(file: File, run: Run, number: int, end: int) -> int | None:
    """The base offset of the batch after one in a run; None if no valid batch follows."""
    if number + 1 < len(run.batches):
        return run.batches[number + 1][0]
    try:
        following = next(verified_runs(file, run.end, end, HEADER_BYTES), None)
    except BadBatchError:
        return None
    return following.batches[0][0] if following else None


def _good_batches(chunk: bytes) -> tuple[list[Fields], int]:
    """The valid batches at the start of a chunk, and where they end.

    It checks lengths first, then all CRCs in one call: that avoids a copy of every batch.
    """
    good: list[Fields] = []
    spans: list[int] = []
    expected: list[int] = []
    unpack, size, place = HEADER.unpack_from, len(chunk), 0
    while place + HEADER_BYTES <= size:  # Each round passes a batch.
        fields = unpack(chunk, place)
        base, length, _, magic, crc, attributes, delta, _, _, _, _, _, count = fields
        after = place + length + LENGTH_END
        if magic != MAGIC or length < _LEAST_LENGTH or after > size:
            break
        if not (0 <= base < _FAR_OFFSET and 0 <= count <= delta + 1 and delta >= 0):
            break
        # As in `check_span`: compressed records may take less than a byte each.
        if count * LEAST_RECORD_BYTES > length and not attributes & COMPRESSION_MASK:
            break
        good.append(fields)
        expected.append(crc)
        spans += (place + ATTRIBUTES_POSITION, length + _NOT_SUMMED)
        place = after
    sums = crc32c_parts(chunk, array("Q", spans))
    if sums == expected:
        return good, place
    bad = next(n for n, (one, other) in enumerate(zip(sums, expected, strict=True)) if one != other)
    return good[:bad], spans[2 * bad] - ATTRIBUTES_POSITION


def _check(file: File, chunk: bytes, position: int) -> int:
    """The size of the batch at the start of a chunk, or BadBatchError."""
    try:
        header = parse_header(chunk)
    except MalformedBatchError as error:
        raise BadBatchError(file.path, position, _fault(chunk), error.reason) from None
    if crc32c(chunk[ATTRIBUTES_POSITION : header.size]) != header.crc:
        raise BadBatchError(file.path, position, Fault.CRC, Fault.CRC.value)
    try:
        check_span(header)
    except MalformedBatchError as error:
        raise BadBatchError(file.path, position, Fault.COUNTS, error.reason) from None
    return header.size


def _fault(chunk: bytes) -> Fault:
    """Why `parse_header` refuses the batch at the start of a chunk."""
    if len(chunk) > MAGIC_POSITION and chunk[MAGIC_POSITION] != MAGIC:
        return Fault.MAGIC
    is_known = len(chunk) >= LENGTH_END
    return Fault.LENGTH if is_known and _size(chunk) < HEADER_BYTES else Fault.TRUNCATED


def _size(chunk: bytes) -> int:
    return int.from_bytes(chunk[8:LENGTH_END], "big", signed=True) + LENGTH_END


def verified_batches(file: File, position: int, end: int) -> Iterator[FoundBatch]:
    """As `verified_runs`, one batch at a time."""
    for run in verified_runs(file, position, end):
        yield from run.each()


def _chunk_at(file: File, position: int, end: int, chunk_bytes: int) -> bytes:
    chunk = file.read(position, min(chunk_bytes, end - position))
    if len(chunk) < HEADER_BYTES:
        return chunk
    size = _size(chunk)
    if len(chunk) < size <= end - position:
        header = RecordBatchHeader._make(HEADER.unpack_from(chunk))
        if size > LARGE_BYTES and not crc_matches(file, position, header):
            reason = f"a batch cannot be {size} bytes long, unless its CRC matches"
            raise BadBatchError(file.path, position, Fault.LENGTH, reason)
        chunk = file.read(position, size)
    return chunk


def crc_matches(file: File, position: int, header: RecordBatchHeader) -> bool:
    """Verify a batch's CRC in pieces: a damaged length may claim a gigabyte."""
    crc, at, end = 0, position + ATTRIBUTES_POSITION, position + header.size
    while at < end:  # At most size / piece rounds.
        piece = file.read(at, min(CHUNK_BYTES, end - at))
        if not piece:
            return False
        crc = extend(crc, piece)
        at += len(piece)
    return crc == header.crc
