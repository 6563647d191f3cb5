"""Zigzag varints of record batches: seven bits per byte, lowest first, sign in bit 0.

Decoding is strict: a varint has at most 5 bytes and 32 bits, a varlong 10 bytes and 64 bits, and
neither goes beyond `end`. Java drops surplus bits instead; no writer sends any, and two readers
must not read different numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.model import ErrorCode
from holdfast.protocol.records.errors import MalformedBatchError

VARINT_BYTES = 5
VARLONG_BYTES = 10
SMALL = tuple((byte >> 1) ^ -(byte & 1) for byte in range(0x80))
"""The number that a single byte is, for readers that cannot afford a call."""


def _encode(value: int) -> bytes:
    rest = value << 1 if value >= 0 else (~value << 1) | 1
    out = bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


class _Common(dict[int, bytes]):
    """Lengths and deltas are small numbers; a look-up is several times faster than the loop."""

    def __missing__(self, value: int) -> bytes:
        encoded = _encode(value)
        if -1 <= value < 4096:
            self[value] = encoded
        return encoded


_COMMON = _Common()


def encode_varint(value: int) -> bytes:
    """Any integer of 32 or 64 bits; the caller chooses the size of the field."""
    return _COMMON[value]


Decode = Callable[[memoryview, int, int, str], tuple[int, int]]
"""From the data, a position, an end and a field's name to a number and the position after it.
Nothing at or above the end is read."""


def _decoder(most_bytes: int, bits: int) -> Decode:
    def decode(data: memoryview, position: int, end: int, field: str) -> tuple[int, int]:
        if position + 1 < end:
            first = data[position]
            if first < 0x80:
                return SMALL[first], position + 1
            second = data[position + 1]
            if second < 0x80:
                value = first & 0x7F | second << 7
                return (value >> 1) ^ -(value & 1), position + 2
        return _decode(data, position, min(end, position + most_bytes), bits, field)

    return decode


decode_varint = _decoder(VARINT_BYTES, 32)
decode_varlong = _decoder(VARLONG_BYTES, 64)


def _decode(data: memoryview, start: int, end: int, bits: int, field: str) -> tuple[int, int]:
    value = shift = 0
    for position in range(start, end):  # At most 10 bytes: the caller has limited `end`.
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                break
            return (value >> 1) ^ -(value & 1), position + 1
        shift += 7
    raise MalformedBatchError(
        start, f"{field}: not a varint of {bits} bits within its space", ErrorCode.INVALID_RECORD
    )
