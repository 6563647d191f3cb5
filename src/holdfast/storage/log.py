"""One partition's log: a sequence of segments, of which the last one grows.

The log keeps bytes and finds them. The core decides what may be appended, how far it is committed
and where to truncate; offsets and epochs are stamped into the batches before they arrive here. The
order of calls depends on these rules:

- An append is one write into one file. It returns when the bytes are written, not flushed.
- A roll flushes nothing. It calls `rolled`, and the log's owner has the sealed segments flushed
  soon (`BackgroundFlush`), as Kafka does after a roll.
- `recovery_point` rises only after everything below it has been flushed: files, the leader-epoch
  checkpoint, then their names.
- A truncation removes segments newest first, each durably before the next. Segments at the front
  leave once a durable log-start checkpoint is above them, without a flush: opening drops everything
  below that checkpoint. So after any crash the remaining files are contiguous.
- Any error of the disk takes the log offline, immediately and until it is opened again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TypeVar

from holdfast.core import EpochCache, ProducerStates
from holdfast.model import NO_EPOCH, Offset
from holdfast.protocol.records import RecordBatchHeader
from holdfast.storage.append_checks import Appended, feed_producers, headers_of, needs_roll, span_of
from holdfast.storage.checkpoints.leader_epoch_checkpoint import EpochFile
from holdfast.storage.deferred_deletions import Deletions
from holdfast.storage.disk import Buffer, Disk
from holdfast.storage.errors import AppendRefusedError, LogClosedError, LogOfflineError
from holdfast.storage.log_settings import LogSettings
from holdfast.storage.pending_writes import Names, Snapshots
from holdfast.storage.producers.replay import replay, snapshot_offsets
from holdfast.storage.segment.segment import LARGEST_RELATIVE_OFFSET, Segment

_Result = TypeVar("_Result")


class Log:
    """An open log. `open_log` creates it."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        *,
        segments: list[Segment],
        epochs: EpochCache,
        producers: ProducerStates,
        bounds: tuple[Offset, Offset, Offset],
    ) -> None:
        """`bounds`: log start offset, log end offset and recovery point."""
        assert segments, "a log has an active segment"
        self.disk = disk
        self.directory = directory
        self.settings = settings
        self.segments = segments
        """By base offset; never empty; the last one is active."""
        self.epochs = epochs
        """May be shared with the core's LogState: the next flush writes what that assigns."""
        self.producers = producers
        """May be shared with the core's LogState, which adds a leader's batches before `append`."""
        self.log_start_offset, self.log_end_offset, self.recovery_point = bounds
        assert self.recovery_point <= self.log_end_offset
        self.offline: LogOfflineError | None = None
        self.last_flush_ms = 0
        self.deletions = Deletions()
        self._bases: list[int] = [segment.base_offset for segment in segments]
        self.epoch_file = EpochFile(disk, directory, epochs)
        self.names = Names(disk, directory)
        self.snapshots = Snapshots(disk, directory)
        self.truncations = 0
        """The number of truncations: one voids every flush that began before it."""
        self._active_since_ms: int | None = None  # Opened, not created: unknown.
        self.rolled: Callable[[], None] = _ignore
        """Called after a roll: there is a sealed segment to flush."""
        self.epochs_changed: Callable[[], None] = _ignore
        """Called when the leader-epoch checkpoint needs a write that no flush has begun."""
        self.finish_swap: Callable[[], None] = no_swap
        """Called before segments leave the log: the cleaner completes its swap."""
        self.recovery_point_fell: Callable[[], None] = _ignore
        """Called when a truncation has lowered the recovery point, before any append."""

    # Appending.

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
        """Write batches at the end, with one system call.

        They are stamped, validated and in order. A compacted leader leaves gaps between offsets,
        so offsets only have to rise. A caller that has parsed the headers passes them, as they are
        after stamping (`stamped`), one per batch in the buffers.
        """
        if self.offline is not None:
            raise self.offline
        if headers is None:
            headers = headers_of(buffers)
        first, end, size, has_gap = span_of(headers, self.log_end_offset)
        assert size == sum(map(len, buffers)), "headers of other batches"
        segment = self.segments[-1]
        age_ms = 0 if self._active_since_ms is None else now_ms - self._active_since_ms
        try:
            has_rolled = needs_roll(segment, self.settings, size, headers[-1], age_ms)
            if has_rolled:
                segment = self._roll(first, headers[-1].end_offset - 1, now_ms)
            entries = self.epochs.entries
            is_new_epoch = headers[-1][2] > (entries[-1][0] if entries else NO_EPOCH)
            if is_new_epoch:
                self.epoch_file.assign(headers)
            if has_gap:
                self.names.mark_compacted()
            segment.append(buffers, headers)
            self.log_end_offset = end
            known_to = self.producers.end_offset
            for header in headers:
                if header[9] >= 0 and header[0] >= known_to:
                    feed_producers(self.producers, segment, buffers, headers)
                    break
        except OSError as error:
            raise self.fail(error) from error
        if is_new_epoch:
            self.epochs_changed()
        return Appended(first, end, size, has_rolled)

    def roll(self, now_ms: int) -> None:
        """Begin a new segment at the end, unless the active one is empty."""
        if self.active.file.size:
            end = self.log_end_offset
            self.guarded(lambda: self._roll(end, end, now_ms))

    def _roll(self, first: int, last: int, now_ms: int) -> Segment:
        """Create a segment for batches from offset `first` to `last`.

        It begins at the log end, even if the batches leave a gap. So recovery can distinguish a
        segment that lost its end to a power failure from a compacted one.
        """
        base = self.log_end_offset
        is_far = last - base > LARGEST_RELATIVE_OFFSET
        if is_far and self.active.base_offset == first:
            raise AppendRefusedError(f"a batch of more than {LARGEST_RELATIVE_OFFSET} offsets")
        self.active.become_sealed()
        self.snapshots.add(base, self.producers.snapshot_at(base))
        if is_far:
            base = Offset(first)
            self._prove_gap(base)
        segment = self._create(base)
        self._add(segment, now_ms)
        self.rolled()
        return segment

    def _prove_gap(self, base: Offset) -> None:
        """Put a gap that is too wide for an index between two segments."""
        self._flush_segments()
        self._flush_names()  # First: a snapshot proves that these segments exist.
        self.snapshots.add(base, self.producers.snapshot_at(base))
        self.snapshots.write(base)
        self._flush_names()

    def _create(self, base: Offset) -> Segment:
        segment = Segment.create(
            self.disk, self.directory, base, self.settings.index_interval_bytes
        )
        segment.reserve_indexes(self.settings.segment_index_bytes)
        return segment

    def _add(self, segment: Segment, now_ms: int) -> None:
        self.segments.append(segment)
        self._bases.append(int(segment.base_offset))
        self.names.changed()
        self._active_since_ms = now_ms

    # Flushing.

    @property
    def first_unflushed(self) -> int:
        """The index of the first segment to flush, including one sealed at the recovery point."""
        place = self.place_of(self.recovery_point)
        return place - 1 if place and self.segments[place - 1].is_dirty else place

    @property
    def has_unflushed_seals(self) -> bool:
        """Whether a sealed segment may have unflushed content."""
        return self.first_unflushed < len(self.segments) - 1

    def flush(self, now_ms: int) -> Offset:
        """Make everything written so far survive a power failure; returns the recovery point."""
        if self.offline is not None:
            raise self.offline
        end = self.log_end_offset
        if self.epoch_file.is_behind:
            self.guarded(self.epoch_file.write)
        if end > self.recovery_point or self.names.are_unflushed:
            self.guarded(self._flush_files)
        self.flushed_to(end, now_ms)
        return end

    def flushed_to(self, offset: Offset, now_ms: int) -> None:
        """Everything below `offset` is on the disk: raise the recovery point."""
        if self.guarded(lambda: self.snapshots.write(offset)):
            self.names.changed()
        self.recovery_point = Offset(max(self.recovery_point, offset))
        self.last_flush_ms = now_ms

    def _flush_files(self) -> None:
        self._flush_segments()
        if self.names.are_unflushed:
            self._flush_names()

    def _flush_segments(self) -> None:
        for segment in self.segments[self.first_unflushed :]:
            segment.flush()

    def _flush_names(self) -> None:
        changes = self.names.changes
        self.disk.flush_directory(self.directory)
        self.names.flushed(changes)

    # Truncating.

    def truncate_to(self, offset: Offset, now_ms: int) -> Offset:
        """Truncate the log to `offset`; returns the new end, lower if that is inside a batch."""
        if offset < self.log_start_offset or offset <= self.segments[0].base_offset:
            self.restart_at(offset, now_ms)
            return offset
        if offset < self.log_end_offset:
            self._leave()
            end = self.guarded(lambda: self._truncate(offset, now_ms))
            if end < self.log_start_offset:
                self.restart_at(self.log_start_offset, now_ms)
                return self.log_start_offset
            self.log_end_offset = end
            self.guarded(self._replay_producers)
            self._lower_recovery_point()
        self.epochs.truncate_to(self.log_end_offset)
        self.epoch_file.cancel_write()
        self.epochs_changed()
        return self.log_end_offset

    def _leave(self) -> None:
        self.guarded(self.finish_swap)
        self.truncations += 1

    def _replay_producers(self) -> None:
        bounds = self.log_start_offset, self.log_end_offset
        snapshots = snapshot_offsets(self.disk, self.directory)
        replay(self.producers, self.disk, self.directory, self.segments, *bounds, snapshots)

    def _lower_recovery_point(self) -> None:
        if self.recovery_point > self.log_end_offset:
            self.recovery_point = self.log_end_offset
            self.guarded(self.recovery_point_fell)

    def _truncate(self, offset: Offset, now_ms: int) -> Offset:
        while self.active.base_offset > offset:  # The first segment begins below `offset`.
            self._drop_last(now_ms)
        end = self.active.truncate_to(offset)
        self.active.reserve_indexes(self.settings.segment_index_bytes)
        self.snapshots.drop_above(end)
        # The names, too: a segment that came back would follow other records than before.
        self._flush_names()
        return end

    def restart_at(self, offset: Offset, now_ms: int) -> None:
        """Delete everything and start again at `offset`."""
        self._leave()
        # The epochs first. Recovery can rebuild them from records that are left, but it could not
        # detect stale epochs of an empty log.
        self.epochs.truncate_to(Offset(0))
        self.guarded(self.epoch_file.write)
        self.guarded(lambda: self._restart(offset, now_ms))
        self.log_start_offset = self.log_end_offset = offset
        # Lowered even if it may rise: the records it covered are gone, and nothing is flushed.
        self.recovery_point = offset
        self.guarded(self.recovery_point_fell)
        self.producers.restore()

    def _restart(self, offset: Offset, now_ms: int) -> None:
        while self.segments:
            self._drop_last(now_ms)
        self.snapshots.drop_above(-1)
        self._flush_names()  # One that came back would prove other records.
        self._add(self._create(offset), now_ms)
        self._flush_names()

    def advance_start_to(self, offset: Offset) -> None:
        """Hide the records below from readers. In memory only: their segments leave later."""
        if offset <= self.log_start_offset:
            return
        assert offset <= self.log_end_offset, "deleting records that do not exist"
        self.log_start_offset = offset
        # The file may have older epochs: opening the log drops those below the checkpointed start.
        self.epochs.advance_start_to(offset)
        self.epoch_file.start_moved(offset)

    def drop_oldest(self, now_ms: int) -> None:
        """Drop the first segment, which is below the durable start (`dropped_below`)."""
        assert self.finish_swap is no_swap, "the first segment is being replaced"
        base = self.segments[0].base_offset
        self.guarded(lambda: self._drop(0, now_ms))
        self.guarded(lambda: self.snapshots.drop(base))

    def _drop(self, place: int, now_ms: int) -> None:
        segment = self.segments[place]
        paths = segment.mark_deleted()
        self.names.changed()
        del self.segments[place], self._bases[place]
        self.deletions.schedule(segment, paths, now_ms + self.settings.file_delete_delay_ms)

    def _drop_last(self, now_ms: int) -> None:
        """Durable before the next one: a crash during a truncation must leave no hole."""
        self._drop(len(self.segments) - 1, now_ms)
        self._flush_names()

    def replace_segments(self, old: Sequence[Segment], new: Segment) -> None:
        """The cleaner has replaced several segments with one, on the disk already."""
        place = self.segments.index(old[0])
        self.segments[place : place + len(old)] = [new]
        self._bases[place : place + len(old)] = [int(new.base_offset)]

    # Closing.

    def close_files(self) -> None:
        """Close all handles. The next read or write opens its file again."""
        for segment in self.segments:
            segment.close()

    def abandon(self) -> None:
        """Close all handles without a write: the log is being deleted.

        Existing slices stay valid; everything else is refused from now on.
        """
        self.close_files()
        self.deletions.close()
        self.epoch_file.cancel_write()
        if self.offline is None:
            self.offline = LogClosedError(self.directory)

    def close(self, now_ms: int) -> None:
        """Flush and close the log so that the next start need not verify it."""
        try:
            if self.offline is None:
                self.guarded(self.finish_swap)
                self.guarded(self._close_cleanly)
                self.flush(now_ms)
        finally:
            self.abandon()

    def _close_cleanly(self) -> None:
        self.active.become_sealed()
        self._flush_segments()
        self._flush_names()  # First: a snapshot proves that these segments exist.
        end = self.log_end_offset
        self.snapshots.add(end, self.producers.snapshot_at(end))
        self.snapshots.write(end)
        self.names.changed()

    def place_of(self, offset: int) -> int:
        """The index of the segment that has an offset, or would have it."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def guarded(self, action: Callable[[], _Result]) -> _Result:
        """Run a disk operation. Raises LogOfflineError if it fails, or if the log is offline."""
        if self.offline is not None:
            raise self.offline
        try:
            return action()
        except OSError as error:
            raise self.fail(error) from error

    def fail(self, error: OSError) -> LogOfflineError:
        """Go offline after a disk error; returns the exception to raise."""
        self.offline = LogOfflineError(self.directory, error)
        return self.offline


def _ignore(*_: object) -> None:
    pass


def no_swap() -> None:
    """The default of `Log.finish_swap`: no swap is in progress."""
