"""The files of one segment: their names, their handles, their renaming and deletion."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from holdfast.model import Offset
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.disk import Disk, File, read_whole
from holdfast.storage.file_names import DELETED, LOG, SEGMENT_KINDS, file_name


class Slice(NamedTuple):
    """Whole batches in a file. Read it immediately: it is valid until the log changes."""

    file: File
    position: int
    size: int

    def read(self) -> bytes:
        """The bytes."""
        return self.file.read(self.position, self.size)


class SegmentFiles:
    """The files of a segment, opened when needed."""

    __slots__ = ("_file", "base_offset", "directory", "disk", "state")

    base_offset: Offset
    state: str
    """Empty while in use; otherwise the ending of its file names."""

    def __init__(self, disk: Disk, directory: str, base_offset: int) -> None:
        self.disk = disk
        self.directory = directory
        self.base_offset = Offset(base_offset)
        self.state = ""
        self._file: File | None = None

    def path(self, kind: str) -> str:
        """The path of one of its files."""
        return f"{self.directory}/{file_name(self.base_offset, kind, self.state)}"

    @property
    def file(self) -> File:
        """The log file, opened on first use."""
        file = self._file
        if file is None:
            file = self._file = self.disk.open(self.path(LOG))
        return file

    @property
    def size(self) -> int:
        """The size of the log file."""
        return self.file.size if self._file is not None else self.disk.size(self.path(LOG))

    def rename_to(self, state: str) -> list[str]:
        """Rename all its files to a new state; returns the new paths. Readers keep their handle."""
        paths = []
        for kind in reversed(SEGMENT_KINDS):
            old = self.path(kind)
            new = f"{self.directory}/{file_name(self.base_offset, kind, state)}"
            if self.disk.exists(old):
                self.disk.rename(old, new)
                paths.append(new)
        if self._file is not None:
            self._file.moved_to(f"{self.directory}/{file_name(self.base_offset, LOG, state)}")
        self.state = state
        return paths

    def mark_deleted(self) -> list[str]:
        """Rename the files out of the log; they are removed later."""
        return self.rename_to(DELETED)

    def rewrite(self, kind: str, content: bytes) -> None:
        """Rewrite in place: only an index above the recovery point can be torn, and is rebuilt."""
        path = self.path(kind)
        with closing(self.disk.open(path, create=not self.disk.exists(path))) as file:
            if file.size:
                file.truncate(0)
            file.append([content])

    def content(self, kind: str) -> tuple[int, bytes, str]:
        """Base offset, content and path of an index file. Raises DamagedFileError if missing."""
        path = self.path(kind)
        content = read_whole(self.disk, path)
        if content is None:
            raise DamagedFileError(path, "missing")
        return self.base_offset, content, path

    def close(self) -> None:
        """Close the handle."""
        if self._file is not None:
            self._file.close()
