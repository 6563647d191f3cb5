"""Walking over the batches of a log file: by their headers only, or verified byte by byte.

A walk ends where the file does, or raises BadBatchError at the first thing that cannot be a batch.
What lies behind that point cannot be found again, since a batch is found by the length of the one
before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.protocol.records import Batch, MalformedBatchError, RecordBatchHeader, crc32c
from holdfast.protocol.records.header import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    check_span,
    parse_header,
)
from holdfast.storage.disk import File

CHUNK_BYTES = 1 << 20
"""Large enough that the calls do not count, small enough for the processor's cache."""
_WINDOW_BYTES = 1 << 16
_SMALL_BATCH_BYTES = 1 << 12
"""Headers of batches below this size are read many at a time, of larger ones one by one."""


class BadBatchError(Exception):
    """No batch can be at this position, or it is damaged."""

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
    """Holds the batch, among others."""
    place: int
    """Where it starts in the chunk."""

    def batch(self) -> Batch:
        """For reading its records."""
        return Batch(self.chunk, self.place)

    def view(self) -> memoryview:
        """Its bytes."""
        return memoryview(self.chunk)[self.place : self.place + self.header.size]


def read_header(file: File, position: int, end: int) -> RecordBatchHeader:
    """The header at a position, if a whole batch can lie between it and `end`."""
    return _header(file, file.read(position, HEADER_BYTES), 0, position, end)


def walk_headers(file: File, position: int, end: int) -> Iterator[FoundHeader]:
    """Headers from `position` to `end`, trusting lengths. At most one round for every 61 bytes."""
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
        raise BadBatchError(file.path, position, f"cut short: {end - position} bytes of a header")
    header = RecordBatchHeader._make(HEADER.unpack_from(data, place))
    if header.magic != MAGIC:
        raise BadBatchError(file.path, position, f"message format {header.magic}, not {MAGIC}")
    size = header.length + LENGTH_END
    if size < HEADER_BYTES or position + size > end:
        raise BadBatchError(
            file.path, position, f"a batch of {size} bytes, {end - position} are left"
        )
    return header


def verified_batches(file: File, position: int, end: int) -> Iterator[FoundBatch]:
    """Whole batches whose CRC matches and whose header can be true."""
    chunk, start = b"", position
    while position < end:
        place = position - start
        try:
            header = parse_header(chunk, place)
        except MalformedBatchError:
            # Cut off by the end of the chunk, or really bad: a new chunk from here on tells.
            chunk, start, place = _chunk_at(file, position, end), position, 0
            header = _parsed(file, chunk, position)
        size = header.length + LENGTH_END
        if crc32c(chunk[place + ATTRIBUTES_POSITION : place + size]) != header.crc:
            raise BadBatchError(file.path, position, "the CRC does not match")
        try:
            check_span(header)
        except MalformedBatchError as error:
            raise BadBatchError(file.path, position, error.reason) from None
        yield FoundBatch(position, header, chunk, place)
        position += size


def _chunk_at(file: File, position: int, end: int) -> bytes:
    chunk = file.read(position, min(CHUNK_BYTES, end - position))
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
