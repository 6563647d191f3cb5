"""What happened lately, for the overview: one line for all partitions that share an event."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

MOST_LINES: Final = 80
MOST_NAMED: Final = 4
TOGETHER_MS: Final = 2_000
LISTED: Final = (
    *("elected", "isr-committed", "truncated", "went-offline", "disk-failed", "controller"),
    *("crashed", "power-lost", "stopped", "restarted", "paused", "resumed", "session-expired"),
    *("cut", "healed", "disk-lost", "reassigned"),
)
"""The kinds of events that are listed."""


class EventList:
    """The newest lines, oldest first."""

    def __init__(self) -> None:
        self._lines: deque[dict[str, Any]] = deque(maxlen=MOST_LINES)

    def add(self, t: int, partition: str, text: str) -> None:
        """Add an event of a partition, or of a whole broker (no partition)."""
        for line in self._lines:
            if line["text"] == text and t - line["t"] < TOGETHER_MS and partition:
                line["count"] += 1
                if len(line["names"]) < MOST_NAMED:
                    line["names"].append(partition)
                return
        names = [partition] if partition else []
        self._lines.append({"t": t, "text": text, "names": names, "count": len(names)})

    def newest(self) -> list[dict[str, Any]]:
        """The lines as they are now, newest first."""
        return [dict(line) for line in reversed(self._lines)]
