"""Iterates over the batches of a log file: headers only, or verified byte by byte.

A scan ends at the end of the file, or raises BadBatchError at the first bytes that cannot be a
batch. It cannot continue after that point, because only the length of a batch leads to the next.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.protocol.records import Batch, MalformedBatchError, RecordBatchHeader, crc32c
from holdfast.protocol.records.batch_header import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    HEADER,
    HEADER_BYTES,
    LEAST_RECORD_BYTES,
    LENGTH_END,
    MAGIC,
    check_span,
    parse_header,
)
from holdfast.protocol.records.crc import crc32c_parts
from holdfast.storage.disk import File

CHUNK_BYTES = 1 << 20
"""Large enough that system calls are negligible, small enough for the processor's cache."""
_FAR_OFFSET = 1 << 62
"""Offsets below this cannot overflow."""
_LEAST_LENGTH = HEADER_BYTES - LENGTH_END
_NOT_SUMMED = LENGTH_END - ATTRIBUTES_POSITION
_WINDOW_BYTES = 1 << 16
_SMALL_BATCH_BYTES = 1 << 12
"""Headers of batches below this size are read many at a time, larger ones one by one."""


class BadBatchError(Exception):
    """The bytes at this position are not a batch, or it is damaged."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path}: byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class FoundHeader(NamedTuple):
    """A header and where its batch starts."""

    position: int
    header: RecordBatchHeader


class FoundBatch(NamedTuple):
    """A whole batch and where it starts in the file."""

    position: int
    header: RecordBatchHeader
    chunk: bytes
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
    if len(data) - place < HEADER_BYTES or end - position < HEADER_BYTES:
        raise BadBatchError(file.path, position, f"truncated: {end - position} bytes of a header")
    header = RecordBatchHeader._make(HEADER.unpack_from(data, place))
    if header.magic != MAGIC:
        raise BadBatchError(file.path, position, f"message format {header.magic}, not {MAGIC}")
    size = header.length + LENGTH_END
    if size < HEADER_BYTES or position + size > end:
        raise BadBatchError(
            file.path, position, f"a batch of {size} bytes, {end - position} are left"
        )
    return header


Fields = tuple[int, ...]
"""The fields of RecordBatchHeader as a plain tuple."""


class Run(NamedTuple):
    """Adjacent verified batches in one chunk, for fast recovery."""

    chunk: bytes
    start: int
    """Where the chunk, and the first batch, starts in the file."""
    batches: list[Fields]
    end: int
    """Where in the file the last of them ends."""

    def batch(self, place: int) -> Batch:
        """The batch at a place in the chunk, for reading its records."""
        return Batch(self.chunk, place)


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
    header = _parsed(file, chunk, position)
    size = header.length + LENGTH_END
    if crc32c(chunk[ATTRIBUTES_POSITION:size]) != header.crc:
        raise BadBatchError(file.path, position, "the CRC does not match")
    try:
        check_span(header)
    except MalformedBatchError as error:
        raise BadBatchError(file.path, position, error.reason) from None
    return size


def verified_batches(file: File, position: int, end: int) -> Iterator[FoundBatch]:
    """As `verified_runs`, one batch at a time."""
    for run in verified_runs(file, position, end):
        place = 0
        for fields in run.batches:
            header = RecordBatchHeader._make(fields)
            yield FoundBatch(run.start + place, header, run.chunk, place)
            place += header.size


def _chunk_at(file: File, position: int, end: int, chunk_bytes: int) -> bytes:
    chunk = file.read(position, min(chunk_bytes, end - position))
    if len(chunk) < HEADER_BYTES:
        return chunk
    size = int.from_bytes(chunk[8:LENGTH_END], "big", signed=True) + LENGTH_END
    if len(chunk) < size <= end - position:
        chunk = file.read(position, size)
    return chunk


def _parsed(file: File, chunk: bytes, position: int) -> RecordBatchHeader:
    try:
        return parse_header(chunk)
    except MalformedBatchError as error:
        raise BadBatchError(file.path, position, error.reason) from None
