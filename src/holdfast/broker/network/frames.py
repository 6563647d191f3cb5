"""Splits a byte stream into frames, with as few copies as the frames allow.

Bytes arrive in one scratch buffer that all connections of a process share: a read is over before
the next one begins, so ten thousand idle connections cost no buffers. A frame that arrived whole is
copied out of it, because its record batches outlive the read and are changed in place. Any other
frame gets its own buffer, and the rest of it is received there directly.

A length is untrusted: the buffer grows with the bytes that actually arrived.
"""

from __future__ import annotations

from struct import Struct as Packer
from typing import Final

from holdfast.protocol import MalformedMessage

SCRATCH_BYTES: Final = 128 * 1024
FIRST_BYTES: Final = 4096
"""The first buffer of a frame, whatever length it claims."""
TRUST: Final = 8
"""The buffer then grows to this many times the received bytes: a megabyte in full reads is copied
at most once, and an incomplete frame never holds more than this many times its bytes."""

_LENGTH: Final = Packer(">i")
_SCRATCH: Final = memoryview(bytearray(SCRATCH_BYTES))


class FrameReader:
    """One stream's unfinished frame."""

    __slots__ = ("_body", "_filled", "_head", "_length", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """Largest frame (socket.request.max.bytes)."""
        self._head = b""
        """The first bytes of an incomplete length."""
        self._body: bytearray | None = None
        self._filled = 0
        self._length = 0

    def buffer(self) -> memoryview:
        """The buffer for the next bytes."""
        body = self._body
        if body is None:
            return _SCRATCH
        if self._filled == len(body):
            grown = bytearray(min(self._length, 2 * len(body)))
            grown[: self._filled] = body
            self._body = body = grown
        return memoryview(body)[self._filled :]

    def received(self, size: int) -> list[bytearray]:
        """The frames that are complete now; MalformedMessage for an invalid length."""
        body = self._body
        if body is not None:
            self._filled += size
            if self._filled < self._length:
                return []
            self._body = None
            return [body]
        if self._head:
            return self._split(memoryview(self._head + _SCRATCH[:size].tobytes()))
        return self._split(_SCRATCH[:size])

    def _split(self, data: memoryview) -> list[bytearray]:
        frames: list[bytearray] = []
        position, end = 0, len(data)
        self._head = b""
        while end - position >= 4:
            length: int = _LENGTH.unpack_from(data, position)[0]
            if not 0 <= length <= self.limit:
                reason = f"a length of {length}; 0 to {self.limit} is allowed"
                raise MalformedMessage("frame", 0, "length", 0, reason)
            position += 4
            if position + length > end:
                self._begin(length, data[position:])
                return frames
            frames.append(bytearray(data[position : position + length]))
            position += length
        self._head = bytes(data[position:])
        return frames

    def _begin(self, length: int, start: memoryview) -> None:
        self._length = length
        self._filled = len(start)
        self._body = bytearray(min(length, max(FIRST_BYTES, TRUST * self._filled)))
        self._body[: self._filled] = start
