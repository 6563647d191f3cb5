"""The disk of this machine, through `os`.

Descriptors are opened when needed. A log directory may have more files than a process may have
open, so descriptors that were only read are closed when there are too many. A descriptor with
unflushed writes is flushed before it is closed, because the system reports a failed write-back only
to the descriptors that are open at that time. An append waits for that flush, so it happens only
when this disk has used up its share of the process's descriptors.

A file belongs to the thread that opened it: only that thread closes it to make room. So several
threads may open logs, each log by one thread, which closes its files when it is done.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import os
import resource
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from holdfast.storage.disk import Buffer, DirectoryLockedError, Entry, File

OPEN_FILES = 512
"""How many idle descriptors one disk keeps, unless the process may have few."""
_SHARE = 8
"""All disks of a process keep an eighth of the descriptors that it may have: the rest is for
connections and for flushes."""
_LOOKS = 16
"""How many descriptors to check in search of an idle one."""
_MOST_BUFFERS = 1024
"""IOV_MAX of Linux: what one call to pwritev takes."""


class RealFile:
    """A file; its descriptor is opened and closed as needed."""

    _FLAGS: ClassVar[int] = os.O_RDWR
    __slots__ = ("_descriptor", "_disk", "_failure", "_full", "dirty", "owner", "path", "size")

    def __init__(self, disk: RealDisk, path: str, full: str, descriptor: int) -> None:
        self._disk = disk
        self._full = full
        self._descriptor = descriptor
        self.path = path
        self.size = os.fstat(descriptor).st_size
        self.dirty = False
        self.owner = threading.get_ident()
        self._failure: OSError | None = None

    def append(self, buffers: Sequence[Buffer]) -> int:
        descriptor = self._descriptor
        if descriptor < 0:
            descriptor = self.descriptor()
        self.dirty = True
        size = self.size
        if len(buffers) == 1:
            wanted = len(buffers[0])
            written = os.pwrite(descriptor, buffers[0], size)
        else:
            wanted = sum(map(len, buffers))
            written = os.pwritev(descriptor, buffers[:_MOST_BUFFERS], size)
        if written != wanted:
            self._write_rest(b"".join(buffers), written)
        self.size = size + wanted
        return wanted

    def _write_rest(self, data: bytes, written: int) -> None:
        """A short write means a nearly full disk or a signal; the next call says which."""
        view = memoryview(data)
        while written < len(view):  # Each round writes a byte at least, or raises.
            step = os.pwrite(self.descriptor(), view[written:], self.size + written)
            if step <= 0:
                raise OSError(errno.EIO, "nothing could be written", self.path)
            written += step

    def read(self, position: int, size: int) -> bytes:
        data = os.pread(self.descriptor(), size, position)
        if len(data) == size or position + len(data) >= self.size:
            return data
        return self._read_rest(data, position, size)

    def _read_rest(self, data: bytes, position: int, size: int) -> bytes:
        pieces = [data]
        done = len(data)
        while done < size:  # Each round reads a byte at least, or the file ends.
            piece = os.pread(self.descriptor(), size - done, position + done)
            if not piece:
                break
            pieces.append(piece)
            done += len(piece)
        return b"".join(pieces)

    def truncate(self, size: int) -> None:
        self.dirty = True
        os.ftruncate(self.descriptor(), size)
        self.size = size

    def reserve(self, size: int) -> None:
        if size > self.size:
            os.ftruncate(self.descriptor(), size)
            self.size = size

    def flush(self) -> None:
        self._raise_failure()
        os.fsync(self.descriptor())
        self.dirty = False

    def make_room(self) -> None:
        """Flush and close the descriptor. If that fails, the file's next flush raises the error."""
        try:
            if self.dirty:
                self.flush()
        except OSError as error:
            self._failure = error
        self.close()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def flushed(self, size: int) -> None:
        self._raise_failure()
        self.dirty = self.size > size

    def share(self) -> RealSharedFile:
        self._raise_failure()
        return RealSharedFile(os.dup(self.descriptor()))

    def descriptor(self) -> int:
        """The descriptor. Do not keep it: it may be closed when other files need one."""
        descriptor = self._descriptor
        if descriptor < 0:
            descriptor = self._descriptor = os.open(self._full, self._FLAGS | os.O_CLOEXEC)
            self.owner = threading.get_ident()
            self._disk.opened(self)
        return descriptor

    def moved_to(self, path: str) -> None:
        self.path = path
        self._full = self._disk.full(path)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._disk.closed(self)


