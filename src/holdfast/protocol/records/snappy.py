"""Snappy in Kafka: one raw block, or the framing of snappy-java.

Java's clients (and most others) write snappy-java's own framing: a magic of 8 bytes, two versions,
then blocks of up to 32 KiB, each after its compressed length. librdkafka writes one raw block. We
read both, and write the framed form, because every client reads it.
"""

from __future__ import annotations

import struct
from typing import Final

import cramjam

from holdfast.protocol.records.errors import ExpansionError

JAVA_MAGIC: Final = b"\x82SNAPPY\x00"
JAVA_HEADER: Final = JAVA_MAGIC + struct.pack(">ii", 1, 1)
BLOCK_BYTES: Final = 32 * 1024
_BLOCK_LENGTH = struct.Struct(">i")


def compress_java(data: bytes) -> bytes:
    """The framing of snappy-java."""
    out = [JAVA_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + BLOCK_BYTES]))
        out.append(_BLOCK_LENGTH.pack(len(block)))
        out.append(block)
    return b"".join(out)


def expand(data: memoryview, limit: int) -> bytes:
    """Either form; at most `limit` bytes."""
    if bytes(data[: len(JAVA_MAGIC)]) != JAVA_MAGIC:
        return _expand_block(data, limit, limit)
    if len(data) < len(JAVA_HEADER):
        raise ExpansionError("truncated in the Java header")
    pieces: list[bytes] = []
    position, size = len(JAVA_HEADER), 0
    # At most one round for every 4 bytes: each block has its length in front.
    while position < len(data):
        if position + 4 > len(data):
            raise ExpansionError("truncated in the length of a block")
        length = _BLOCK_LENGTH.unpack_from(data, position)[0]
        position += 4
        if not 0 <= length <= len(data) - position:
            raise ExpansionError(f"a block of {length} bytes, {len(data) - position} are left")
        piece = _expand_block(data[position : position + length], limit - size, limit)
        size += len(piece)
        pieces.append(piece)
        position += length
    return b"".join(pieces)


def _expand_block(block: memoryview, room: int, limit: int) -> bytes:
    try:
        # The block starts with its full length. The decoder allocates that much, and then holds
        # the block to it.
        if cramjam.snappy.decompress_raw_len(block) > room:
            raise ExpansionError.too_large(limit)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise ExpansionError(str(error)) from error
