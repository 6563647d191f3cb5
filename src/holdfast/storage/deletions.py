"""Files that are out of use and go later, when no reader can still be inside them.

They have their `.deleted` names already, so a crash costs nothing: the next start removes them.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.storage.disk import Disk
from holdfast.storage.segment import Segment


class PendingDeletion(NamedTuple):
    """Files out of use, and when they may go."""

    due_ms: int
    paths: list[str]
    segment: Segment


class Deletions:
    """What one log has given up and not yet removed."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.pending: list[PendingDeletion] = []

    def schedule(self, segment: Segment, paths: list[str], due_ms: int) -> None:
        """Remove these files later."""
        self.pending.append(PendingDeletion(due_ms, paths, segment))

    def take_due(self, now_ms: int) -> list[str]:
        """The files whose time has come; the caller removes them."""
        if not self.pending:
            return []
        due = [one for one in self.pending if one.due_ms <= now_ms]
        self.pending = [one for one in self.pending if one.due_ms > now_ms]
        for one in due:
            one.segment.close()
        return [path for one in due for path in one.paths]

    def close(self) -> None:
        """Give the handles back."""
        for one in self.pending:
            one.segment.close()
