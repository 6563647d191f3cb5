"""The interface of a disk: files that grow at their end, in directories.

Paths are relative to the disk's root, with "/" as separator. A disk gives three guarantees, and
storage relies on nothing else:

1. Written bytes are readable immediately. They survive the end of the process, but not of the
   machine.
2. Flushed bytes of a file survive everything. So does the name of a file or directory once its
   parent directory has been flushed. Neither implies the other.
3. A rename is atomic: after any crash the new name refers to the whole old or the whole new file.

After a power failure, any part of the bytes that were written but not flushed may be there.
Every failure is an OSError. After a failed flush the state of its bytes is unknown, and a second
flush proves nothing: the caller that gets the error stops writing for good.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview

TEMPORARY = ".tmp"
"""The ending of a file that is about to replace another one."""


class DirectoryLockedError(Exception):
    """Another process holds this directory."""


class Entry(NamedTuple):
    """A name in a directory."""

    name: str
    is_directory: bool


class File(Protocol):
    """One open file."""

    path: str
    size: int
    """The bytes written. We count them, because no other process writes here."""

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write all buffers at the end, in one system call if possible, and return their size.

        After an error some of the bytes may have been written.
        """

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    def truncate(self, size: int) -> None:
        """Shorten the file. Durable after the next flush."""

    def reserve(self, size: int) -> None:
        """Extend the file to this size with zeros; appends follow the zeros.

        This is for Kafka's tools: Holdfast never reads the zeros.
        """

    def flush(self) -> None:
        """Bytes and size survive a power failure once this returns."""

    def descriptor(self) -> int:
        """The current descriptor, or -1 if there is none; use `share` to keep one."""

    def share(self) -> SharedFile:
        """A second handle, for a flush on another thread."""

    def flushed(self, size: int) -> None:
        """A shared handle has flushed so many bytes. Raises OSError if some were lost before."""

    def moved_to(self, path: str) -> None:
        """The file has been renamed: open it under this path from now on."""

    def close(self) -> None:
        """Close the descriptor. The next read or write opens it again."""


class SharedFile(Protocol):
    """A second handle on a file, independent of the first and of the file's name."""

    def flush(self) -> None:
        """As `File.flush`; any thread may call it."""

    def descriptor(self) -> int:
        """The descriptor, or -1 if there is none."""

    def close(self) -> None:
        """Close the handle."""


class Lock(Protocol):
    """An exclusive lock on a directory."""

    def release(self) -> None:
        """Release the lock."""


class Disk(Protocol):
    """Files below one root."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open an existing file or create an empty one; else FileNotFoundError, FileExistsError."""

    def list(self, path: str) -> builtins.list[Entry]:
        """The entries of a directory, in no order."""

    def names(self, path: str) -> builtins.list[str]:
        """The names of the entries only."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory has this name."""

    def size(self, path: str) -> int:
        """Bytes of a file."""

    def create_directory(self, path: str) -> None:
        """Create a directory; fails if it exists."""

    def rename(self, old: str, new: str) -> None:
        """Rename within one directory; replaces a file of the new name."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""

    def flush_directory(self, path: str) -> None:
        """The names in it survive a power failure once this returns."""

    def flush_all(self, files: Sequence[File], directories: Sequence[str]) -> None:
        """Flush them all, in any order, in parallel if that is faster."""

    def lock(self, path: str) -> Lock:
        """Take a lock file, or raise DirectoryLockedError."""


def write_whole(disk: Disk, path: str, content: bytes, *, lasting: bool = True) -> None:
    """Replace a file so that a crash leaves either the old or the new content, never a mix.

    The flush of the file before the rename keeps a power failure from leaving an empty file under
    the final name; the flush of the directory after it makes the change durable. A caller that
    flushes the directory itself before any acknowledgement passes `lasting=False`.
    """
    with closing(create_file(disk, path + TEMPORARY, content)) as file:
        file.flush()
    disk.rename(path + TEMPORARY, path)
    if lasting:
        disk.flush_directory(parent(path))


def create_file(disk: Disk, path: str, content: bytes) -> File:
    """A new file with this content, not flushed; replaces what a failed write left there."""
    if disk.exists(path):
        disk.remove(path)
    file = disk.open(path, create=True)
    try:
        file.append([content])
    except OSError:
        file.close()
        raise
    return file


def read_whole(disk: Disk, path: str) -> bytes | None:
    """The content of a small file, or None if there is no such file."""
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None
    with closing(file):
        return file.read(0, file.size)


def parent(path: str) -> str:
    """The directory that holds a path; "" is the root."""
    return path.rpartition("/")[0]


def remove_tree(disk: Disk, path: str) -> None:
    """Remove a directory and its content. A log directory is two levels deep."""
    for entry in sorted(disk.list(path)):
        child = f"{path}/{entry.name}"
        if entry.is_directory:
            remove_tree(disk, child)
        else:
            disk.remove(child)
    disk.remove_directory(path)
