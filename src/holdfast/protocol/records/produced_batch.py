"""Prepares a producer's batch for the log: checks it, and changes it if the topic's settings ask.

Most batches stay unchanged, and only their header is read. Three cases need more:

- message.timestamp.type=LogAppendTime: the header gets the broker's time and a new CRC.
- compression.type other than "producer": a batch in another codec is compressed again. The records
  stay as they are.
- A wrong maximum timestamp in the header gets the true value, as in Kafka. It is found if it is
  impossible (some clients never set it), or if the records have to be decoded for another reason.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from holdfast.model import ErrorCode
from holdfast.protocol.records.batch_header import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CRC_POSITION,
    HEADER_BYTES,
    LENGTH_END,
    Batch,
    Bytes,
    RecordBatchHeader,
    parse_header,
    stamp_max_timestamp,
)
from holdfast.protocol.records.compression import compress, decompress
from holdfast.protocol.records.crc import crc32c
from holdfast.protocol.records.errors import MalformedBatchError
from holdfast.protocol.records.validation import DEFAULT_RULES, Rules, check_produced

_LENGTH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")


class Prepared(NamedTuple):
    """A batch that may be stamped and appended."""

    data: bytearray | memoryview
    """What came in, if it can be written to and was not changed; otherwise a copy."""
    header: RecordBatchHeader
    """Its header as it is now, before stamping."""


def prepare_produced(data: Bytes, now_ms: int, rules: Rules = DEFAULT_RULES) -> Prepared:
    """Check and change a batch of a Produce request; MalformedBatchError if it is refused."""
    batch, facts = check_produced(data, now_ms, rules)
    header, ready = batch.header, _writable(data)
    if rules.is_append_time:
        stamp_max_timestamp(ready, 0, now_ms, append_time=True)
        header = parse_header(ready)
    elif facts is not None and not facts.is_header_true:
        stamp_max_timestamp(ready, 0, facts.max_timestamp, append_time=False)
        header = parse_header(ready)
    if rules.compression is not None and rules.compression != header.compression:
        ready = recompressed(ready, rules.compression, rules.decompressed_limit)
        header = parse_header(ready)
        if header.size > rules.max_message_bytes:
            raise MalformedBatchError(
                0,
                f"{header.size} bytes in the topic's codec, {rules.max_message_bytes} are allowed",
                ErrorCode.MESSAGE_TOO_LARGE,
            )
    return Prepared(ready, header)


def _writable(data: Bytes) -> bytearray | memoryview:
    if isinstance(data, bytearray):
        return data
    if isinstance(data, memoryview) and not data.readonly:
        return data
    return bytearray(data)


def recompressed(data: Bytes, codec: int, limit: int) -> bytearray:
    """The same batch in another codec; its records may take up to `limit` bytes."""
    batch = Batch(data)
    body = decompress(batch.header.compression, batch.body, limit, HEADER_BYTES)
    packed = compress(codec, bytes(body))
    changed = bytearray(batch.view[:HEADER_BYTES])
    changed += packed
    attributes = batch.header.attributes & ~COMPRESSION_MASK | codec
    _LENGTH.pack_into(changed, LENGTH_END - 4, len(changed) - LENGTH_END)
    _ATTRIBUTES.pack_into(changed, ATTRIBUTES_POSITION, attributes)
    _CRC.pack_into(changed, CRC_POSITION, crc32c(memoryview(changed)[ATTRIBUTES_POSITION:]))
    return changed
