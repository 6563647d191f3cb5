"""Finds batches in a segment: by offset, by position, by time.

An index file may be stale or damaged. So a lookup uses an entry only if the batch it points to ends
at exactly the entry's offset; otherwise the index is rebuilt from the batches. The indexes of
sealed segments are loaded when needed, and unloaded when memory is short (`index_cache`).
"""

from __future__ import annotations

from holdfast.model import NO_TIMESTAMP, Offset
from holdfast.protocol.records.batch_header import LENGTH_END
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.disk import Disk, read_whole, write_whole
from holdfast.storage.file_names import OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX
from holdfast.storage.segment.batch_scan import (
    BadBatchError,
    FoundHeader,
    Run,
    read_header,
    walk_headers,
)
from holdfast.storage.segment.index_cache import INDEXES
from holdfast.storage.segment.offset_and_time_index import (
    OffsetEntry,
    OffsetIndex,
    TimeEntry,
    TimeIndex,
)
from holdfast.storage.segment.segment_files import SegmentFiles, Slice
from holdfast.storage.segment.transaction_index import AbortedTransaction, decode_transactions

LARGEST_RELATIVE_OFFSET = (1 << 31) - 1
"""Indexes keep offsets relative to the base offset, in 31 bits."""
NOTHING = TimeEntry(NO_TIMESTAMP, -1)


