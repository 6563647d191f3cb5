"""Unsigned varints: seven bits per byte, the lowest first; the high bit means "more follows".

Flexible versions use them for lengths, tags and counts. The signed varints of records are in
`records.varints`. A reader also returns the position after the number.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.protocol.codec.types import Payload

UINT32_BYTES = 5
"""A longer unsigned varint is refused: no length or tag needs it, and its end could be far away."""


def encode_unsigned(value: int) -> bytes:
    """At most five bytes for the 32-bit lengths of messages; any size of number is accepted."""
    if value < 0:
        raise ValueError(f"{value} is negative; an unsigned varint cannot hold it")
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_unsigned(buffer: Payload, position: int) -> tuple[int, int]:
    """The number and the position after it. IndexError past the end, ValueError if too long."""
    value = 0
    for shift in range(0, 7 * UINT32_BYTES, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError(f"a varint of more than {UINT32_BYTES} bytes")


class Kept(dict[int, bytes]):
    """A table that fills itself and stays small: a look-up is several times cheaper than a call."""

    def __init__(self, make: Callable[[int], bytes], limit: int = 1024) -> None:
        super().__init__()
        self._make = make
        self._limit = limit

    def __missing__(self, key: int) -> bytes:
        """Only small keys are kept: large ones are rare, and a peer could choose them."""
        made = self._make(key)
        if key < self._limit:
            self[key] = made
        return made


UNSIGNED = Kept(encode_unsigned)
"""The encoding of a length, by its value."""
