"""What a log still owes the disk besides the bytes of its segments: names, and producer snapshots.

A roll flushes nothing. The producer snapshot of a roll is kept in memory until everything below its
offset has been flushed, and only then gets a file. So the *name* of a snapshot is a proof: what
lies below its offset is complete. Recovery of a compacted log depends on it. Gaps are normal in
such a log, also between the end of one segment and the start of the next, and a power failure
that took the end of a segment leaves the same picture. A new segment begins exactly where the one
before it ends; the cleaner, which is the only one to widen that, works below the recovery point,
where snapshots have their files, and flushes the directory before it removes anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.storage.disk import Disk
from holdfast.storage.producers.producer_snapshot import (
    encode_snapshot,
    snapshot_path,
    write_snapshot,
)
from holdfast.storage.producers.producer_state import ProducerEntry
from holdfast.storage.producers.replay import snapshot_offsets


class Names:
    """Whether the names in a log's directory are durable.

    Counted, because names may change while another thread flushes the directory.
    """

    __slots__ = ("_durable", "changes")

    def __init__(self) -> None:
        self.changes = 0
        self._durable = 0

    @property
    def are_unflushed(self) -> bool:
        """Whether the next flush has to include the directory."""
        return self.changes > self._durable

    def changed(self) -> None:
        """Files came or went."""
        self.changes += 1

    def flushed(self, changes: int) -> None:
        """The directory was flushed after so many changes."""
        self._durable = max(self._durable, changes)


class Snapshots:
    """A log's producer snapshots: in files, or waiting for the flush of everything below them."""

    __slots__ = ("_contents", "_directory", "_disk")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._contents: dict[int, bytes] = {}

    def add(self, offset: int, entries: Iterable[ProducerEntry]) -> None:
        """The state of the producers now, at the end of the log. Waits."""
        self._contents[offset] = encode_snapshot(entries)

    def write(self, upto: int) -> bool:
        """Everything below `upto` is on the disk; whether any file was written."""
        due = [offset for offset in self._contents if offset <= upto]
        for offset in due:
            write_snapshot(self._disk, self._directory, offset, self._contents.pop(offset))
        return bool(due)

    def drop_above(self, offset: int) -> None:
        """The log has been truncated to there."""
        self._contents = {at: one for at, one in self._contents.items() if at <= offset}
        for at in snapshot_offsets(self._disk, self._directory):
            if at > offset:
                self.drop(at)

    def drop(self, offset: int) -> None:
        """The segment that begins there has left the log."""
        self._contents.pop(offset, None)
        path = snapshot_path(self._directory, offset)
        if self._disk.exists(path):
            self._disk.remove(path)