class IndexedSegment(SegmentFiles):
    """A segment with its indexes, for readers."""

    __slots__ = (
        "_highest",
        "_index",
        "_is_active",
        "_noted",
        "_since_entry",
        "_times",
        "_transactions",
        "first_timestamp",
        "flushed_size",
        "interval_bytes",
        "is_dirty",
    )

    first_timestamp: int | None
    """The timestamp of the first batch, once known; the segment's age counts from it."""
    is_dirty: bool
    """Its files may have unflushed content."""
    flushed_size: int
    """While it is dirty: so many bytes of the log file are certainly flushed."""

    def __init__(self, disk: Disk, directory: str, base_offset: int, interval_bytes: int) -> None:
        super().__init__(disk, directory, base_offset)
        self.interval_bytes = interval_bytes
        self.is_dirty = False
        self.flushed_size = 0
        self.first_timestamp = None
        self._index: OffsetIndex | None = None
        self._times: TimeIndex | None = None
        self._transactions: list[AbortedTransaction] | None = None
        self._highest = NOTHING
        self._noted = NO_TIMESTAMP
        self._since_entry = 0
        self._is_active = False

    @property
    def is_active(self) -> bool:
        """Whether it may grow; its indexes are then in memory only."""
        return self._is_active

    @property
    def unflushed_bytes(self) -> int:
        """The bytes of the log file that a power failure could take."""
        return max(0, self.size - self.flushed_size) if self.is_dirty else 0

    def start_empty(self) -> None:
        """Make it active with empty indexes, for a new segment or for recovery."""
        INDEXES.forget(self)
        self._index = OffsetIndex(self.base_offset)
        self._times = TimeIndex(self.base_offset)
        self._transactions = []
        self._highest = NOTHING
        self._noted = NO_TIMESTAMP
        self._since_entry = 0
        self.first_timestamp = None
        self._is_active = True

    def note(self, position: int, size: int, last_offset: int, timestamp: int) -> None:
        """Index a batch that is in the file."""
        if timestamp > self._highest[0]:
            self._highest = TimeEntry(timestamp, last_offset)
        if self._since_entry > self.interval_bytes:
            self.index().append(last_offset, position)
            if self._highest[0] != self._noted:
                self.times().maybe_append(*self._highest)
                self._noted = self._highest[0]
            self._since_entry = 0
        if position == 0:
            self.first_timestamp = timestamp
        self._since_entry += size

    def note_run(self, run: Run) -> None:
        """Index verified batches: `note` without a call per batch."""
        times = self.times()
        position, interval, since = run.start, self.interval_bytes, self._since_entry
        highest = self._highest.timestamp
        if position == 0 and run.batches:
            self.first_timestamp = run.batches[0][8]
        found: list[int] = []
        for base, length, _, _, _, _, delta, _, timestamp, _, _, _, _ in run.batches:
            if timestamp > highest:
                highest = timestamp
                self._highest = TimeEntry(highest, base + delta)
            if since > interval:
                found.append((base + delta) << 32 | position)
                since = 0
                if highest != self._noted:
                    times.maybe_append(*self._highest)
                    self._noted = highest
            since += length + LENGTH_END
            position += length + LENGTH_END
        self.index().extend(found)
        self._since_entry = since

    def index(self) -> OffsetIndex:
        """The offset index, from memory, from its file, or from the batches."""
        if self._index is None:
            self.load()
        assert self._index is not None
        return self._index

    def times(self) -> TimeIndex:
        """The time index, from memory, from its file, or from the batches."""
        if self._times is None:
            self.load()
        assert self._times is not None
        return self._times

    def load(self) -> None:
        """Load both indexes; rebuild them if a file is missing or invalid."""
        try:
            self._index = OffsetIndex.from_bytes(*self.content(OFFSET_INDEX))
            self._times = TimeIndex.from_bytes(*self.content(TIME_INDEX))
            self._highest = self._times.last() or NOTHING
            if self._is_earlier_than_log():
                raise DamagedFileError(self.path(TIME_INDEX), "does not match the batches")
        except DamagedFileError:
            self.rebuild()
        INDEXES.used(self)

    def load_once(self) -> None:
        """Load both indexes if they are not in memory."""
        if self._index is None or self._times is None:
            self.load()
        elif not self._is_active:
            INDEXES.used(self)

    def index_bytes(self) -> int:
        """The memory of the indexes."""
        return 8 * len(self._index or ()) + 12 * len(self._times or ())

    def unload(self) -> None:
        """Free the indexes, unless they exist only in memory."""
        if not self._is_active:
            self._index = self._times = None

    def close(self) -> None:
        """Close the handle and free the indexes."""
        INDEXES.forget(self)
        self.unload()
        super().close()

    def _is_earlier_than_log(self) -> bool:
        """Whether the time index lacks the latest batch, which decides about retention.

        Its last entry was added when the segment was sealed and usually names the last batch, so
        there is nothing to read after it.
        """
        timestamp, offset = self._highest
        found = self.find(max(offset, self.base_offset))
        if found is None:
            return False
        if offset >= 0 and found.header.max_timestamp != timestamp:
            return True
        rest = walk_headers(self.file, found.position, self.size)
        try:
            return any(header.max_timestamp > timestamp for _, header in rest)
        except BadBatchError:
            return False

    def scan_from(self, timestamp: int) -> int:
        """Every record of the segment before this offset is earlier than `timestamp`."""
        self.load_once()
        entry = self.times().before(timestamp)
        if entry is not None and not self.is_active:
            found = self.find(entry.offset)
            if found is None or found.header.max_timestamp != entry.timestamp:
                self.rebuild()
                entry = self.times().before(timestamp)
        return entry.offset + 1 if entry is not None else self.base_offset

    def rebuild(self) -> None:
        """Index all batches again. Stops silently at a bad batch, which recovery handles."""
        was_active, transactions = self._is_active, self._transactions
        self.start_empty()
        self._transactions = transactions
        try:
            for position, header in walk_headers(self.file, 0, self.size):
                self.note(position, header.size, header.end_offset - 1, header.max_timestamp)
        except BadBatchError:
            pass
        self._is_active = was_active
        if not was_active:
            self.times().maybe_append(*self._highest)
            # Atomically: the segment may be below the recovery point, where nothing is checked.
            write_whole(self.disk, self.path(OFFSET_INDEX), self.index().to_bytes())
            write_whole(self.disk, self.path(TIME_INDEX), self.times().to_bytes())

    def transactions(self) -> list[AbortedTransaction]:
        """The aborted transactions that ended here; DamagedFileError if the file is invalid."""
        if self._transactions is None:
            content = read_whole(self.disk, self.path(TRANSACTION_INDEX))
            path = self.path(TRANSACTION_INDEX)
            self._transactions = decode_transactions(content or b"", path)
        return self._transactions

    def set_aborted(self, aborted: list[AbortedTransaction]) -> None:
        """The transaction index has been rewritten with these."""
        self._transactions = aborted

    def find(self, offset: int) -> FoundHeader | None:
        """The first batch that holds this offset or a later one; None if there is none."""
        self.load_once()
        start = self._start_for(offset)
        for found in walk_headers(self.file, start, self.size):
            if found.header.base_offset + found.header.last_offset_delta >= offset:
                return found
        return None

    def end_offset(self) -> Offset:
        """The offset after the last batch, found from the last index entry on."""
        self.load_once()
        end = self.base_offset
        start = self._start_for(self.base_offset + LARGEST_RELATIVE_OFFSET)
        for _, header in walk_headers(self.file, start, self.size):
            end = Offset(header.base_offset + header.last_offset_delta + 1)
        return end

    def _start_for(self, offset: int) -> int:
        entry = self.index().at_or_before(offset)
        if entry is not None and not self._is_true(entry):
            self.rebuild()
            entry = self.index().at_or_before(offset)
        return entry.position if entry is not None else 0

    def _is_true(self, entry: OffsetEntry) -> bool:
        """Whether an entry points to the batch it names. An index built in memory is trusted."""
        if self._is_active:
            return True
        try:
            header = read_header(self.file, entry.position, self.size)
        except BadBatchError:
            return False
        return header.base_offset + header.last_offset_delta == entry.offset

    def slice_from(self, position: int, limit: int, max_bytes: int) -> Slice:
        """Whole batches from `position` on, ending at or before `limit`, at least one.

        The index gives the end without a read of each batch; headers are read only if it has no
        entry in between.
        """
        if limit - position <= max_bytes:
            return Slice(self.file, position, limit - position)
        entry = self.index().last_start(position + max_bytes)
        end = entry.position if entry is not None and self._is_true(entry) else 0
        if end <= position:
            end = position
            for found in walk_headers(self.file, position, limit):
                after = found.position + found.header.size
                if after - position > max_bytes and end > position:
                    break
                end = after
                if after - position > max_bytes:
                    break
        return Slice(self.file, position, end - position)

    def highest_timestamp(self) -> TimeEntry:
        """The latest timestamp of all its batches, -1 if it has none."""
        if self._highest is NOTHING:
            self.load_once()
        return self._highest

    def age_starts_at(self) -> int | None:
        """The first batch's timestamp; None for an empty segment or one without timestamps."""
        if self.first_timestamp is None and self.size:
            try:
                self.first_timestamp = read_header(self.file, 0, self.size).max_timestamp
            except BadBatchError:
                return None
        stamp = self.first_timestamp
        return stamp if stamp is not None and stamp >= 0 else None
