"""Deletes unused files later, when no reader can still be inside them.

The files already have their `.deleted` names, so a crash does no harm: the next start removes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from holdfast.storage.disk import Disk, remove_tree
from holdfast.storage.segment.segment import Segment


class PendingDeletion(NamedTuple):
    """Unused files, and when they may be removed."""

    due_ms: int
    paths: list[str]
    segment: Segment


class Removal:
    """Files whose delay is over. `run` waits for the disk; any thread may call it."""

    def __init__(self, disk: Disk, directories: Sequence[str], paths: Sequence[str]) -> None:
        self._disk = disk
        self.directories = directories
        self._paths = paths

    def __bool__(self) -> bool:
        return bool(self.directories or self._paths)

    def run(self) -> None:
        """Remove them. Raises OSError if the disk fails; the next start removes the rest."""
        if self.directories:
            # A directory must not come back under its old name with only some of its files.
            self._disk.flush_directory("")
        for name in self.directories:
            remove_tree(self._disk, name)
        for path in self._paths:
            # The whole log may have been deleted or renamed meanwhile.
            with suppress(FileNotFoundError):
                self._disk.remove(path)


class Deletions:
    """The pending deletions of one log."""

    def __init__(self) -> None:
        self.pending: list[PendingDeletion] = []

    def schedule(self, segment: Segment, paths: list[str], due_ms: int) -> None:
        """Remove these files later. They replaced earlier files of the same names."""
        again = dict.fromkeys(paths)
        for one in self.pending:
            one.paths[:] = [path for path in one.paths if path not in again]
        self.pending.append(PendingDeletion(due_ms, paths, segment))

    def take_due(self, now_ms: int) -> list[str]:
        """The files that are due; the caller removes them."""
        if not self.pending:
            return []
        due = [one for one in self.pending if one.due_ms <= now_ms]
        self.pending = [one for one in self.pending if one.due_ms > now_ms]
        for one in due:
            one.segment.close()
        return [path for one in due for path in one.paths]

    def close(self) -> None:
        """Close the handles."""
        for one in self.pending:
            one.segment.close()
