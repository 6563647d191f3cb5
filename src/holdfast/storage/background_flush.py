"""Flushes a log while it grows: the wait for the disk is on another thread.

One flush covers the segments from the recovery point on (sealed ones with their indexes), then the
leader-epoch checkpoint if it is behind, then the directory. It covers a few segments at most,
because each file needs a second descriptor meanwhile. If there are more, `Log.has_unflushed_seals`
is still true at its end, and the next flush continues.

A truncation during a flush voids it: later writes were not part of it.
"""

from __future__ import annotations

from contextlib import closing

from holdfast.model import Offset
from holdfast.storage.disk import File, SharedFile
from holdfast.storage.log import Log
from holdfast.storage.segment.segment import Segment

MOST_SEGMENTS = 4
"""The most segments per flush, with up to four files each."""


class SegmentFlush:
    """Flushes the files of one segment through second handles.

    The thread that owns the segment creates, ends and closes it; another thread calls `run`.
    """

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.was_active = segment.is_active
        self._files: list[tuple[File, int]] = []
        self._shared: list[SharedFile] = []
        try:
            self._share(segment.file)
            for kind in segment.kinds_to_flush():
                with closing(segment.disk.open(segment.path(kind))) as file:
                    self._share(file)
        except OSError:
            self.close()
            raise

    def _share(self, file: File) -> None:
        self._files.append((file, file.size))
        self._shared.append(file.share())

    def run(self) -> None:
        """Wait for the disk."""
        for one in self._shared:
            one.flush()

    def close(self) -> None:
        """Close the handles."""
        for one in self._shared:
            one.close()

    def end(self) -> None:
        """The content as of the start of this flush is on the disk."""
        for file, size in self._files:
            file.flushed(size)
        if self.was_active:
            self.segment.flushed_to(self._files[0][1])
        else:
            self.segment.is_dirty = False


class BackgroundFlush:
    """One flush. The thread that owns the log creates and ends it; another thread calls `run`."""

    def __init__(self, log: Log, *, has_records: bool = True) -> None:
        """Raises OSError if the files cannot be opened. Without records: names and epochs only."""
        first = log.first_unflushed
        after = first + MOST_SEGMENTS if has_records else first
        self._log = log
        self._end = log.log_end_offset if has_records else log.recovery_point
        if has_records and after < len(log.segments):
            self._end = log.segments[after].base_offset
        self._has_records = has_records
        self._truncations = log.truncations
        self._parts: list[SegmentFlush] = []
        self._epochs = log.epoch_file.begin()
        self._names = log.names.changes
        self._has_names = log.names.are_unflushed or self._epochs is not None
        try:
            for segment in log.segments[first:after]:
                if segment.is_dirty:
                    self._parts.append(SegmentFlush(segment))
        except OSError:
            self._close()
            raise

    def _close(self) -> None:
        for part in self._parts:
            part.close()
        if self._epochs is not None:
            self._epochs.close()

    def run(self) -> None:
        """Wait for the disk. Raises OSError if it fails; pass that to `end`."""
        for part in self._parts:
            part.run()
        if self._epochs is not None:
            self._epochs.run()
        if self._has_names:
            self._log.disk.flush_directory(self._log.directory)

    def end(self, error: OSError | None, now_ms: int) -> Offset:
        """Raise and return the recovery point. Raises LogOfflineError if the flush failed."""
        log = self._log
        self._close()
        if error is not None:
            raise log.fail(error) from error
        if log.offline is not None:
            return log.recovery_point
        if self._has_names:
            log.names.flushed(self._names)
        has_epochs = self._epochs is None or log.epoch_file.ended(self._epochs)
        if log.truncations == self._truncations and has_epochs:
            self._end_parts()
            if self._has_records and not self._is_end_sealed():
                log.flushed_to(self._end, now_ms)
        return log.recovery_point

    def _end_parts(self) -> None:
        try:
            for part in self._parts:
                part.end()
        except OSError as error:
            raise self._log.fail(error) from error

    def _is_end_sealed(self) -> bool:
        """Whether the flush ended at the end of a segment that has been sealed since.

        Its indexes are not flushed, and recovery does not check below the recovery point.
        """
        last = self._parts[-1] if self._parts else None
        if last is None or not last.was_active or last.segment.is_active:
            return False
        return self._log.active.base_offset <= self._end
