"""The header of a record batch (magic 2): 61 bytes, the only part that the hot path reads.

A broker checks and stamps the header of a batch, and stores and sends its bytes; it decodes the
records only if a rule requires it. The CRC does not cover the base offset and the leader epoch, so
that a leader can write them into a producer's batch without a new CRC.

`parse_header` refuses a batch that cannot be skipped: truncated, an unknown magic, an impossible
size. It does not check the CRC or the fields; `check_span` and `validation` do.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.model import BatchHeader, ErrorCode
from holdfast.protocol.records.crc import crc32c
from holdfast.protocol.records.errors import MalformedBatchError

Bytes = bytes | bytearray | memoryview

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
_unpack = HEADER.unpack_from
LENGTH_END = 12
"""The length field counts the bytes after it; base offset and length take 12 bytes."""
MAGIC = 2
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
"""The CRC covers everything from here to the end of the batch."""
LEAST_RECORD_BYTES = 7
"""An empty record: its length, attributes, two deltas, key and value length, header count."""

COMPRESSION_MASK = 0x07
APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
UNUSED_ATTRIBUTES = ~0x7F
"""Reserved attribute bits: a batch with one of them is refused."""

MAX_SEQUENCE = 2**31 - 1
_MAX_OFFSET = 2**63 - 1
_MAX_TIMESTAMP_POSITION = 35
_OFFSET_FIELD = struct.Struct(">q")
_EPOCH_FIELD = struct.Struct(">i")
_LENGTH_FIELD = _EPOCH_FIELD.unpack_from
_CRC_FIELD = struct.Struct(">I")
_ATTRIBUTES_FIELD = struct.Struct(">h")

assert HEADER_BYTES == 61


class RecordBatchHeader(NamedTuple):
    """The header's fields in the order of the wire."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    """The batch spans [base_offset, base_offset + this], also after compaction took records out."""
    base_timestamp: int
    """Of the first record; the delete horizon instead where that attribute is set."""
    max_timestamp: int
    """The append time of all records where that attribute is set."""
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.length + LENGTH_END

    @property
    def end_offset(self) -> int:
        """The offset after the last one."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """The codec's number; 5 to 7 are not assigned."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_append_time(self) -> bool:
        """The timestamps are the broker's, not the producer's."""
        return bool(self.attributes & APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Part of a transaction, or the marker that ends one."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Holds markers, not a client's records."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop this batch's tombstones and markers (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    def to_model(self) -> BatchHeader:
        """The header for the core.

        The core counts offsets and sequence numbers, so its record count is the span, which a
        compacted batch keeps, and not the number of records left.
        """
        # In the order of BatchHeader's fields; its own constructor costs twice as much.
        flags = self[5] & TRANSACTIONAL != 0, self[5] & CONTROL != 0
        fields = (self[6] + 1, self[2], self[0], self[9], self[10], self[11], *flags, self[8])
        return tuple.__new__(BatchHeader, fields)


def parse_header(data: Bytes, position: int = 0) -> RecordBatchHeader:
    """The header at `position`, if a whole batch fits there."""
    if position + HEADER_BYTES > len(data):
        raise _truncated(data, position)
    fields = _unpack(data, position)
    if fields[3] != MAGIC:
        raise _foreign(fields[3], position)
    size = fields[1] + LENGTH_END
    if size < HEADER_BYTES or size > len(data) - position:
        raise _truncated(data, position)
    # What RecordBatchHeader._make does, without its check of a length that the struct ensures.
    return tuple.__new__(RecordBatchHeader, fields)


def check_span(header: RecordBatchHeader, position: int = 0) -> None:
    """Refuse impossible offsets and record counts.

    Called after the CRC check, or by a reader that does not check the CRC: the error is the
    writer's, except in the base offset.
    """
    base_offset, last_delta, count = header[0], header[6], header[12]
    if base_offset < 0 or not 0 <= last_delta <= _MAX_OFFSET - base_offset:
        raise MalformedBatchError(
            position,
            f"no offsets from {base_offset} to {base_offset} + {last_delta}",
            ErrorCode.INVALID_RECORD,
        )
    # Compressed records may take less than a byte each; decompression finds a wrong count there.
    room = (header[1] + LENGTH_END - HEADER_BYTES) // LEAST_RECORD_BYTES
    is_packed = header[5] & COMPRESSION_MASK
    if not 0 <= count <= last_delta + 1 or (count > room and not is_packed):
        raise MalformedBatchError(
            position + HEADER_BYTES - 4,
            f"{count} records cannot be in {last_delta + 1} offsets and {header.size} bytes",
            ErrorCode.INVALID_RECORD,
        )


def _truncated(data: Bytes, position: int) -> MalformedBatchError:
    """The error for an incomplete batch; an old magic or an impossible length comes first."""
    left = len(data) - position
    if left > MAGIC_POSITION and data[position + MAGIC_POSITION] != MAGIC:
        magic = data[position + MAGIC_POSITION]
        return _foreign(magic - 256 if magic > 127 else magic, position)
    if left < LENGTH_END:
        return MalformedBatchError(position, f"truncated: {left} bytes, a batch starts with 12")
    size = _EPOCH_FIELD.unpack_from(data, position + 8)[0] + LENGTH_END
    if size < HEADER_BYTES:
        return MalformedBatchError(position + 8, f"a batch cannot be {size} bytes long")
    return MalformedBatchError(position, f"truncated: {left} bytes of a batch of {size}")


def _foreign(magic: int, position: int) -> MalformedBatchError:
    if magic in (0, 1):
        code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
        reason = f"message format {magic} is not supported, only 2"
    else:
        code = ErrorCode.CORRUPT_MESSAGE
        reason = f"no message format has the number {magic}"
    return MalformedBatchError(position + MAGIC_POSITION, reason, code)


class Batch:
    """One batch in a buffer: its header, and its bytes as views that copy nothing."""

    __slots__ = ("_data", "header", "position")

    header: RecordBatchHeader
    position: int
    """Where the batch starts in its buffer; errors name positions in that buffer."""

    def __init__(self, data: Bytes, position: int = 0) -> None:
        self.header = parse_header(data, position)
        self.position = position
        self._data = data

    @property
    def view(self) -> memoryview:
        """The whole batch. Created on use: a walk over headers does not need it."""
        return memoryview(self._data)[self.position : self.position + self.header.size]

    @property
    def body(self) -> memoryview:
        """The records as stored, perhaps compressed."""
        return self.view[HEADER_BYTES:]

    def crc_matches(self) -> bool:
        """Whether the CRC matches."""
        start, header = self.position, self.header
        end = start + header[1] + LENGTH_END
        return crc32c(memoryview(self._data)[start + ATTRIBUTES_POSITION : end]) == header[4]

    def check_crc(self) -> None:
        """Raise unless the CRC matches."""
        if not self.crc_matches():
            raise MalformedBatchError(
                self.position + CRC_POSITION,
                f"the CRC says {self.header.crc:#010x}, the bytes say "
                f"{crc32c(self.view[ATTRIBUTES_POSITION:]):#010x}",
            )


def batches(data: Bytes, position: int = 0, *, partial_end: bool = False) -> Iterator[Batch]:
    """The consecutive batches in a buffer, headers only.

    A fetch may truncate the last batch; with `partial_end` that ends the walk without an error. At
    most one round for every 61 bytes: each batch is at least that long.
    """
    end = len(data)
    while position < end:
        if partial_end:
            left = end - position
            if left < LENGTH_END or left < _LENGTH_FIELD(data, position + 8)[0] + LENGTH_END:
                return
        batch = Batch(data, position)
        yield batch
        position += batch.header.length + LENGTH_END


def stamp(data: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write the offset and leader epoch into a batch. The CRC does not cover them."""
    _OFFSET_FIELD.pack_into(data, position, base_offset)
    _EPOCH_FIELD.pack_into(data, position + LENGTH_END, leader_epoch)


def stamped(header: RecordBatchHeader, base_offset: int, leader_epoch: int) -> RecordBatchHeader:
    """The header as it reads after `stamp` with the same numbers, without parsing it again."""
    fields = (base_offset, header[1], leader_epoch, *header[3:])
    return tuple.__new__(RecordBatchHeader, fields)


def stamp_max_timestamp(
    data: bytearray | memoryview, position: int, max_timestamp: int, *, append_time: bool
) -> None:
    """Write the broker's time, or the true maximum, into a batch, and compute its CRC again.

    The CRC covers these fields, so message.timestamp.type=LogAppendTime costs a CRC per batch.
    """
    header = parse_header(data, position)
    time_type = APPEND_TIME if append_time else 0
    attributes = header.attributes & ~APPEND_TIME | time_type
    _ATTRIBUTES_FIELD.pack_into(data, position + ATTRIBUTES_POSITION, attributes)
    _OFFSET_FIELD.pack_into(data, position + _MAX_TIMESTAMP_POSITION, max_timestamp)
    covered = memoryview(data)[position + ATTRIBUTES_POSITION : position + header.size]
    _CRC_FIELD.pack_into(data, position + CRC_POSITION, crc32c(covered))
