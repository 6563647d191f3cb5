"""A real disk that can hang: every call waits until the test releases it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from holdfast.storage import RealDisk
from holdfast.storage.real_disk import RealFile, RealSharedFile

LONGEST_S = 120.0
"""A loop that hangs in here must not hang for ever."""

Hits = Callable[[str, str], bool]
"""Whether a call hangs: its kind (flush, flush_directory, remove) and its path."""


class StuckFile(RealFile):
    __slots__ = ()

    _disk: StuckDisk

    def flush(self) -> None:
        self._disk.pass_by("flush", self.path)
        super().flush()

    def share(self) -> RealSharedFile:
        return StuckSharedFile(self._disk, self.path, super().share())


class StuckSharedFile(RealSharedFile):
    __slots__ = ("_disk", "_handle", "_path")

    def __init__(self, disk: StuckDisk, path: str, handle: RealSharedFile) -> None:
        super().__init__(handle.descriptor())
        self._disk, self._path, self._handle = disk, path, handle

    def flush(self) -> None:
        self._disk.pass_by("flush", self._path)
        super().flush()


class StuckDisk(RealDisk):
    """Hangs from `hang` to `release`."""

    file_kind = StuckFile

    def __init__(self, root: str | Path) -> None:
        super().__init__(root)
        self._hits: Hits | None = None
        self._released = threading.Event()
        self.hanging: dict[tuple[str, str], None] = {}
        """The calls that hang now."""
        self.gave_up = False

    def hang(self, hits: Hits) -> None:
        """Calls like these do not return from now on."""
        self._released.clear()
        self._hits = hits

    def release(self) -> None:
        """Let all calls return again."""
        self._hits = None
        self._released.set()

    def pass_by(self, what: str, path: str) -> None:
        if self._hits is None or not self._hits(what, path):
            return
        self.hanging[what, path] = None
        self.gave_up |= not self._released.wait(LONGEST_S)
        del self.hanging[what, path]

    def flush_directory(self, path: str) -> None:
        self.pass_by("flush_directory", path)
        super().flush_directory(path)

    def remove(self, path: str) -> None:
        self.pass_by("remove", path)
        super().remove(path)
