"""The simulated disk of one replica: written is not flushed, and a failing disk keeps failing.

A crash of the process keeps what was written (it is in the page cache). A power failure keeps what
was flushed and, if asked, a torn part of the rest. The clean-shutdown file and the high-watermark
checkpoint are here too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

from holdfast.core import CleanShutdown
from holdfast.lab.world.messages import Batch, Record
from holdfast.model import BatchHeader, Offset


class DiskError(Exception):
    """A read, write or flush failed. The text says why."""


class SimDisk:
    """One replica's files."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.keys: list[int] = []
        """The keys of the records, in the order of the log: what two logs are compared by."""
        self.start_offset = Offset(0)
        self.flushed_offset = Offset(0)
        self.high_watermark_checkpoint = Offset(0)
        self._flushed_checkpoint = Offset(0)
        self.clean_shutdown: CleanShutdown | None = None
        self.epoch_checkpoint_lost = False
        self.fails: str = ""
        """Why every write and flush fails from now on; empty: the disk works."""
        self.unreadable: str = ""
        """Why every read fails; empty: the disk can be read."""
        self.forgets_writes = False
        """After an unnoticed error: writes seem to succeed and are lost."""

    @property
    def end_offset(self) -> Offset:
        """The next offset to write."""
        return self.batches[-1].header.end_offset if self.batches else self.start_offset

    def append(self, batch: Batch) -> None:
        """Append a batch."""
        if self.fails:
            raise DiskError(self.fails)
        self.batches.append(batch)
        self.keys.extend(record.key for record in batch.records)

    def flush(self, end_offset: Offset) -> None:
        """Force everything below `end_offset` to the disk."""
        if self.fails:
            raise DiskError(self.fails)
        self.flushed_offset = Offset(max(self.flushed_offset, min(end_offset, self.end_offset)))
        self._flushed_checkpoint = self.high_watermark_checkpoint

    def truncate_to(self, end_offset: Offset) -> list[Record]:
        """Truncate the log and return the removed records. A batch may be split."""
        gone: list[Record] = []
        kept: list[Batch] = []
        for batch in self.batches:
            count = end_offset - batch.header.base_offset
            if count >= batch.header.record_count:
                kept.append(batch)
                continue
            count = max(0, count)
            gone.extend(batch.records[count:])
            if count:
                header = batch.header._replace(record_count=count)
                kept.append(Batch(header, batch.records[:count]))
        self.batches = kept
        if gone:
            del self.keys[-len(gone) :]
        self.flushed_offset = Offset(min(self.flushed_offset, end_offset))
        return gone

    def restart_at(self, start_offset: Offset) -> list[Record]:
        """Discard the log and start at `start_offset`."""
        gone = self.truncate_to(self.start_offset)
        self.start_offset = self.flushed_offset = start_offset
        return gone

    def lose_power(self, torn: int = 0) -> list[Record]:
        """Lose the unflushed records, except the first `torn` of them."""
        kept_to = Offset(min(self.end_offset, self.flushed_offset + torn))
        gone = self.truncate_to(kept_to)
        # What recovery has read and kept is on the disk, or it would have been lost too.
        self.flushed_offset = kept_to
        self.high_watermark_checkpoint = self._flushed_checkpoint
        self.clean_shutdown = None
        return gone

    def headers(self) -> Iterator[BatchHeader]:
        """The batches' headers, oldest first."""
        return (batch.header for batch in self.batches)

    def read(self, start: Offset, end: Offset) -> tuple[Batch, ...]:
        """Whole batches in [start, end); a batch across `start` or `end` is shortened."""
        if self.unreadable and start < end:
            raise DiskError(self.unreadable)
        found: list[Batch] = []
        place = bisect_right(self.batches, start, key=lambda batch: batch.header.end_offset)
        for batch in islice(self.batches, place, None):
            header = batch.header
            if header.base_offset >= end:
                break
            low = max(start, header.base_offset)
            high = min(end, header.end_offset)
            if low < high:
                first = low - header.base_offset
                last = high - header.base_offset
                part = header._replace(base_offset=Offset(low), record_count=high - low)
                if first and header.base_sequence >= 0:
                    part = part._replace(base_sequence=header.base_sequence + first)
                found.append(Batch(part, batch.records[first:last]))
        return tuple(found)

    def keys_between(self, start: int, end: int) -> list[int]:
        """The keys of the records in [start, end)."""
        first = self.start_offset
        return self.keys[max(0, start - first) : max(0, end - first)]

    def records(self) -> Iterator[tuple[Offset, int, Record]]:
        """Every record with its offset and leader epoch."""
        for batch in self.batches:
            for place, record in enumerate(batch.records):
                offset = Offset(batch.header.base_offset + place)
                yield offset, batch.header.leader_epoch, record
