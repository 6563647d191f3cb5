"""Frames: every message is preceded by its length, four bytes, big-endian."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Packer
from typing import Final

from holdfast.protocol.codec.types import Payload
from holdfast.protocol.errors import MalformedMessage

_LENGTH: Final = Packer(">i")


def framed(parts: Sequence[Payload]) -> list[Payload]:
    """The pieces of a message with their common length in front."""
    return [_LENGTH.pack(sum(map(len, parts))), *parts]


def frame_length(buffer: Payload, position: int, limit: int) -> int | None:
    """The length of the message that begins here, or None while the length is incomplete.

    A length that is negative or above the limit is refused before the broker waits for, or
    allocates, that many bytes (`socket.request.max.bytes`).
    """
    if len(buffer) - position < _LENGTH.size:
        return None
    length: int = _LENGTH.unpack_from(buffer, position)[0]
    if not 0 <= length <= limit:
        reason = f"a length of {length}; 0 to {limit} is allowed"
        raise MalformedMessage("frame", 0, "length", position, reason)
    return length


def split_frames(buffer: Payload, limit: int) -> tuple[list[memoryview], int]:
    """The complete messages, as views of the buffer, and how many bytes they take."""
    view = memoryview(buffer)
    frames: list[memoryview] = []
    position = 0
    while (length := frame_length(view, position, limit)) is not None:
        end = position + _LENGTH.size + length
        if end > len(view):
            break
        frames.append(view[position + _LENGTH.size : end])
        position = end
    return frames, position
