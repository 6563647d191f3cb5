"""One partition's log: segments in a row, of which the last one grows.

The log keeps bytes and says where they are. What may be appended, how far it is committed and
where it must be cut is decided by the core; offsets and epochs are stamped into the batches before
they come here. Rules that the order of calls depends on:

- An append is one write into one file. It returns when the bytes are written, not flushed.
- `recovery_point` rises only after everything below it has been flushed: files, then their names.
- Segments leave the log oldest first when it is shortened from the front, and newest first when it
  is cut at the end, and each leaves durably before the next. So after any crash the files that are
  left are one piece.
- Any error of the disk takes the log offline, at once and until it is opened again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from holdfast.core import EpochCache
from holdfast.model import NO_EPOCH, NO_OFFSET, BatchHeader, EpochEntry, Offset, ProducerId
from holdfast.protocol.records import Batch, RecordBatchHeader
from holdfast.protocol.records.header import CONTROL
from holdfast.storage.appending import Appended, headers_of, needs_roll, span_of
from holdfast.storage.checkpoints import write_epochs
from holdfast.storage.deletions import Deletions
from holdfast.storage.disk import Buffer, Disk
from holdfast.storage.errors import AppendRefusedError, LogClosedError, LogOfflineError
from holdfast.storage.names import EPOCH_CHECKPOINT
from holdfast.storage.producers import ProducerBook, marker_in
from holdfast.storage.replay import producer_headers, rebuild_producers, snapshot_offsets
from holdfast.storage.segment import LARGEST_RELATIVE_OFFSET, Segment
from holdfast.storage.settings import LogSettings
from holdfast.storage.snapshots import snapshot_path, write_snapshot
from holdfast.storage.transactions import AbortedTransaction

_Result = TypeVar("_Result")
NO_REIGN = EpochEntry(NO_EPOCH, NO_OFFSET)


class Bounds(NamedTuple):
    """Where a log starts, ends, and is known to be flushed."""

    log_start_offset: Offset
    log_end_offset: Offset
    recovery_point: Offset


class Log:
    """An open log. Made by `open_log`."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        *,
        segments: list[Segment],
        epochs: EpochCache,
        producers: ProducerBook,
        bounds: Bounds,
    ) -> None:
        assert segments, "a log has an active segment"
        self.disk = disk
        self.directory = directory
        self.settings = settings
        self.segments = segments
        """By base offset; never empty; the last one is active."""
        self.epochs = epochs
        """May be shared with the core's LogState: what it assigns is written at the next append."""
        self.producers = producers
        self.log_start_offset, self.log_end_offset, self.recovery_point = bounds
        assert self.recovery_point <= self.log_end_offset
        self.offline: LogOfflineError | None = None
        self.last_flush_ms = 0
        self.deletions = Deletions()
        self._bases: list[int] = [segment.base_offset for segment in segments]
        self._written_epochs = tuple(epochs.entries)
        self._newest = epochs.entries[-1] if epochs.entries else NO_REIGN
        self.names_unflushed = False
        self._active_since_ms: int | None = None  # Opened, not created: nobody knows.
        self.recovery_point_fell: Callable[[], None] = _nobody
        """Called when a cut has lowered the recovery point, before anything can be appended."""
        self.producers_expired: Callable[[list[ProducerId]], None] = _nobody
        """Called with producers that retention has forgotten: for the core's `ProducerStates`."""

    # Growing.

    @property
    def active(self) -> Segment:
        """The segment that grows."""
        return self.segments[-1]

    def append(
        self,
        buffers: Sequence[Buffer],
        now_ms: int,
        headers: Sequence[RecordBatchHeader] | None = None,
    ) -> Appended:
        """Write batches behind the end, with one call to the system.

        They are stamped, validated and in order. A compacted leader leaves gaps between offsets,
        so rising is all that is asked of them. Who has parsed the headers already hands them in,
        as they are after stamping (`stamped`), one for every batch in the buffers.
        """
        if self.offline is not None:
            raise self.offline
        if headers is None:
            headers = headers_of(buffers)
        first, end, size = span_of(headers, self.log_end_offset)
        assert size == sum(map(len, buffers)), "headers of other batches"
        segment = self.segments[-1]
        age_ms = 0 if self._active_since_ms is None else now_ms - self._active_since_ms
        try:
            has_rolled = needs_roll(segment, self.settings, size, headers[-1], age_ms)
            if has_rolled:
                segment = self._roll(first, now_ms)
            entries = self.epochs.entries
            # One look in the usual case: the reign is the one that was written down last.
            if not entries or entries[-1] is not self._newest or headers[-1][2] != self._newest[0]:
                self._assign_epochs(headers)
            segment.append(buffers, headers)
            self.log_end_offset = end
            for header in headers:
                if header[9] >= 0:
                    self._note_producers(segment, buffers, headers)
                    break
        except OSError as error:
            raise self.fail(error) from error
        return Appended(first, end, size, has_rolled)

    def _assign_epochs(self, headers: Sequence[RecordBatchHeader]) -> None:
        epochs = self.epochs
        for header in headers:
            if header.leader_epoch > epochs.latest_epoch:
                epochs.assign(header.to_model().leader_epoch, Offset(header.base_offset))
        if tuple(epochs.entries) != self._written_epochs:
            self.write_epochs()

    def _note_producers(
        self, segment: Segment, buffers: Sequence[Buffer], headers: Sequence[RecordBatchHeader]
    ) -> None:
        if not any(header.attributes & CONTROL for header in headers):
            for header in headers:
                self.producers.append(header)
            return
        for buffer in buffers:
            position = 0
            while position < len(buffer):  # As in `_headers`.
                batch = Batch(buffer, position)
                marker = marker_in(batch) if batch.header.is_control else None
                ended = self.producers.append(batch.header, marker)
                if ended is not None and ended.is_aborted:
                    numbers = (ended.first_offset, ended.last_offset, ended.last_stable_offset)
                    segment.add_aborted(AbortedTransaction(ended.producer_id, *numbers))
                position += batch.header.size

    def roll(self, now_ms: int) -> None:
        """Begin a new segment at the end, unless the active one is empty."""
        if self.active.file.size:
            self._guarded(lambda: self._roll(self.log_end_offset, now_ms))

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        active = self.active
        if active.base_offset == base_offset:
            # Empty, and the first batch's last offset is too far away for its index.
            raise AppendRefusedError(f"a batch of more than {LARGEST_RELATIVE_OFFSET} offsets")
        write_snapshot(self.disk, self.directory, base_offset, self.producers.entries.values())
        active.become_sealed()
        if self.settings.is_compacted:
            # Gaps are normal in such a log, so recovery could not tell a lost end of this segment
            # from one: it has to be on the disk before anything follows it.
            self._flush_files()
        segment = Segment.create(
            self.disk, self.directory, base_offset, self.settings.index_interval_bytes
        )
        self._add(segment, now_ms)
        return segment

    def _add(self, segment: Segment, now_ms: int) -> None:
        self.segments.append(segment)
        self._bases.append(int(segment.base_offset))
        self.names_unflushed = True
        self._active_since_ms = now_ms

    # Keeping.

    def wants_flush(self, now_ms: int) -> bool:
        """Whether flush.messages or flush.ms asks for a flush now."""
        pending = self.log_end_offset - self.recovery_point
        if pending <= 0:
            return False
        settings = self.settings
        return (
            pending >= settings.flush_messages or now_ms - self.last_flush_ms >= settings.flush_ms
        )

    def flush(self, now_ms: int) -> Offset:
        """Everything that is written now survives a power failure; gives the recovery point."""
        if self.offline is not None:
            raise self.offline
        end = self.log_end_offset
        if end > self.recovery_point or self.names_unflushed:
            self._guarded(self._flush_files)
            self.recovery_point = end
        self.last_flush_ms = now_ms
        return end

    def _flush_files(self) -> None:
        for segment in self.segments[self.place_of(self.recovery_point) :]:
            segment.flush()
        if self.names_unflushed:
            self.disk.flush_directory(self.directory)
            self.names_unflushed = False

    def names_changed(self) -> None:
        """Files came or went: the next flush includes the directory."""
        self.names_unflushed = True

    def write_epochs(self) -> None:
        """Put the leader-epoch checkpoint in line with the cache."""
        path = f"{self.directory}/{EPOCH_CHECKPOINT}"
        self._guarded(lambda: write_epochs(self.disk, path, self.epochs.entries))
        self.epochs_written()

    def epochs_written(self) -> None:
        """The checkpoint says what the cache says."""
        self._written_epochs = tuple(self.epochs.entries)
        self._newest = self.epochs.entries[-1] if self.epochs.entries else NO_REIGN

    # Cutting.

    def truncate_to(self, offset: Offset, now_ms: int) -> Offset:
        """Cut everything from `offset` on; gives the new end, which is lower than asked for if
        `offset` is inside a batch.
        """
        if offset < self.log_start_offset or offset <= self.segments[0].base_offset:
            self.restart_at(offset, now_ms)
            return offset
        if offset < self.log_end_offset:
            self.log_end_offset = self._guarded(lambda: self._cut(offset, now_ms))
            self._guarded(self._rebuild_producers)
            self._lower_recovery_point()
        self.epochs.truncate_to(self.log_end_offset)
        self.write_epochs()
        return self.log_end_offset

    def _lower_recovery_point(self) -> None:
        if self.recovery_point > self.log_end_offset:
            self.recovery_point = self.log_end_offset
            self._guarded(self.recovery_point_fell)

    def _cut(self, offset: Offset, now_ms: int) -> Offset:
        while self.active.base_offset > offset:  # The first segment begins below `offset`.
            self._drop(len(self.segments) - 1, now_ms)
        end = self.active.truncate_to(offset)
        self._drop_snapshots(above=end)
        # The names, too: a segment that came back would follow records it never followed.
        self.disk.flush_directory(self.directory)
        return end

    def restart_at(self, offset: Offset, now_ms: int) -> None:
        """Throw everything away and begin anew at `offset`."""
        # The reigns first: those that records are left of are worked out from them again, but
        # nothing would tell the reigns of an empty log from true ones.
        self.epochs.truncate_to(Offset(0))
        self.write_epochs()
        self._guarded(lambda: self._restart(offset, now_ms))
        self.log_start_offset = self.log_end_offset = offset
        # Lowered also where it may rise: what it was said of is gone, and nothing is flushed.
        self.recovery_point = offset
        self._guarded(self.recovery_point_fell)
        self.producers = ProducerBook()

    def _restart(self, offset: Offset, now_ms: int) -> None:
        while self.segments:
            self._drop(len(self.segments) - 1, now_ms)
        self._drop_snapshots(above=Offset(-1))
        segment = Segment.create(
            self.disk, self.directory, offset, self.settings.index_interval_bytes
        )
        self._add(segment, now_ms)
        self.disk.flush_directory(self.directory)
        self.names_unflushed = False

    def advance_start_to(self, offset: Offset) -> None:
        """Records below are gone for readers (DeleteRecords); whole segments go by retention."""
        if offset <= self.log_start_offset:
            return
        assert offset <= self.log_end_offset, "deleting records that do not exist"
        self.log_start_offset = offset
        self.epochs.advance_start_to(offset)
        if tuple(self.epochs.entries) != self._written_epochs:
            self.write_epochs()

    def drop_oldest(self, now_ms: int) -> None:
        """Let the first segment go. Retention decides when; the next one begins the log."""
        assert len(self.segments) > 1
        base = self.segments[0].base_offset
        self.advance_start_to(self.segments[1].base_offset)
        self._guarded(lambda: self._drop(0, now_ms))
        self._guarded(lambda: self._drop_snapshot(base))

    def _drop(self, place: int, now_ms: int) -> None:
        segment = self.segments[place]
        paths = segment.mark_deleted()
        self.disk.flush_directory(self.directory)
        del self.segments[place], self._bases[place]
        self.deletions.schedule(segment, paths, now_ms + self.settings.file_delete_delay_ms)

    def replace_segments(self, old: Sequence[Segment], new: Segment) -> None:
        """The cleaner has put one segment in the place of several, on the disk already."""
        place = self.segments.index(old[0])
        self.segments[place : place + len(old)] = [new]
        self._bases[place : place + len(old)] = [int(new.base_offset)]

    # Producers.

    def _rebuild_producers(self) -> None:
        self.producers = rebuild_producers(
            self.disk, self.directory, self.segments, self.log_start_offset, self.log_end_offset
        )

    def producer_headers(self) -> Iterator[BatchHeader]:
        """What the core's ProducerStates is rebuilt from after a start or a truncation."""
        return producer_headers(
            self.disk, self.directory, self.segments, self.log_start_offset, self.log_end_offset
        )

    def snapshot_offsets(self) -> list[int]:
        """The offsets of which there are producer snapshots, oldest first."""
        return snapshot_offsets(self.disk, self.directory)

    def _drop_snapshots(self, *, above: Offset) -> None:
        for offset in self.snapshot_offsets():
            if offset > above:
                self._drop_snapshot(Offset(offset))

    def _drop_snapshot(self, offset: Offset) -> None:
        path = snapshot_path(self.directory, offset)
        if self.disk.exists(path):
            self.disk.remove(path)

    # Ending.

    def abandon(self) -> None:
        """Give all handles back without a word to the disk: the log is being deleted.

        Held slices stay good; everything else is refused from now on.
        """
        for segment in self.segments:
            segment.close()
        self.deletions.close()
        if self.offline is None:
            self.offline = LogClosedError(self.directory)

    def close(self, now_ms: int) -> None:
        """Leave everything on the disk such that the next start need not look at it."""
        try:
            if self.offline is None:
                self._guarded(self._close_cleanly)
                self.names_changed()
                self.flush(now_ms)
        finally:
            self.abandon()

    def _close_cleanly(self) -> None:
        write_snapshot(
            self.disk, self.directory, self.log_end_offset, self.producers.entries.values()
        )
        self.active.become_sealed()
        self.active.flush()

    def place_of(self, offset: int) -> int:
        """The place of the segment that holds an offset, or would."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def _guarded(self, action: Callable[[], _Result]) -> _Result:
        if self.offline is not None:
            raise self.offline
        try:
            return action()
        except OSError as error:
            raise self.fail(error) from error

    def fail(self, error: OSError) -> LogOfflineError:
        """Go offline over an error of the disk; what to raise."""
        self.offline = LogOfflineError(self.directory, error)
        return self.offline


def _nobody(*_: object) -> None:
    pass
