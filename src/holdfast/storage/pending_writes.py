"""The writes of a log that wait for a flush, apart from segments: names and producer snapshots.

A roll flushes nothing. The producer snapshot of a roll stays in memory until everything below its
offset has been flushed, and only then gets a file. So the *name* of a snapshot is a proof that
everything below its offset is complete. Recovery of a compacted log depends on it. Such a log has
gaps, also between the end of one segment and the start of the next, and a power failure that took
the end of a segment looks the same. A new segment begins exactly where the one before it ends. Only
the cleaner widens that gap; it works below the recovery point, where snapshots have their files,
and flushes the directory before it removes anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core import ProducerState
from holdfast.storage.disk import Disk
from holdfast.storage.file_names import COMPACTED
from holdfast.storage.producers.producer_snapshot import (
    encode_snapshot,
    snapshot_path,
    write_snapshot,
)
from holdfast.storage.producers.replay import snapshot_offsets


class Names:
    """Tracks whether the names in a log's directory are durable.

    It counts changes, because names may change while another thread flushes the directory.
    """

    __slots__ = ("_disk", "_durable", "_is_marked", "_mark", "changes")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._mark = f"{directory}/{COMPACTED}"
        self._is_marked = False
        self.changes = 0
        self._durable = 0

    @property
    def are_unflushed(self) -> bool:
        """Whether the next flush has to include the directory."""
        return self.changes > self._durable

    def changed(self) -> None:
        """Files were created, renamed or removed."""
        self.changes += 1

    def mark_compacted(self) -> bool:
        """Mark that offsets are missing in this log; True if it had no mark.

        Recovery then accepts a gap that it would take for damage in other logs. The mark is durable
        when the names are, so not later than the records after the gap.
        """
        if self._is_marked or self._disk.exists(self._mark):
            self._is_marked = True
            return False
        self._disk.open(self._mark, create=True).close()
        self._is_marked = True
        self.changed()
        return True

    def flushed(self, changes: int) -> None:
        """The directory was flushed after so many changes."""
        self._durable = max(self._durable, changes)


class Snapshots:
    """A log's producer snapshots: in files, or waiting for the flush of the records below them."""

    __slots__ = ("_contents", "_directory", "_disk")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._contents: dict[int, bytes] = {}

    def add(self, offset: int, states: Iterable[ProducerState]) -> None:
        """Keep the producers' state at the end of the log until it can be written."""
        self._contents[offset] = encode_snapshot(states)

    def write(self, upto: int) -> bool:
        """Write the snapshots up to `upto`, below which all is flushed; True if there were any."""
        due = [offset for offset in self._contents if offset <= upto]
        for offset in due:
            write_snapshot(self._disk, self._directory, offset, self._contents.pop(offset))
        return bool(due)

    def drop_above(self, offset: int) -> None:
        """Drop later snapshots: the log has been truncated to `offset`."""
        self._contents = {at: one for at, one in self._contents.items() if at <= offset}
        for at in snapshot_offsets(self._disk, self._directory):
            if at > offset:
                self.drop(at)

    def drop(self, offset: int) -> None:
        """Drop the snapshot of a segment that has left the log."""
        self._contents.pop(offset, None)
        path = snapshot_path(self._directory, offset)
        if self._disk.exists(path):
            self._disk.remove(path)
