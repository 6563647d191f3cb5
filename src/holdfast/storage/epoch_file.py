"""A log's leader-epoch checkpoint: kept in line with the cache that the core shares."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core import EpochCache
from holdfast.model import NO_EPOCH, NO_OFFSET, EpochEntry, Offset
from holdfast.protocol.records import RecordBatchHeader
from holdfast.storage.checkpoints import write_epochs
from holdfast.storage.disk import Disk
from holdfast.storage.names import EPOCH_CHECKPOINT

_NONE = EpochEntry(NO_EPOCH, NO_OFFSET)


class EpochFile:
    """What the file says of the epochs, beside what the cache says."""

    __slots__ = ("_cache", "_disk", "_path", "_written", "newest")

    def __init__(self, disk: Disk, directory: str, cache: EpochCache) -> None:
        self._disk = disk
        self._path = f"{directory}/{EPOCH_CHECKPOINT}"
        self._cache = cache
        self._written: tuple[EpochEntry, ...] = ()
        self.newest = _NONE
        """The newest epoch in the file."""
        self.was_written()

    @property
    def is_behind(self) -> bool:
        """Whether the cache says something else."""
        return tuple(self._cache.entries) != self._written

    def assign(self, headers: Sequence[RecordBatchHeader]) -> None:
        """Put the epochs of these batches into the cache."""
        cache = self._cache
        for header in headers:
            if header.leader_epoch > cache.latest_epoch:
                cache.assign(header.to_model().leader_epoch, Offset(header.base_offset))

    def write(self) -> None:
        """Put the file in line with the cache."""
        write_epochs(self._disk, self._path, self._cache.entries)
        self.was_written()

    def was_written(self) -> None:
        """The file says what the cache says."""
        entries = self._cache.entries
        self._written = tuple(entries)
        self.newest = entries[-1] if entries else _NONE
