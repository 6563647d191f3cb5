"""A directory of a simulated disk, used as a disk of its own: one of several log directories.

One `ByteDisk` is the whole storage of a machine, so a power failure affects all of it. A fault
whose path begins with the directory's name affects this directory only.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from holdfast.simulation.disk.byte_disk import ByteDisk, ByteFile, ByteLock
from holdfast.storage.disk import Entry, File


class DiskFolder:
    """Everything below one directory of a disk."""

    def __init__(self, disk: ByteDisk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        if not disk.exists(folder):
            disk.create_directory(folder)
            disk.flush_directory("")

    def _full(self, path: str) -> str:
        return f"{self._folder}/{path}" if path else self._folder

    def open(self, path: str, *, create: bool = False) -> ByteFile:
        return self._disk.open(self._full(path), create=create)

    def list(self, path: str) -> builtins.list[Entry]:
        return self._disk.list(self._full(path))

    def names(self, path: str) -> builtins.list[str]:
        return self._disk.names(self._full(path))

    def exists(self, path: str) -> bool:
        return self._disk.exists(self._full(path))

    def size(self, path: str) -> int:
        return self._disk.size(self._full(path))

    def create_directory(self, path: str) -> None:
        self._disk.create_directory(self._full(path))

    def rename(self, old: str, new: str) -> None:
        self._disk.rename(self._full(old), self._full(new))

    def remove(self, path: str) -> None:
        self._disk.remove(self._full(path))

    def remove_directory(self, path: str) -> None:
        self._disk.remove_directory(self._full(path))

    def flush_directory(self, path: str) -> None:
        self._disk.flush_directory(self._full(path))

    def flush_all(self, files: Sequence[File], directories: Sequence[str]) -> None:
        self._disk.flush_all(files, [*map(self._full, directories)])

    def lock(self, path: str) -> ByteLock:
        return self._disk.lock(self._full(path))
