"""Which group to look at next, without looking at all of them.

A heap with one valid entry for each group, never later than the group's own next deadline. It may
be earlier: heartbeats move deadlines away all the time, and looking once too often costs less than
tidying up each time.
"""

from __future__ import annotations

from heapq import heappop, heappush


class Deadlines:
    """When each group wants to be looked at."""

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
        """Whether the group will be looked at in time."""
        noted_ms = self._noted.get(group_id)
        return noted_ms is not None and noted_ms <= deadline_ms

    def next_ms(self) -> int | None:
        """The earliest of all."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_ms: int) -> list[str]:
        """The groups to look at now. Each must be noted again, if it has another deadline."""
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
        """An entry that an earlier one has overtaken."""
        heap, noted = self._heap, self._noted
        while heap and noted.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
