"""CRC-32C (Castagnoli), the checksum of record batches.

google-crc32c does it in hardware. Without the package (it comes with the extra `compression`) a
table does, some thousand times slower: good enough to read a file, not to run a broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PIECE_BYTES = 1 << 16
"""The package accepts nothing but bytes, so a view must be copied. In pieces the copy stays in the
processor's cache, and a batch of a megabyte does not cost a megabyte."""

_POLYNOMIAL = 0x82F63B78


def _table() -> tuple[int, ...]:
    rows = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        rows.append(value)
    return tuple(rows)


def extend_slowly(crc: int, data: bytes) -> int:
    """The table method: what `extend` does where the package is missing."""
    crc ^= 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


_TABLE = _table()
_extend: Callable[[int, bytes], int] = extend_slowly

try:
    import google_crc32c
except ImportError:
    pass
else:
    _extend = google_crc32c.extend


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


def crc32c_in_place(array: Any) -> int:
    """The checksum of a numpy array of bytes, which the package reads where it lies."""
    return _extend(0, array if _extend is not extend_slowly else array.tobytes())
