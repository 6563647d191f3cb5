"""The roles of a replica and the moves between them.

Two rules. (1) A role changes in `become_leader`, `become_follower` and `go_offline` only. (2) A
move that is not in `MOVES` is a bug in Holdfast and raises. A replica that went offline stays so
until its process starts again: its log has failed, and its content is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.replica.follower import Follower
from holdfast.core.replica.leader import Leader


class Offline:
    """Refuses every request. `reason` is for the log."""

    __slots__ = ("failed", "reason")

    def __init__(self, reason: str, *, failed: bool) -> None:
        self.reason = reason
        self.failed = failed
        """True if the log is broken, False if this replica has no role yet."""


Role = Leader | Follower | Offline

MOVES: Mapping[tuple[str, str], str] = {
    ("Offline", "Leader"): "leads after a start",
    ("Offline", "Follower"): "follows after a start",
    ("Leader", "Leader"): "re-elected in a later epoch",
    ("Leader", "Follower"): "another leads in a later epoch",
    ("Follower", "Leader"): "elected",
    ("Follower", "Follower"): "another leads in a later epoch",
    ("Leader", "Offline"): "its log failed",
    ("Follower", "Offline"): "its log failed",
    ("Offline", "Offline"): "its log failed before it had a role",
}


def check_move(before: Role, after: Role) -> None:
    """Raise if no rule allows this move."""
    move = (type(before).__name__, type(after).__name__)
    assert move in MOVES, f"illegal move {move}"
    assert not (isinstance(before, Offline) and before.failed), "a failed log stays offline"
