"""Replaces small files of one disk while the event loop runs; the wait is on another thread.

The thread that owns the disk creates a `BackgroundWrite` and calls `put_in_place` and `close`.
Another thread calls `flush` and `flush_names`, which only wait. The order is that of `write_whole`:
content, its flush, the rename, the flush of the names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from holdfast.storage.disk import Disk, File, SharedFile, create_file

SUFFIX = ".new"
"""Differs from that of `write_whole`, which may replace the same file meanwhile."""


class _Next(NamedTuple):
    path: str
    file: File
    handle: SharedFile


class BackgroundWrite:
    """New content for files in the disk's root, under temporary names."""

    def __init__(self, disk: Disk, contents: Mapping[str, bytes]) -> None:
        self._disk = disk
        self._files: list[_Next] = []
        try:
            for path, content in contents.items():
                self._write(path, content)
        except OSError:
            self.close()
            raise

    def _write(self, path: str, content: bytes) -> None:
        file = create_file(self._disk, path + SUFFIX, content)
        try:
            self._files.append(_Next(path, file, file.share()))
        except OSError:
            file.close()
            raise

    def flush(self) -> None:
        """Wait for the content. Raises OSError if the disk fails."""
        for one in self._files:
            one.handle.flush()

    def put_in_place(self, is_newest: Callable[[str], bool]) -> None:
        """Give each file its name, unless newer content already has it."""
        for path, file, _ in self._files:
            file.flushed(file.size)
            if is_newest(path):
                self._disk.rename(path + SUFFIX, path)
            else:
                self._disk.remove(path + SUFFIX)

    def flush_names(self) -> None:
        """Wait for the names. Raises OSError if the disk fails."""
        self._disk.flush_directory("")

    def close(self) -> None:
        """Close the handles."""
        for _, file, handle in self._files:
            handle.close()
            file.close()
        self._files.clear()
