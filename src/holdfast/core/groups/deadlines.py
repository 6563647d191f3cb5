"""The group with the next deadline, without a scan of all groups.

A heap with one valid entry per group, never later than the group's own next deadline. It may be
earlier: every heartbeat moves a deadline, and one check too many costs less than an update of the
heap for each heartbeat.
"""

from __future__ import annotations

from heapq import heappop, heappush


class Deadlines:
    """When to check each group next."""

    __slots__ = ("_heap", "_noted")

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._noted: dict[str, int] = {}

    def note(self, group_id: str, deadline_ms: int | None) -> None:
        """The group has this next deadline."""
        if deadline_ms is None:
            return
        noted_ms = self._noted.get(group_id)
        if noted_ms is None or deadline_ms < noted_ms:
            self._noted[group_id] = deadline_ms
            heappush(self._heap, (deadline_ms, group_id))

    def covers(self, group_id: str, deadline_ms: int) -> bool:
        """Whether the group will be checked by this deadline."""
        noted_ms = self._noted.get(group_id)
        return noted_ms is not None and noted_ms <= deadline_ms

    def next_ms(self) -> int | None:
        """The earliest of all."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_ms: int) -> list[str]:
        """The groups to check now. Each must be noted again, if it has another deadline."""
        due: list[str] = []
        self._drop_stale()
        # At most one round for each entry: nothing is pushed here.
        while self._heap and self._heap[0][0] <= now_ms:
            _, group_id = heappop(self._heap)
            del self._noted[group_id]
            due.append(group_id)
            self._drop_stale()
        return due

    def _drop_stale(self) -> None:
        """Drop entries that an earlier one of the same group replaced."""
        heap, noted = self._heap, self._noted
        while heap and noted.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
