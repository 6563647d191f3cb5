"""Decodes the records of a batch, one at a time.

Keys and values are views into the batch (or into its decompressed records): nothing is copied. The
reader checks everything: every length against the bytes left, the size of each record against its
length, and the number of records against the count. It refuses a record that contradicts the header
(an offset outside the batch's span, a timestamp beyond 64 bits).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.model import NO_SEQUENCE, ErrorCode
from holdfast.protocol.records.batch_header import (
    HEADER_BYTES,
    LEAST_RECORD_BYTES,
    MAX_SEQUENCE,
    Batch,
    RecordBatchHeader,
    check_span,
)
from holdfast.protocol.records.compression import decompress
from holdfast.protocol.records.errors import MalformedBatchError
from holdfast.protocol.records.varints import SMALL, decode_varint, decode_varlong

DECOMPRESSED_LIMIT = 64 << 20
"""The default limit of a decompressed batch, in bytes."""

LEAST_HEADER_BYTES = 2
_INT64_LIMIT = 2**63


class RecordHeader(NamedTuple):
    """A record header: a name and a value. A name may occur more than once."""

    key: str
    """Bytes that are not UTF-8 become U+FFFD, as in Java."""
    value: memoryview | bytes | None


class Record(NamedTuple):
    """One record, with absolute offset and timestamp."""

    offset: int
    timestamp: int
    """Milliseconds; the batch's append time with LogAppendTime. -1 if none was set."""
    sequence: int
    key: memoryview | None
    value: memoryview | None
    headers: tuple[RecordHeader, ...]


def read_records(batch: Batch, limit: int = DECOMPRESSED_LIMIT) -> Iterator[Record]:
    """The batch's records in order. Decompresses at the first one; at most to `limit` bytes.

    Raises MalformedBatchError at the first error, after it has yielded the records before that.
    The caller checks the CRC.
    """
    header = batch.header
    check_span(header, batch.position)
    start = batch.position + HEADER_BYTES
    data = memoryview(decompress(header.compression, batch.body, limit, start))
    try:
        yield from _walk(data, header)
    except MalformedBatchError as error:
        if header.compression:
            where = f"in the batch at {batch.position}, decompressed: {error.reason}"
            raise MalformedBatchError(error.position, where, error.error_code) from None
        raise MalformedBatchError(start + error.position, error.reason, error.error_code) from None


def _walk(data: memoryview, header: RecordBatchHeader) -> Iterator[Record]:
    facts = _Facts(
        header.base_offset,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp if header.is_append_time else None,
        header.base_sequence,
    )
    position, end = 0, len(data)
    for _ in range(header.record_count):  # Each takes at least 7 bytes, or the data ends first.
        length, start = decode_varint(data, position, end, "record length")
        position = start + length
        if length < LEAST_RECORD_BYTES - 1 or position > end:
            raise _refused(start, f"a record of {length} bytes, {end - start} are left")
        try:
            yield _read(data, start, position, facts)
        except IndexError:
            raise _refused(start, f"a record of {length} bytes ends too soon") from None
    if position != end:
        raise _refused(position, f"{end - position} bytes after the last record")


class _Facts(NamedTuple):
    """The header fields that the records need."""

    base_offset: int
    last_offset_delta: int
    base_timestamp: int
    append_time: int | None
    base_sequence: int


def _read(data: memoryview, start: int, end: int, facts: _Facts) -> Record:
    """The record in [start, end); its one byte of attributes has no meaning yet.

    Most numbers are one byte, and calling the decoder for these would be most of the cost. They are
    not held against `end` one by one: every field starts where the one before ends, so if the last
    ends where the record does, none has left it. Beyond the data, Python itself refuses.
    """
    base_offset, last_offset_delta, base_timestamp, append_time, base_sequence = facts
    position = start + 2
    if (byte := data[start + 1]) < 0x80:
        timestamp = base_timestamp + SMALL[byte]
    else:
        time_delta, position = decode_varlong(data, start + 1, end, "timestamp delta")
        timestamp = base_timestamp + time_delta
    if (byte := data[position]) < 0x80:
        delta = SMALL[byte]
        position += 1
    else:
        delta, position = decode_varint(data, position, end, "offset delta")
    if not 0 <= delta <= last_offset_delta:
        raise _refused(start, f"offset delta {delta} of {last_offset_delta} at most")
    if not -_INT64_LIMIT <= timestamp < _INT64_LIMIT:
        raise _refused(start, "a timestamp beyond 64 bits")
    key, position = read_bytes(data, position, end, "key")
    value, position = read_bytes(data, position, end, "value")
    headers: tuple[RecordHeader, ...] = ()
    if data[position] == 0:
        position += 1
    else:
        headers, position = _read_headers(data, position, end)
    if position != end:
        raise _refused(start, f"{end - position} bytes left over in a record")
    return Record(
        base_offset + delta,
        timestamp if append_time is None else append_time,
        (base_sequence + delta) & MAX_SEQUENCE if base_sequence >= 0 else NO_SEQUENCE,
        key,
        value,
        headers,
    )


def read_bytes(
    data: memoryview, position: int, end: int, field: str
) -> tuple[memoryview | None, int]:
    """Bytes after their length; -1 is null, and other negative lengths are refused."""
    if (byte := data[position]) < 0x80:
        length = SMALL[byte]
        position += 1
    else:
        length, position = decode_varint(data, position, end, field)
    after = position + length
    if length < 0:
        if length == -1:
            return None, position
        raise _refused(position, f"{field} of {length} bytes")
    if after > end:
        raise _refused(position, f"{field} of {length} bytes, {end - position} are left")
    return data[position:after], after


def _read_headers(
    data: memoryview, position: int, end: int
) -> tuple[tuple[RecordHeader, ...], int]:
    count, position = decode_varint(data, position, end, "header count")
    if not 0 <= count <= (end - position) // LEAST_HEADER_BYTES:
        raise _refused(position, f"{count} headers, {end - position} bytes are left")
    headers = []
    for _ in range(count):
        key, position = read_bytes(data, position, end, "header key")
        if key is None:
            raise _refused(position, "a header without a key")
        value, position = read_bytes(data, position, end, "header value")
        headers.append(RecordHeader(str(key, "utf-8", "replace"), value))
    return tuple(headers), position


def _refused(position: int, reason: str) -> MalformedBatchError:
    return MalformedBatchError(position, reason, ErrorCode.INVALID_RECORD)