class RealSharedFile:
    """A second descriptor: it outlives the file's handle, its name, and the file itself."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def flush(self) -> None:
        os.fsync(self._descriptor)

    def descriptor(self) -> int:
        return self._descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class ReadOnlyFile(RealFile):
    """A file of a directory that another process owns: never opened for writing."""

    __slots__ = ()

    _FLAGS = os.O_RDONLY


class RealDisk:
    """Everything below one directory of this machine."""

    file_kind: type[RealFile] = RealFile
    """The class of files; a disk with injected faults has another."""

    def __init__(self, root: str | Path, *, read_only: bool = False, sharers: int = 1) -> None:
        """`sharers`: how many disks this process has, this one included."""
        self.root = str(root)
        self.read_only = read_only
        self._open: OrderedDict[int, RealFile] = OrderedDict()
        self._lock = threading.Lock()
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = max(1, most // _SHARE // sharers) if most > 0 else sys.maxsize
        self.wait_for_all: Callable[[Sequence[Callable[[], None]]], None] = _one_by_one
        """Runs flushes that may run in parallel. A broker with threads replaces it."""

    def open(self, path: str, *, create: bool = False) -> RealFile:
        full = self.full(path)
        kind = ReadOnlyFile if self.read_only else self.file_kind
        flags = kind._FLAGS | (os.O_CREAT | os.O_EXCL if create else 0)
        descriptor = os.open(full, flags | os.O_CLOEXEC, 0o644)
        file = kind(self, path, full, descriptor)
        self.opened(file)
        return file

    def list(self, path: str) -> builtins.list[Entry]:
        with os.scandir(self.full(path)) as found:
            return [Entry(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]

    def names(self, path: str) -> builtins.list[str]:
        return os.listdir(self.full(path))  # noqa: PTH208  # hot when many logs are opened

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.full(path))

    def size(self, path: str) -> int:
        return os.stat(self.full(path)).st_size  # noqa: PTH116  # hot when many logs are opened

    def create_directory(self, path: str) -> None:
        os.mkdir(self.full(path))  # noqa: PTH102  # paths are plain strings in this room

    def rename(self, old: str, new: str) -> None:
        os.replace(self.full(old), self.full(new))  # noqa: PTH105  # the same

    def remove(self, path: str) -> None:
        os.unlink(self.full(path))  # noqa: PTH108  # the same

    def remove_directory(self, path: str) -> None:
        os.rmdir(self.full(path))  # noqa: PTH106  # the same

    def flush_directory(self, path: str) -> None:
        descriptor = os.open(self.full(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def flush_all(self, files: Sequence[File], directories: Sequence[str]) -> None:
        sizes = [file.size for file in files]
        shared = [file.share() for file in files]
        names = [partial(RealDisk.flush_directory, self, path) for path in directories]
        try:
            self.wait_for_all([*(one.flush for one in shared), *names])
        finally:
            for handle in shared:
                handle.close()
        for file, size in zip(files, sizes, strict=True):
            file.flushed(size)

    def lock(self, path: str) -> RealLock:
        return RealLock(self.full(path))

    def opened(self, file: RealFile) -> None:
        """Count a descriptor; if there are too many, close another one, preferably an idle one."""
        with self._lock:
            self._open[id(file)] = file
            is_full = len(self._open) > min(OPEN_FILES, self._most)
            old = self._one_to_close(file) if is_full else None
        if old is not None:
            old.make_room()

    def _one_to_close(self, file: RealFile) -> RealFile | None:
        """The oldest idle file of this thread among the next few; else the oldest, if the share is
        used up.
        """
        oldest = None
        for _ in range(min(_LOOKS, len(self._open))):
            key, old = next(iter(self._open.items()))
            self._open.move_to_end(key)
            if old is file or old.owner != file.owner:
                continue
            if not old.dirty:
                return old
            oldest = oldest or old
        return oldest if len(self._open) > self._most else None

    def closed(self, file: RealFile) -> None:
        """The descriptor has been closed."""
        with self._lock:
            self._open.pop(id(file), None)

    def full(self, path: str) -> str:
        """The full path in the file system."""
        return f"{self.root}/{path}" if path else self.root


def _one_by_one(flushes: Sequence[Callable[[], None]]) -> None:
    for flush in flushes:
        flush()


class RealLock:
    """A lock file held by this process; the system releases it when the process ends."""

    def __init__(self, full: str) -> None:
        self._descriptor = os.open(full, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # lockf takes the same record locks as Java's FileChannel.lock, so a Kafka broker and
            # Holdfast exclude each other. Such a lock does not exclude our own process; flock does.
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            raise DirectoryLockedError(f"{full} is held by another process") from None

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
