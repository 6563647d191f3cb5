"""The two sparse indexes of a segment: positions by offset, and offsets by time.

Each has one entry per `index.interval.bytes` of log. Both are plain arrays in memory. The files of
the active segment are written when it is sealed; those of other segments are read at the first
lookup. An index is a hint: an invalid file is discarded and rebuilt, and `Segment` checks every
answer against the batch it points to.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import islice
from operator import lt
from typing import NamedTuple

from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
_LOW = 0xFFFFFFFF
_LARGEST_RELATIVE = (1 << 31) - 1
_HIGH_HALF = 1 if sys.byteorder == "little" else 0
"""Which of the two halves of an int64 in memory is the upper one."""

assert array("I").itemsize == 4


class OffsetEntry(NamedTuple):
    """The batch whose last offset is `offset` starts at `position`."""

    offset: int
    position: int


class OffsetIndex:
    """Last offsets of some batches, and their positions in the file."""

    __slots__ = ("_entries", "base_offset")

    _entries: array[int]
    """Relative offset in the upper half, position in the lower: sorted by both."""

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._entries = array("Q")

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, offset: int, position: int) -> None:
        """Add an entry. Offsets and positions must rise."""
        self._entries.append((offset - self.base_offset) << 32 | position)

    def extend(self, entries: list[int]) -> None:
        """Add many entries, each with its offset in the upper half, its position in the lower."""
        first = self.base_offset << 32
        self._entries.extend([entry - first for entry in entries])

    def at_or_before(self, offset: int) -> OffsetEntry | None:
        """The last entry whose offset is not above this one."""
        relative = offset - self.base_offset
        place = bisect_right(self._entries, relative << 32 | _LOW) if relative >= 0 else 0
        return self._entry(place - 1) if place else None

    def last_start(self, position: int) -> OffsetEntry | None:
        """The last known start of a batch at or before a position."""
        place = bisect_right(self._entries, position, key=_position_of)
        return self._entry(place - 1) if place else None

    def truncate_to(self, offset: int) -> None:
        """Remove entries of batches with this offset or a later one."""
        place = bisect_left(self._entries, max(0, offset - self.base_offset) << 32)
        del self._entries[place:]

    def entries(self) -> list[OffsetEntry]:
        """All entries."""
        return [self._entry(place) for place in range(len(self._entries))]

    def _entry(self, place: int) -> OffsetEntry:
        entry = self._entries[place]
        return OffsetEntry(self.base_offset + (entry >> 32), entry & _LOW)

    def to_bytes(self) -> bytes:
        """The file's content."""
        return _big_endian(self._entries).tobytes()

    @classmethod
    def from_bytes(cls, base_offset: int, content: bytes, path: str) -> OffsetIndex:
        """Raises DamagedFileError unless entries are whole and rise."""
        if len(content) % OFFSET_ENTRY_BYTES:
            raise DamagedFileError(path, f"{len(content)} bytes are not whole entries")
        index = cls(base_offset)
        index._entries.frombytes(content)
        entries = index._entries = _big_endian(index._entries)
        if not _rise(entries) or not _rise([entry & _LOW for entry in entries]):
            raise DamagedFileError(path, "entries do not rise")
        return index


def _rise(numbers: Sequence[int]) -> bool:
    return all(map(lt, numbers, islice(numbers, 1, None)))


def _position_of(entry: int) -> int:
    return entry & _LOW


def _big_endian(entries: array[int]) -> array[int]:
    if sys.byteorder == "big":
        return entries
    swapped = array(entries.typecode, entries)
    swapped.byteswap()
    return swapped


class TimeEntry(NamedTuple):
    """No record up to `offset` is later than `timestamp`, and the batch that ends there has it."""

    timestamp: int
    offset: int


class TimeIndex:
    """The highest timestamp so far, at some batches."""

    __slots__ = ("_offsets", "_timestamps", "base_offset")

    _offsets: array[int]
    """Relative to the base offset."""

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("I")

    def __len__(self) -> int:
        return len(self._timestamps)

    def maybe_append(self, timestamp: int, offset: int) -> bool:
        """Add an entry if the highest timestamp has risen; returns whether it has."""
        if timestamp < 0 or (self._timestamps and timestamp <= self._timestamps[-1]):
            return False
        self._timestamps.append(timestamp)
        self._offsets.append(offset - self.base_offset)
        return True

    def last(self) -> TimeEntry | None:
        """The newest entry."""
        return self._entry(len(self) - 1) if self._timestamps else None

    def before(self, timestamp: int) -> TimeEntry | None:
        """The last entry that is earlier; all records up to its offset are earlier, too."""
        place = bisect_left(self._timestamps, timestamp)
        return self._entry(place - 1) if place else None

    def truncate_to(self, offset: int) -> None:
        """Remove entries at this offset or later."""
        place = bisect_left(self._offsets, offset - self.base_offset)
        del self._timestamps[place:]
        del self._offsets[place:]

    def entries(self) -> list[TimeEntry]:
        """All entries."""
        return [self._entry(place) for place in range(len(self))]

    def _entry(self, place: int) -> TimeEntry:
        return TimeEntry(self._timestamps[place], self.base_offset + self._offsets[place])

    def to_bytes(self) -> bytes:
        """The file's content: an int64 and an int32 per entry.

        A segment may have 250,000 entries, so this copies halves of words, without a loop.
        """
        halves = array("I")
        halves.frombytes(self._timestamps.tobytes())
        words = array("I", bytes(TIME_ENTRY_BYTES * len(self)))
        words[0::3] = halves[_HIGH_HALF::2]
        words[1::3] = halves[1 - _HIGH_HALF :: 2]
        words[2::3] = self._offsets
        return _big_endian(words).tobytes()

    @classmethod
    def from_bytes(cls, base_offset: int, content: bytes, path: str) -> TimeIndex:
        """Raises DamagedFileError unless entries are whole and rise."""
        if len(content) % TIME_ENTRY_BYTES:
            raise DamagedFileError(path, f"{len(content)} bytes are not whole entries")
        words = _big_endian(array("I", content))
        halves = array("I", bytes(8 * (len(words) // 3)))
        halves[_HIGH_HALF::2] = words[0::3]
        halves[1 - _HIGH_HALF :: 2] = words[1::3]
        index = cls(base_offset)
        index._timestamps.frombytes(halves.tobytes())
        index._offsets = words[2::3]
        if len(index) and (index._timestamps[0] < 0 or index._offsets[-1] > _LARGEST_RELATIVE):
            raise DamagedFileError(path, "an invalid timestamp or offset")
        if not _rise(index._timestamps) or not _rise(index._offsets):
            raise DamagedFileError(path, "entries do not rise")
        return index
