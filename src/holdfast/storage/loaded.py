"""A bound on the indexes of sealed segments that are in memory.

The index of a full segment takes some megabytes, and a reader that goes through a long log touches
every one of them. Those that were not used for the longest time are let go; they are on the disk.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

MOST_BYTES: Final = 64 << 20


class Loaded(Protocol):
    """A segment that may have its indexes in memory."""

    def index_bytes(self) -> int:
        """What they take."""

    def unload(self) -> None:
        """Let them go."""


class LoadedIndexes:
    """Who has indexes in memory, the last used last."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._sizes: OrderedDict[int, tuple[Loaded, int]] = OrderedDict()
        self.total = 0

    def used(self, segment: Loaded) -> None:
        """Loaded just now, or looked into."""
        known = self._sizes.pop(id(segment), None)
        size = segment.index_bytes() if known is None else known[1]
        self._sizes[id(segment)] = (segment, size)
        if known is not None:
            return
        self.total += size
        while self.total > self._most and len(self._sizes) > 1:  # Each round lets one go.
            _, (oldest, size) = self._sizes.popitem(last=False)
            self.total -= size
            oldest.unload()

    def forget(self, segment: Loaded) -> None:
        """Closed, or about to grow again: not to be unloaded."""
        known = self._sizes.pop(id(segment), None)
        self.total -= known[1] if known is not None else 0


INDEXES: Final = LoadedIndexes(MOST_BYTES)
"""One for the process: memory is what all logs share."""
