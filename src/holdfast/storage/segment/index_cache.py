"""A bound on the indexes of sealed segments that are in memory.

The index of a full segment takes some megabytes, and a reader that goes through a long log touches
every one of them. Those that were not used for the longest time are let go; they are on the disk.
A thread lets go only of what it has loaded itself: at a start several threads open logs.
"""

from __future__ import annotations

import threading
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
        self._sizes: OrderedDict[int, tuple[Loaded, int, int]] = OrderedDict()
        """With the thread that each belongs to."""
        self._lock = threading.Lock()
        self.total = 0

    def used(self, segment: Loaded) -> None:
        """Loaded just now, or looked into."""
        owner = threading.get_ident()
        with self._lock:
            known = self._sizes.pop(id(segment), None)
            size = segment.index_bytes() if known is None else known[1]
            self._sizes[id(segment)] = (segment, size, owner)
            if known is not None:
                return
            self.total += size
            excess = self._excess(segment, owner) if self.total > self._most else []
        for one in excess:
            one.unload()

    def _excess(self, newest: Loaded, owner: int) -> list[Loaded]:
        """What goes, oldest first, until the rest keeps to the bound."""
        found: list[Loaded] = []
        for key, (one, size, thread) in tuple(self._sizes.items()):
            if self.total <= self._most:
                break
            if thread == owner and one is not newest:
                del self._sizes[key]
                self.total -= size
                found.append(one)
        return found

    def forget(self, segment: Loaded) -> None:
        """Closed, or about to grow again: not to be unloaded."""
        with self._lock:
            known = self._sizes.pop(id(segment), None)
            self.total -= known[1] if known is not None else 0


INDEXES: Final = LoadedIndexes(MOST_BYTES)
"""One for the process: memory is what all logs share."""
