"""A memory bound for the loaded indexes of sealed segments.

The index of a full segment takes some megabytes, and a reader of a long log uses every one of them.
The cache unloads the least recently used; they are on the disk. A thread unloads only indexes that
it has loaded itself, because several threads open logs at a start.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, Protocol

MOST_BYTES: Final = 64 << 20


class Loaded(Protocol):
    """A segment that may have its indexes in memory."""

    def index_bytes(self) -> int:
        """The memory of its indexes."""

    def unload(self) -> None:
        """Free its indexes."""


class LoadedIndexes:
    """The segments with indexes in memory, most recently used last."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._sizes: OrderedDict[int, tuple[Loaded, int, int]] = OrderedDict()
        """Segment, size and owning thread."""
        self._lock = threading.Lock()
        self.total = 0

    def used(self, segment: Loaded) -> None:
        """The segment has loaded or used its indexes."""
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
        """The segments to unload, oldest first, until the rest is within the bound."""
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
        """Do not unload this segment: it is closed, or grows again."""
        with self._lock:
            known = self._sizes.pop(id(segment), None)
            self.total -= known[1] if known is not None else 0


INDEXES: Final = LoadedIndexes(MOST_BYTES)
"""One per process, because all logs share its memory."""
