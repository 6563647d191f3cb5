"""The newest batches of a leader's log, in memory until its followers have them.

A follower asks for exactly what was appended last, so its batches are answered as they came from
the producer, without a look into an index or a file. Bounded by bytes, and trimmed to what is not
committed yet: for everything else there is the log.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from holdfast.protocol import Payload

LARGEST_TAIL: Final = 4 * 1024 * 1024


class _Held(NamedTuple):
    base_offset: int
    end_offset: int
    data: memoryview


class Tail:
    """Batches in the order of their offsets, without a gap."""

    __slots__ = ("_batches", "_bytes")

    def __init__(self) -> None:
        self._batches: deque[_Held] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._batches)

    def add(self, base_offset: int, end_offset: int, data: memoryview) -> None:
        """A batch has been written behind the others."""
        self._batches.append(_Held(base_offset, end_offset, data))
        self._bytes += len(data)
        while self._bytes > LARGEST_TAIL:
            self._bytes -= len(self._batches.popleft().data)

    def trim(self, high_watermark: int) -> None:
        """Forget what is committed: nobody waits for it any more."""
        batches = self._batches
        while batches and batches[0].end_offset <= high_watermark:
            self._bytes -= len(batches.popleft().data)

    def clear(self) -> None:
        """The log was cut, or another leads."""
        self._batches.clear()
        self._bytes = 0

    def read(self, offset: int, max_bytes: int, upto: int) -> Payload | None:
        """Whole batches from exactly this offset on, one at least; None if the log must say."""
        batches = self._batches
        if not batches or offset < batches[0].base_offset:
            return None
        found: list[memoryview] = []
        size = 0
        for held in batches:
            if held.base_offset < offset:
                continue
            if not found and held.base_offset != offset:
                return None  # Inside a batch.
            if held.end_offset > upto or (found and size + len(held.data) > max_bytes):
                break
            found.append(held.data)
            size += len(held.data)
        if not found:
            return None
        return found[0] if len(found) == 1 else b"".join(found)
