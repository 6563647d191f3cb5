"""The open transactions of a log, and the last stable offset."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.model import Offset, ProducerId


class CompletedTransaction(NamedTuple):
    """A transaction whose marker is in the log."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    """The offset of the marker."""
    is_aborted: bool
    last_stable_offset: Offset
    """The last stable offset once the marker is committed, for the transaction index."""


class OpenTransactions:
    """The transactions that hold back the last stable offset."""

    __slots__ = ("_open", "_unreplicated")

    _open: dict[ProducerId, Offset]
    """First offsets by producer, in the order the transactions began."""
    _unreplicated: deque[CompletedTransaction]
    """Ended, but the marker is not yet known to be committed: still unstable."""

    def __init__(self, begun: Iterable[tuple[Offset, ProducerId]] = ()) -> None:
        self._open = {producer_id: first for first, producer_id in sorted(begun)}
        self._unreplicated = deque()

    def begin(self, producer_id: ProducerId, first_offset: Offset) -> None:
        """A producer's first transactional batch since its last marker."""
        self._open[producer_id] = first_offset

    def end(
        self, producer_id: ProducerId, marker_offset: Offset, *, is_aborted: bool
    ) -> CompletedTransaction | None:
        """A marker was found; None if its transaction has no records here."""
        first = self._open.pop(producer_id, None)
        if first is None:
            return None
        stable = next(iter(self._open.values()), Offset(marker_offset + 1))
        ended = CompletedTransaction(producer_id, first, marker_offset, is_aborted, stable)
        self._unreplicated.append(ended)
        return ended

    def last_stable_offset(self, high_watermark: int) -> int:
        """First offset that a read_committed reader may not see.

        An ended transaction counts as open until its marker is committed: a marker that is
        truncated again would leave records visible whose fate is undecided.
        """
        if not self._open and not self._unreplicated:
            return high_watermark
        while self._unreplicated and self._unreplicated[0].last_offset < high_watermark:
            self._unreplicated.popleft()
        return min(
            high_watermark,
            next(iter(self._open.values()), high_watermark),
            min((one.first_offset for one in self._unreplicated), default=high_watermark),
        )

    def abandon(self) -> dict[ProducerId, Offset]:
        """Count all open transactions as ended; returns their first offsets by producer."""
        abandoned, self._open = self._open, {}
        return abandoned
