"""The newest batches of a leader's log, in memory until its followers have them.

A follower asks for exactly what was appended last, so the leader sends these batches as the
producer sent them, without reading an index or a file. The cache is trimmed to what is not
committed; everything else is read from the log.

It is bounded by bytes, for one partition and for all of a broker's partitions together. A batch is
a part of its request's frame and keeps all of it in memory, so a batch that is the smaller part of
its frame is copied, and any other counts with the size of the frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sized
from typing import Final, NamedTuple, cast

from holdfast.protocol import Payload

LARGEST_TAIL: Final = 4 * 1024 * 1024
"""Bytes of one partition."""
ALL_TAILS: Final = 256 * 1024 * 1024
"""Bytes of all partitions of a broker."""


class _Held(NamedTuple):
    base_offset: int
    end_offset: int
    data: memoryview
    memory_bytes: int
    """Bytes that stay in memory for it."""


class AppendCacheMemory:
    """The memory of all tails of a broker."""

    __slots__ = ("bytes", "limit")

    def __init__(self, limit: int = ALL_TAILS) -> None:
        self.limit = limit
        self.bytes = 0


class AppendCache:
    """Batches in the order of their offsets, without a gap."""

    __slots__ = ("_batches", "_bytes", "_memory")

    def __init__(self, memory: AppendCacheMemory) -> None:
        self._batches: deque[_Held] = deque()
        self._bytes = 0
        self._memory = memory

    def __bool__(self) -> bool:
        return bool(self._batches)

    def add(self, base_offset: int, end_offset: int, data: memoryview) -> None:
        """A batch has been written after the others."""
        size, memory = len(cast("Sized", data.obj)), self._memory
        if 2 * len(data) < size:
            size, data = len(data), memoryview(bytes(data))
        self._batches.append(_Held(base_offset, end_offset, data, size))
        self._bytes += size
        memory.bytes += size
        # Ends with the last batch at the latest.
        while self._bytes > LARGEST_TAIL or (self._batches and memory.bytes > memory.limit):
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        size = self._batches.popleft().memory_bytes
        self._bytes -= size
        self._memory.bytes -= size

    def trim(self, high_watermark: int) -> None:
        """Remove committed batches: no follower waits for them."""
        batches = self._batches
        while batches and batches[0].end_offset <= high_watermark:
            self._drop_oldest()

    def clear(self) -> None:
        """The log was truncated, or another broker leads."""
        self._batches.clear()
        self._memory.bytes -= self._bytes
        self._bytes = 0

    def read(self, offset: int, max_bytes: int, upto: int) -> Payload | None:
        """Whole batches from exactly this offset, at least one; None if the log must be read."""
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
