"""One segment: a part of the log in one file, with its indexes beside it.

The last segment of a log is active: it grows, and its indexes are only in memory. The others are
sealed and never change; their indexes are on the disk and are read at the first lookup.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from holdfast.model import NO_TIMESTAMP, Offset
from holdfast.protocol.records import RecordBatchHeader
from holdfast.protocol.records.batch_header import LENGTH_END
from holdfast.storage.disk import Buffer, Disk, write_whole
from holdfast.storage.file_names import (
    LOG,
    OFFSET_INDEX,
    SEGMENT_KINDS,
    TIME_INDEX,
    TRANSACTION_INDEX,
)
from holdfast.storage.segment.batch_scan import walk_headers
from holdfast.storage.segment.index_cache import INDEXES
from holdfast.storage.segment.indexed_segment import (
    LARGEST_RELATIVE_OFFSET,
    NOTHING,
    IndexedSegment,
)
from holdfast.storage.segment.offset_and_time_index import TimeEntry
from holdfast.storage.segment.transaction_index import AbortedTransaction

__all__ = ["LARGEST_RELATIVE_OFFSET", "Segment"]


class Segment(IndexedSegment):
    """Batches from `base_offset` on."""

    __slots__ = ()

    @classmethod
    def create(
        cls, disk: Disk, directory: str, base_offset: int, interval_bytes: int, state: str = ""
    ) -> Segment:
        """Create an active segment. The caller flushes the directory before any acknowledgement."""
        segment = cls(disk, directory, base_offset, interval_bytes)
        segment.state = state
        for kind in SEGMENT_KINDS:
            if disk.exists(segment.path(kind)):
                disk.remove(segment.path(kind))
        segment._file = disk.open(segment.path(LOG), create=True)
        segment.start_empty()
        segment.is_dirty = True
        return segment

    def append(self, buffers: Sequence[Buffer], headers: Sequence[RecordBatchHeader]) -> None:
        """Write batches at the end, then index them. An OSError leaves the indexes unchanged."""
        file = self._file
        assert file is not None
        assert self._is_active
        position = file.size
        if not self.is_dirty:
            self.is_dirty, self.flushed_size = True, position
        file.append(buffers)
        for header in headers:
            self.note(position, header[1] + LENGTH_END, header[0] + header[6], header[8])
            position += header[1] + LENGTH_END

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Write immediately: aborts are rare, and readers need them."""
        path = self.path(TRANSACTION_INDEX)
        known = self.transactions()
        with closing(self.disk.open(path, create=not self.disk.exists(path))) as file:
            file.append([transaction.to_bytes()])
        known.append(transaction)

    def become_sealed(self) -> None:
        """Write the indexes to their files, from which they are read from now on."""
        self.times().maybe_append(*self._highest)
        self.rewrite(OFFSET_INDEX, self.index().to_bytes())
        self.rewrite(TIME_INDEX, self.times().to_bytes())
        self.is_dirty = True
        self._is_active = False
        INDEXES.used(self)

    def reserve_indexes(self, index_bytes: int) -> None:
        """Create index files of Kafka's size for an active segment, whose indexes are in memory.

        Kafka's tools expect these files. They contain zeros until the segment is sealed.
        """
        for kind, entry_bytes in ((OFFSET_INDEX, 8), (TIME_INDEX, 12)):
            path = self.path(kind)
            with closing(self.disk.open(path, create=not self.disk.exists(path))) as file:
                file.reserve(index_bytes // entry_bytes * entry_bytes)

    def kinds_to_flush(self) -> tuple[str, ...]:
        """The files to flush besides the log file; an active segment has no indexes on the disk."""
        kinds = (TRANSACTION_INDEX,) if self._is_active else SEGMENT_KINDS[1:]
        return tuple(kind for kind in kinds if self.disk.exists(self.path(kind)))

    def flush(self) -> None:
        """Everything in its files survives a power failure once this returns."""
        if not self.is_dirty:
            return
        self.file.flush()
        for kind in self.kinds_to_flush():
            with closing(self.disk.open(self.path(kind))) as file:
                file.flush()
        self.is_dirty, self.flushed_size = False, self.size

    def flushed_to(self, size: int) -> None:
        """Another handle has flushed the log file up to `size`."""
        self.file.flushed(size)
        self.flushed_size = size
        self.is_dirty = self.file.size > size or not self._is_active

    def activate(self) -> None:
        """Let a segment that was read from the disk grow again."""
        self.load_once()
        INDEXES.forget(self)
        self._is_active = True
        last = self.index().at_or_before(LARGEST_RELATIVE_OFFSET + self.base_offset)
        self._since_entry = self.size - (last.position if last is not None else 0)

    def truncate_to(self, offset: int) -> Offset:
        """Remove every batch with `offset` or a later one; returns the new end of the segment.

        A batch is never split, because its bytes would no longer be the leader's. The end is then
        lower than requested, as it is after a gap, and the follower fetches from there.
        """
        found = self.find(offset)
        if found is not None:
            self.is_dirty = True
            self.file.truncate(found.position)
            offset = min(offset, found.header.base_offset)
        self._keep_aborted_before(offset)
        self.rebuild_tail(offset)
        # Truncated bytes that come back after a power failure would be taken for records.
        self.file.flush()
        self.flushed_size = self.size
        # Not `offset`: if that is in a gap, the next segment would not begin at our end.
        return self.end_offset()

    def _keep_aborted_before(self, offset: int) -> None:
        kept = [one for one in self.transactions() if one.last_offset < offset]
        if len(kept) != len(self.transactions()):
            content = b"".join(one.to_bytes() for one in kept)
            write_whole(self.disk, self.path(TRANSACTION_INDEX), content)
            self._transactions = kept

    def rebuild_tail(self, offset: int) -> None:
        """Shorten the indexes after a truncation, and make the segment active again."""
        self.index().truncate_to(offset)
        self.times().truncate_to(offset)
        INDEXES.forget(self)
        self._is_active = True
        self._highest = self.times().last() or NOTHING
        self._noted = NO_TIMESTAMP
        last = self.index().at_or_before(offset)
        start = last.position if last is not None else 0
        if start == 0:
            self.first_timestamp = None
        self._since_entry = 0
        for position, header in walk_headers(self.file, start, self.size):
            if header.max_timestamp > self._highest.timestamp:
                self._highest = TimeEntry(header.max_timestamp, header.end_offset - 1)
            if position == 0:
                self.first_timestamp = header.max_timestamp
            self._since_entry += header.size
