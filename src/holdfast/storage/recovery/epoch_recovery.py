"""The leader epochs of a log that is being opened: from the checkpoint, or from the batches."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from holdfast.core import EpochCache
from holdfast.model import EpochEntry, Offset
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError, read_epochs, write_epochs
from holdfast.storage.disk import Disk
from holdfast.storage.file_names import EPOCH_CHECKPOINT
from holdfast.storage.producers.replay import headers_from
from holdfast.storage.segment.segment import Segment


class RecoveredEpochs:
    """The epoch cache of a log, and its checkpoint file."""

    def __init__(self, disk: Disk, directory: str, notes: list[str]) -> None:
        self.cache = EpochCache()
        self._disk = disk
        self._path = f"{directory}/{EPOCH_CHECKPOINT}"
        self._notes = notes
        self._checkpointed = EpochCache()
        """The content of the file from the log start on: it is written only if that changed."""
        self.is_behind = False
        """Whether the file differs, because the disk had no room for it."""

    def load(self, segments: Sequence[Segment], start: Offset, upto: Offset) -> None:
        """Load the leader epochs from `start` to `upto`."""
        entries: list[EpochEntry] | None = None
        try:
            entries = read_epochs(self._disk, self._path)
            if entries is None and upto > start:
                self._notes.append(f"{self._path}: missing; rebuilt")
        except DamagedFileError as error:
            self._notes.append(f"{error}; rebuilt")
        # Also the epochs before its first entry: after a crash the log may start at an older, lower
        # log-start checkpoint than when the epochs were written.
        known_from = entries[0].start_offset if entries else upto
        self.cache = EpochCache()
        if known_from > start:
            for _, found in headers_from(segments, start):
                if found.header.base_offset >= known_from:
                    break
                model = found.header.to_model()
                self.cache.assign(model.leader_epoch, model.base_offset)
        for epoch, first in entries or ():
            self.cache.assign(epoch, first)
        self.cache.advance_start_to(start)
        self.cache.truncate_to(upto)
        self._checkpointed = EpochCache(entries or ())
        self._checkpointed.advance_start_to(start)

    def write(self) -> None:
        """Write the cache to the file, unless the file has the same content.

        A full disk must not keep a log from opening, because retention could not free its space.
        The file may be older than the cache until the next flush (`leader_epoch_checkpoint`).
        """
        if self.cache.entries == self._checkpointed.entries:
            return
        try:
            write_epochs(self._disk, self._path, self.cache.entries)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self._notes.append(f"{error}; the next flush writes it")
            self.is_behind = True

    def clear(self) -> None:
        """The log starts empty: remove the epochs of records that are gone."""
        self.cache = EpochCache()
        self.is_behind = False
        if self._disk.exists(self._path):
            self._disk.remove(self._path)
