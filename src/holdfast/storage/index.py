"""The two sparse indexes of a segment: where an offset lies, and when a time was reached.

One entry for every `index.interval.bytes` of log. Both are kept in memory as plain arrays: of the
active segment the files are written when it is sealed, of the others they are read at the first
look-up. An index is a hint. A file that cannot be right is thrown away and built anew, and what it
answers is held against the batch it points to before anyone relies on it (`Segment`).
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from holdfast.storage.checkpoints import DamagedFileError

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
_TIME_ENTRY = struct.Struct(">qI")
_LOW = 0xFFFFFFFF
_LARGEST_RELATIVE = (1 << 31) - 1
NO_TIMESTAMP = -1


class OffsetEntry(NamedTuple):
    """The batch whose last offset is `offset` starts at `position`."""

    offset: int
    position: int


class OffsetIndex:
    """Last offsets of some batches, and where in the file they start."""

    __slots__ = ("_entries", "base_offset")

    _entries: array[int]
    """Relative offset in the upper half, position in the lower: sorted by both at once."""

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._entries = array("Q")

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, offset: int, position: int) -> None:
        """Offsets and positions rise."""
        self._entries.append((offset - self.base_offset) << 32 | position)

    def extend(self, entries: list[tuple[int, int]]) -> None:
        """Many at once."""
        base = self.base_offset
        self._entries.extend([(offset - base) << 32 | position for offset, position in entries])

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
        """Forget batches that hold this offset or a later one."""
        place = bisect_left(self._entries, max(0, offset - self.base_offset) << 32)
        del self._entries[place:]

    def entries(self) -> list[OffsetEntry]:
        """All of them."""
        return [self._entry(place) for place in range(len(self._entries))]

    def _entry(self, place: int) -> OffsetEntry:
        entry = self._entries[place]
        return OffsetEntry(self.base_offset + (entry >> 32), entry & _LOW)

    def to_bytes(self) -> bytes:
        """The file's content."""
        return _big_endian(self._entries).tobytes()

    @classmethod
    def from_bytes(cls, base_offset: int, content: bytes, path: str) -> OffsetIndex:
        """DamagedFileError unless entries are whole and rise."""
        if len(content) % OFFSET_ENTRY_BYTES:
            raise DamagedFileError(path, f"{len(content)} bytes are not whole entries")
        index = cls(base_offset)
        index._entries.frombytes(content)
        index._entries = _big_endian(index._entries)
        entries = index._entries.tolist()
        positions = [entry & _LOW for entry in entries]
        if entries != sorted(set(entries)) or positions != sorted(set(positions)):
            raise DamagedFileError(path, "entries do not rise")
        return index


def _position_of(entry: int) -> int:
    return entry & _LOW


def _big_endian(entries: array[int]) -> array[int]:
    if sys.byteorder == "big":
        return entries
    swapped = array("Q", entries)
    swapped.byteswap()
    return swapped


class TimeEntry(NamedTuple):
    """No record up to `offset` is later than `timestamp`, and the batch that ends there has it."""

    timestamp: int
    offset: int


class TimeIndex:
    """The highest timestamp so far, at some batches."""

    __slots__ = ("_offsets", "_timestamps", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("q")

    def __len__(self) -> int:
        return len(self._timestamps)

    def maybe_append(self, timestamp: int, offset: int) -> bool:
        """Add an entry if the highest timestamp has risen; say whether it has."""
        if timestamp < 0 or (self._timestamps and timestamp <= self._timestamps[-1]):
            return False
        self._timestamps.append(timestamp)
        self._offsets.append(offset)
        return True

    def last(self) -> TimeEntry | None:
        """The newest entry."""
        if not self._timestamps:
            return None
        return TimeEntry(self._timestamps[-1], self._offsets[-1])

    def before(self, timestamp: int) -> TimeEntry | None:
        """The last entry that is earlier: so are all records up to its offset."""
        place = bisect_left(self._timestamps, timestamp)
        return TimeEntry(self._timestamps[place - 1], self._offsets[place - 1]) if place else None

    def truncate_to(self, offset: int) -> None:
        """Forget entries at this offset or later."""
        place = bisect_left(self._offsets, offset)
        del self._timestamps[place:]
        del self._offsets[place:]

    def entries(self) -> list[TimeEntry]:
        """All of them."""
        pairs = zip(self._timestamps, self._offsets, strict=True)
        return [TimeEntry(timestamp, offset) for timestamp, offset in pairs]

    def to_bytes(self) -> bytes:
        """The file's content."""
        base = self.base_offset
        pack = _TIME_ENTRY.pack
        return b"".join(pack(timestamp, offset - base) for timestamp, offset in self.entries())

    @classmethod
    def from_bytes(cls, base_offset: int, content: bytes, path: str) -> TimeIndex:
        """DamagedFileError unless entries are whole and rise."""
        if len(content) % TIME_ENTRY_BYTES:
            raise DamagedFileError(path, f"{len(content)} bytes are not whole entries")
        index = cls(base_offset)
        before = TimeEntry(NO_TIMESTAMP, base_offset - 1)
        for timestamp, relative in _TIME_ENTRY.iter_unpack(content):
            entry = TimeEntry(timestamp, base_offset + relative)
            if timestamp <= before.timestamp or entry.offset <= before.offset:
                raise DamagedFileError(path, f"entries do not rise: {before} then {entry}")
            if relative > _LARGEST_RELATIVE:
                raise DamagedFileError(path, f"no offset: {relative}")
            index.maybe_append(timestamp, entry.offset)
            before = entry
        return index
