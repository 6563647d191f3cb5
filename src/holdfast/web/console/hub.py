"""Merges updates: the newest value of each item, and the version at which it changed.

A reader remembers one version and asks for everything that changed since: however slow it is, it
gets each item once, with its newest value, and nothing is queued for it. Memory is bounded by the
number of items.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

MOST_REMOVED: Final = 5_000
"""Removals remembered. A reader that is older than the forgotten ones gets a full snapshot."""


class Update(NamedTuple):
    """What changed between two versions, or everything."""

    version: int
    is_full: bool
    items: dict[str, str]
    """Each value as JSON."""
    removed: list[str]

    @property
    def is_empty(self) -> bool:
        return not (self.is_full or self.items or self.removed)

    def to_json(self) -> str:
        items = ",".join(f"{json.dumps(key)}:{text}" for key, text in self.items.items())
        removed = json.dumps(self.removed)
        full = "true" if self.is_full else "false"
        return f'{{"full":{full},"items":{{{items}}},"removed":{removed}}}'


class Hub:
    """Items by key; any thread may write, any thread may read."""

    def __init__(self) -> None:
        self._items: dict[str, tuple[int, str]] = {}
        self._removed: dict[str, int] = {}
        self._forgotten = 0
        self._version = 0
        self._lock = threading.Lock()

    def put(self, items: Mapping[str, Any], prefixes: tuple[str, ...] = ()) -> None:
        """Store these items; items under the prefixes that are not among them are removed."""
        texts = {key: json.dumps(value, separators=(",", ":")) for key, value in items.items()}
        with self._lock:
            version = self._version + 1
            for key, text in texts.items():
                if key not in self._items or self._items[key][1] != text:
                    self._items[key] = (version, text)
                    self._removed.pop(key, None)
                    self._version = version
            for key in [one for one in self._items if one.startswith(prefixes)]:
                if key not in texts:
                    del self._items[key]
                    self._removed[key] = self._version = version
            while len(self._removed) > MOST_REMOVED:
                oldest = next(iter(self._removed))
                self._forgotten = max(self._forgotten, self._removed.pop(oldest))

    def since(self, version: int) -> Update:
        """The update from a version to the newest one. Version 0 is the empty page."""
        with self._lock:
            if version <= self._forgotten or version > self._version:
                everything = {key: text for key, (_, text) in self._items.items()}
                return Update(self._version, is_full=True, items=everything, removed=[])
            items = {key: text for key, (at, text) in self._items.items() if at > version}
            removed = [key for key, at in self._removed.items() if at > version]
            return Update(self._version, is_full=False, items=items, removed=removed)
