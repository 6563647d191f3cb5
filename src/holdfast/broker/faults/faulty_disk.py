"""The real disk with faults that can be enabled, and a record of what was flushed.

It replaces `RealDisk` in a broker that may receive faults. Without a fault a write costs one look
at an empty tuple; a flush or a change of a name also costs one line of the journal.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.storage.disk import Buffer, File
from holdfast.storage.power_loss.unflushed_bytes import Journal
from holdfast.storage.real_disk import RealDisk, RealFile, RealSharedFile

FULL: Final = "full"
IO_ERROR: Final = "io-error"
SLOW_FLUSH: Final = "slow-flush"
KINDS: Final = (FULL, IO_ERROR, SLOW_FLUSH)

SLOW_S: Final = 30.0
"""The extra time of a slow flush, unless the faults are cleared meanwhile."""
_LOOK_S: Final = 0.02

_NEEDS_ROOM: Final = ("append", "create")
_ERRORS: Final = {FULL: errno.ENOSPC, IO_ERROR: errno.EIO}


class DiskFault(NamedTuple):
    """A kind of failure, and where it happens."""

    kind: str
    below: str = ""
    """A directory, such as a partition's, or "" for the whole disk."""

    def hits(self, what: str, path: str) -> bool:
        """Whether it affects this call. A full disk still reads, truncates, removes and flushes."""
        if self.kind == FULL and what not in _NEEDS_ROOM:
            return False
        if self.kind == SLOW_FLUSH and what != "flush":
            return False
        return not self.below or path == self.below or path.startswith(f"{self.below}/")


class FaultyFile(RealFile):
    """A file that fails when its disk does."""

    __slots__ = ()

    _disk: FaultyDisk

    def append(self, buffers: Sequence[Buffer]) -> int:
        if self._disk.faults:
            self._disk.maybe_fail("append", self.path)
        return super().append(buffers)

    def read(self, position: int, size: int) -> bytes:
        if self._disk.faults:
            self._disk.maybe_fail("read", self.path)
        return super().read(position, size)

    def truncate(self, size: int) -> None:
        disk = self._disk
        disk.maybe_fail("truncate", self.path)
        if disk.journal is None:
            super().truncate(size)
        else:
            disk.journal.around(lambda: RealFile.truncate(self, size), "truncate", self.path, size)

    def flush(self) -> None:
        disk = self._disk
        disk.maybe_fail("flush", self.path)
        size = self.size  # before: the flush may or may not cover concurrent appends
        super().flush()
        if disk.journal is not None:
            disk.journal.note("flush", self.path, min(size, self.size))

    def flushed(self, size: int) -> None:
        super().flushed(size)
        if self._disk.journal is not None:
            self._disk.journal.note("flush", self.path, min(size, self.size))

    def share(self) -> RealSharedFile:
        self._raise_failure()
        return FaultySharedFile(self._disk, self.path, os.dup(self.descriptor()))

    def descriptor(self) -> int:
        if self._disk.faults:
            self._disk.maybe_fail("read", self.path)
        return super().descriptor()


class FaultySharedFile(RealSharedFile):
    """A second handle that fails with its disk, on any thread."""

    __slots__ = ("_disk", "_path")

    def __init__(self, disk: FaultyDisk, path: str, descriptor: int) -> None:
        super().__init__(descriptor)
        self._disk = disk
        self._path = path

    def flush(self) -> None:
        self._disk.maybe_fail("flush", self._path)
        super().flush()


class FaultyDisk(RealDisk):
    """Everything below one directory, with faults that can be enabled."""

    file_kind = FaultyFile

    def __init__(
        self, root: str | Path, side: str | Path | None = None, *, sharers: int = 1
    ) -> None:
        """`side`: where the record of what is flushed goes; see `unflushed_bytes`. None: no
        record.
        """
        super().__init__(root, sharers=sharers)
        self.faults: tuple[DiskFault, ...] = ()
        self.journal = None if side is None else Journal(self.root, str(side))

    # Faults.

    def fail(self, fault: DiskFault) -> None:
        """Enable a fault."""
        assert fault.kind in KINDS, fault
        self.faults = (*self.faults, fault)

    def clear_faults(self) -> None:
        """Clear all faults. Logs that went offline stay so until the broker is restarted."""
        self.faults = ()

    def maybe_fail(self, what: str, path: str) -> None:
        """Raise if a fault is enabled for this call; delay a slow flush."""
        for fault in self.faults:
            if not fault.hits(what, path):
                continue
            if fault.kind == SLOW_FLUSH:
                self._take_time(fault)
            else:
                error = _ERRORS[fault.kind]
                raise OSError(error, f"{os.strerror(error)} (on purpose)", path)

    def _take_time(self, fault: DiskFault) -> None:
        """Delay the calling thread."""
        end_s = time.monotonic() + SLOW_S
        while fault in self.faults and time.monotonic() < end_s:
            time.sleep(_LOOK_S)

    # Calls of storage.

    def open(self, path: str, *, create: bool = False) -> RealFile:
        self.maybe_fail("create" if create else "open", path)
        if not create or self.journal is None:
            return super().open(path, create=create)
        return self.journal.around(lambda: RealDisk.open(self, path, create=True), "create", path)

    def create_directory(self, path: str) -> None:
        self.maybe_fail("create", path)
        if self.journal is None:
            super().create_directory(path)
        else:
            make = partial(RealDisk.create_directory, self, path)
            self.journal.around(make, "create_directory", path)

    def rename(self, old: str, new: str) -> None:
        self.maybe_fail("rename", old)
        if self.journal is None:
            super().rename(old, new)
        else:
            self.journal.around(lambda: RealDisk.rename(self, old, new), "rename", old, new)

    def remove(self, path: str) -> None:
        self.maybe_fail("remove", path)
        if self.journal is None:
            super().remove(path)
        else:
            self.journal.around(lambda: RealDisk.remove(self, path), "remove", path)

    def remove_directory(self, path: str) -> None:
        self.maybe_fail("remove", path)
        if self.journal is None:
            super().remove_directory(path)
        else:
            self.journal.around(lambda: RealDisk.remove_directory(self, path), "remove", path)

    def flush_all(self, files: Sequence[File], directories: Sequence[str]) -> None:
        for path in directories:
            self.maybe_fail("flush_directory", path)
        super().flush_all(files, directories)
        if self.journal is not None:
            for path in directories:
                self.journal.note("flush_directory", path)

    def flush_directory(self, path: str) -> None:
        self.maybe_fail("flush_directory", path)
        super().flush_directory(path)
        if self.journal is not None:
            self.journal.note("flush_directory", path)
