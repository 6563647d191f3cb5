"""What storage asks of a disk: files that grow at their end, and directories of them.

Paths are relative to the disk's root, with "/" between their parts. Three promises, and nothing
that is not promised may be relied on:

1. Written is readable at once, and survives the end of this process, but not of the machine.
2. Flushed bytes of a file survive everything; so does the name of a file or directory once the
   directory that holds it has been flushed. The one does not imply the other.
3. A rename is atomic: after any crash the new name stands for the old or for the new file, whole.

Bytes that were written but not flushed may be there after a power failure in part, in any part.
Every failure is an OSError. After a failed flush nothing is known about the bytes it should have
kept, so trying again proves nothing: whoever gets the error stops writing for good.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview


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
    """What has been written; kept by us, since nobody else writes here."""

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write all buffers behind the end, in one call to the system if it takes them; the size
        of what was written. After an error a part of them may be there.
        """

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    def truncate(self, size: int) -> None:
        """Cut the file. Not durable before the next flush."""

    def reserve(self, size: int) -> None:
        """Let the file be so long, with zeros behind its end; what is appended goes behind them.

        For who looks at it from outside: nothing of ours reads the zeros.
        """

    def flush(self) -> None:
        """Bytes and size survive a power failure once this returns."""

    def descriptor(self) -> int:
        """The system's handle for this moment, or -1 where there is none; `share` to keep one."""

    def share(self) -> SharedFile:
        """A handle of its own for a flush on another thread."""

    def flushed(self, size: int) -> None:
        """A shared handle has flushed so many bytes; OSError if some were lost before that."""

    def moved_to(self, path: str) -> None:
        """The file has been renamed: where to open it again."""

    def close(self) -> None:
        """Give the handle back. Reading or writing opens it again."""


class SharedFile(Protocol):
    """A second handle on a file, whatever becomes of the first and of its name."""

    def flush(self) -> None:
        """As `File.flush`; on any thread."""

    def descriptor(self) -> int:
        """The system's handle, or -1 where there is none."""

    def close(self) -> None:
        """Give the handle back."""


class Lock(Protocol):
    """Holds a directory against other processes."""

    def release(self) -> None:
        """Let go."""


class Disk(Protocol):
    """Files below one root."""

    def open(self, path: str, *, create: bool = False) -> File:
        """An existing file, or a new empty one; FileNotFoundError or FileExistsError otherwise."""

    def list(self, path: str) -> builtins.list[Entry]:
        """What a directory holds, in no order."""

    def names(self, path: str) -> builtins.list[str]:
        """The bare names, where it does not matter what they stand for."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory has this name."""

    def size(self, path: str) -> int:
        """Bytes of a file."""

    def create_directory(self, path: str) -> None:
        """Fails if it is there."""

    def rename(self, old: str, new: str) -> None:
        """Within one directory; replaces a file of the new name."""

    def remove(self, path: str) -> None:
        """A file."""

    def remove_directory(self, path: str) -> None:
        """An empty directory."""

    def flush_directory(self, path: str) -> None:
        """The names in it survive a power failure once this returns."""

    def flush_all(self, files: Sequence[File], directories: Sequence[str]) -> None:
        """Flush them all, in any order and at once if that is quicker."""

    def lock(self, path: str) -> Lock:
        """Hold a lock file, or raise DirectoryLockedError."""


def write_whole(
    disk: Disk, path: str, content: bytes, *, suffix: str = ".tmp", lasting: bool = True
) -> None:
    """Replace a file in such a way that a crash leaves the old or the new content, never a mix.

    Flushing the file before the rename is what keeps a power failure from leaving an empty file
    under the good name; flushing the directory after it makes the change last. Whoever is going to
    flush the directory anyway before anything is promised asks for a change that is not `lasting`.
    """
    temporary = path + suffix
    if disk.exists(temporary):
        disk.remove(temporary)
    file = disk.open(temporary, create=True)
    try:
        file.append([content])
        file.flush()
    finally:
        file.close()
    disk.rename(temporary, path)
    if lasting:
        disk.flush_directory(parent(path))


def read_whole(disk: Disk, path: str) -> bytes | None:
    """A small file's content, or None if there is no such file."""
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None
    try:
        return file.read(0, file.size)
    finally:
        file.close()


def parent(path: str) -> str:
    """The directory that holds a path; "" is the root."""
    return path.rpartition("/")[0]


def remove_tree(disk: Disk, path: str) -> None:
    """A directory and all that is in it. A log directory is two levels deep."""
    for entry in sorted(disk.list(path)):
        child = f"{path}/{entry.name}"
        if entry.is_directory:
            remove_tree(disk, child)
        else:
            disk.remove(child)
    disk.remove_directory(path)
