"""A log's leader-epoch checkpoint, which follows the epoch cache shared with the core.

The file may be older than the cache, under one rule: **before the recovery point passes an epoch's
records, the file has that epoch on the disk.** Above the recovery point, opening a log takes the
epochs from the batches. So the next flush writes a new epoch, and the removal of a truncated one,
on its own thread (`EpochWrite`). A log start that moved is not written: opening drops the epochs
below it.

Kafka also writes truncated epochs in the background (KAFKA-15046). It writes a new epoch before the
append returns, because its recovery point does not wait for the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from holdfast.core import EpochCache
from holdfast.model import Offset
from holdfast.protocol.records import RecordBatchHeader
from holdfast.storage.checkpoints.checkpoint_file import epochs_content, write_epochs
from holdfast.storage.disk import Disk, create_file
from holdfast.storage.file_names import EPOCH_CHECKPOINT

NEXT = ".next"


class EpochFile:
    """The leader-epoch checkpoint file of a log, compared with the epoch cache."""

    __slots__ = ("_cache", "_is_under_way", "_start", "_written", "disk", "path", "version")

    def __init__(self, disk: Disk, directory: str, cache: EpochCache) -> None:
        self.disk = disk
        self.path = f"{directory}/{EPOCH_CHECKPOINT}"
        self.version = 0
        """Rises when the loop writes the file or epochs are truncated: an `EpochWrite` that began
        before does not replace it."""
        self._is_under_way = False
        self._cache = cache
        self._start = Offset(0)
        self._written: EpochCache | None = EpochCache(cache.entries)
        """None while the content of the file is unknown."""

    @property
    def is_behind(self) -> bool:
        """Whether the file may differ from the cache."""
        return self._written is None or self._written.entries != self._cache.entries

    def assign(self, headers: Sequence[RecordBatchHeader]) -> None:
        """Put the epochs of these batches into the cache."""
        cache = self._cache
        for header in headers:
            if header.leader_epoch > cache.latest_epoch:
                cache.assign(header.to_model().leader_epoch, Offset(header.base_offset))

    def start_moved(self, start: Offset) -> None:
        """The log starts there; epochs below that in the file do not count."""
        self._start = start
        if self._written is not None:
            self._written.advance_start_to(start)

    def cancel_write(self) -> None:
        """The cache was truncated or the log abandoned: no write that has begun may complete."""
        self.version += 1
        if self._is_under_way:
            # Its thread may have checked the version already: then it finds no file to rename.
            with suppress(OSError):
                self.disk.remove(self.path + NEXT)

    def not_written(self) -> None:
        """Opening the log could not write the file: the next flush does."""
        self._written = None

    def write(self) -> None:
        """Write the cache to the file; it is on the disk when this returns."""
        self.cancel_write()
        self._written = None
        write_epochs(self.disk, self.path, self._cache.entries)
        self._start = Offset(0)
        self._written = EpochCache(self._cache.entries)

    def begin(self) -> EpochWrite | None:
        """Begin the write for a flush; None if the file is up to date."""
        if not self.is_behind:
            return None
        self._written = None
        self._is_under_way = True
        return EpochWrite(self, EpochCache(self._cache.entries))

    def ended(self, write: EpochWrite) -> bool:
        """The flush has ended. Returns whether the file has this content on the disk."""
        self._is_under_way = False
        is_written = write.is_placed and write.version == self.version
        if is_written:
            self._written = write.epochs
            self._written.advance_start_to(self._start)
        return is_written


class EpochWrite:
    """A write in progress. The thread that owns the log creates, ends and closes it."""

    def __init__(self, file: EpochFile, epochs: EpochCache) -> None:
        """Raises OSError if it cannot be written."""
        self.epochs = epochs
        self.version = file.version
        self.is_placed = False
        self._file = file
        self._next = file.path + NEXT
        self._content = create_file(file.disk, self._next, epochs_content(epochs.entries))
        try:
            self._handle = self._content.share()
        except OSError:
            self._content.close()
            raise

    def run(self) -> None:
        """Wait for the disk, on any thread; the caller flushes the directory."""
        self._handle.flush()
        self._content.flushed(self._content.size)
        if self._file.version == self.version:
            with suppress(FileNotFoundError):
                self._file.disk.rename(self._next, self._file.path)
                self.is_placed = True

    def close(self) -> None:
        """Close the handles."""
        self._handle.close()
        self._content.close()
