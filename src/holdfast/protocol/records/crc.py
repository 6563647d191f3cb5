"""CRC-32C (Castagnoli), the checksum of record batches, computed by google-crc32c in hardware."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import google_crc32c
import zstandard

PIECE_BYTES = 1 << 16
"""The package accepts nothing but bytes, so a view must be copied. In pieces the copy stays in the
processor's cache, and a batch of a megabyte does not cost a megabyte."""

_extend: Callable[[int, Any], int] = google_crc32c.extend
_value: Callable[[Any], int] = google_crc32c.value
_HAS_SEGMENTS = zstandard.backend == "cext"


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """The checksum of all of it; a bytes object is not copied."""
    if type(data) is bytes:
        return _extend(0, data)
    if len(data) <= PIECE_BYTES:
        return _extend(0, bytes(data))
    crc = 0
    view = memoryview(data)
    for start in range(0, len(view), PIECE_BYTES):
        crc = _extend(crc, bytes(view[start : start + PIECE_BYTES]))
    return crc


def crc32c_parts(data: bytes | memoryview, spans: array[int] | memoryview) -> list[int]:
    """The checksums of parts of a buffer; `spans` holds starts and lengths in turn, 64 bits each.

    Recovery sums whole files this way, and copying each batch would be a third of its work.
    zstandard has the one view of bytes that google-crc32c takes without a copy: it refuses views
    that have to be released, such as memoryview.
    """
    parts: Any
    if _HAS_SEGMENTS and spans:
        parts = zstandard.BufferWithSegments(data, memoryview(spans))
    else:
        pairs = zip(spans[::2], spans[1::2], strict=True)
        parts = (bytes(data[start : start + length]) for start, length in pairs)
    return list(map(_value, parts))


def crc32c_in_place(array: Any) -> int:
    """The checksum of a numpy array of bytes, which the package reads without a copy."""
    return _extend(0, array)
