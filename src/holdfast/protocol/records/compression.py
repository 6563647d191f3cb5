"""The five codecs of record batches: none, gzip, snappy, lz4, zstd.

Decompression is bounded: it never returns more than its limit, and uses at most a small multiple of
the limit as memory, whatever the compressed bytes claim. A megabyte can claim to hold a terabyte;
the claim is checked before any memory is allocated.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Final

import lz4.frame
import zstandard

from holdfast.model import ErrorCode
from holdfast.protocol.records import snappy
from holdfast.protocol.records.errors import ExpansionError, MalformedBatchError

GZIP_WINDOW: Final = 31
"""zlib's code for a window of 32 KiB in a gzip wrapper."""
PIECE_BYTES: Final = 1 << 20
"""Output is read in pieces, so that a small batch under a large limit needs little memory."""
ZSTD_MOST_WINDOW: Final = 1 << 27
"""What Java's zstd takes, and what its level 22 asks for. A frame may ask for two gigabytes. The
window is reserved, but its memory is touched only as far as output fills it, so the limit holds."""
ZSTD_LEVEL: Final = 3


class Compression(IntEnum):
    """The codec's number in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: int, data: bytes) -> bytes:
    """Compress as Kafka's own clients do at their default level."""
    match codec:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            worker = zlib.compressobj(wbits=GZIP_WINDOW)
            return worker.compress(data) + worker.flush()
        case Compression.SNAPPY:
            return snappy.compress_java(data)
        case Compression.LZ4:
            # Java refuses blocks that refer to the one before them (KIP-57).
            packed: bytes = lz4.frame.compress(data, block_linked=False)
            return packed
        case Compression.ZSTD:
            return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(data)
        case _:
            raise ExpansionError(f"no codec {codec}", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


def decompress(codec: int, data: memoryview, limit: int, position: int = 0) -> bytes | memoryview:
    """The records inside; more than `limit` bytes of them are refused with MESSAGE_TOO_LARGE.

    `position` is where `data` starts, for the error. Uncompressed data comes back as it is.
    """
    if codec == Compression.NONE:
        return data
    expand = _EXPANDERS.get(codec)
    if expand is None:
        raise MalformedBatchError(
            position, f"no codec has the number {codec}", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        )
    try:
        return expand(data, limit)
    except ExpansionError as error:
        name = Compression(codec).name.lower()
        raise MalformedBatchError(position, f"{name}: {error}", error.error_code) from error


def _expand_gzip(data: memoryview, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    rest: bytes | memoryview = data
    # At most one round per member; each takes at least the 18 bytes of an empty one.
    while True:
        worker = zlib.decompressobj(wbits=GZIP_WINDOW)
        try:
            # zlib doubles its buffer as it goes, up to the length allowed: nothing is set aside.
            piece = worker.decompress(rest, limit - size + 1)
        except zlib.error as error:
            raise ExpansionError(str(error)) from error
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise ExpansionError.too_large(limit)
        if not worker.eof:
            raise ExpansionError("truncated")
        rest = worker.unused_data
        if not rest:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _expand_lz4(data: memoryview, limit: int) -> bytes:
    worker = lz4.frame.LZ4FrameDecompressor()
    pieces: list[bytes] = []
    size = 0
    source: bytes | memoryview = data
    # At most limit / piece + 1 rounds: each that yields nothing ends the loop.
    while not worker.eof:
        most = min(PIECE_BYTES, limit - size + 1)
        try:
            piece: bytes = worker.decompress(source, max_length=most)
        except (RuntimeError, EOFError, ValueError) as error:
            raise ExpansionError(str(error)) from error
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise ExpansionError.too_large(limit)
        if not piece and not worker.eof:
            raise ExpansionError("truncated")
        source = b""
    if worker.unused_data:
        raise ExpansionError("bytes after the end of the frame")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _expand_zstd(data: memoryview, limit: int) -> bytes:
    unknown = (zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR)
    try:
        frame = zstandard.get_frame_parameters(data)
        if frame.content_size not in unknown and frame.content_size > limit:
            raise ExpansionError.too_large(limit)
        worker = zstandard.ZstdDecompressor(max_window_size=ZSTD_MOST_WINDOW)
        if frame.content_size not in unknown:
            return worker.decompress(data, allow_extra_data=False)
        return _expand_sizeless_zstd(worker, data, limit)
    except zstandard.ZstdError as error:
        raise ExpansionError(str(error)) from error


def _expand_sizeless_zstd(
    worker: zstandard.ZstdDecompressor, data: memoryview, limit: int
) -> bytes:
    """A frame without its content size, as Java writes it.

    The package reports a truncated frame and one that exceeds the output buffer in the same way, so
    this tries a small buffer, then the full limit, and at last counts the output piece by piece.
    """
    small = min(limit, max(PIECE_BYTES, 16 * len(data)))
    for room in (small, limit):
        try:
            return worker.decompress(data, max_output_size=room, allow_extra_data=False)
        except zstandard.ZstdError:
            continue
    size = 0
    with worker.stream_reader(data) as reader:
        while piece := reader.read(PIECE_BYTES):
            size += len(piece)
            if size > limit:
                raise ExpansionError.too_large(limit)
    raise ExpansionError("truncated, or bytes after the end of the frame")


_EXPANDERS: dict[int, Callable[[memoryview, int], bytes]] = {
    Compression.GZIP: _expand_gzip,
    Compression.SNAPPY: snappy.expand,
    Compression.LZ4: _expand_lz4,
    Compression.ZSTD: _expand_zstd,
}
