"""Waiting requests: producers wait for the high watermark, fetches for records."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.model import Offset


class WaitingAck(NamedTuple):
    """An acks=all producer whose batch ends at `end_offset`."""

    end_offset: Offset
    base_offset: Offset
    deadline_ms: int
    waiter: object


def _by_end(waiting: WaitingAck) -> int:
    return waiting.end_offset


class WaitingAcks:
    """Producers that wait for the high watermark, in the order of their offsets."""

    __slots__ = ("_queue",)

    def __init__(self) -> None:
        self._queue: deque[WaitingAck] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, waiting: WaitingAck) -> None:
        """Add a producer. Only a retry of an older batch is inserted in the middle."""
        queue = self._queue
        if queue and queue[-1].end_offset > waiting.end_offset:
            insort(queue, waiting, key=_by_end)
        else:
            queue.append(waiting)

    def take_up_to(self, high_watermark: Offset) -> Iterator[WaitingAck]:
        """Remove and return those whose batch is committed."""
        queue = self._queue
        while queue and queue[0].end_offset <= high_watermark:
            yield queue.popleft()

    def take_all(self) -> list[WaitingAck]:
        """Remove and return all."""
        taken = list(self._queue)
        self._queue.clear()
        return taken

    def take_expired(self, now_ms: int) -> list[WaitingAck]:
        """Remove and return those whose deadline has passed."""
        expired = [one for one in self._queue if one.deadline_ms <= now_ms]
        if expired:
            self._queue = deque(one for one in self._queue if one.deadline_ms > now_ms)
        return expired


class ParkedFetches:
    """Fetches with nothing to send yet, by their driver's handle and with a deadline."""

    __slots__ = ("_deadlines",)

    def __init__(self) -> None:
        self._deadlines: dict[object, int] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def park(self, waiter: object, deadline_ms: int) -> None:
        """Let a request wait. It replaces an older request with the same handle."""
        self._deadlines[waiter] = deadline_ms

    def unpark(self, waiter: object) -> bool:
        """Drop a request; return whether it was there."""
        return self._deadlines.pop(waiter, None) is not None

    def take_all(self) -> list[object]:
        """Remove and return all, in the order of parking."""
        taken = list(self._deadlines)
        self._deadlines.clear()
        return taken

    def take_expired(self, now_ms: int) -> list[object]:
        """Remove and return those whose deadline has passed."""
        expired = [waiter for waiter, deadline in self._deadlines.items() if deadline <= now_ms]
        for waiter in expired:
            del self._deadlines[waiter]
        return expired
