"""Counts durations in buckets."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

REQUEST_BOUNDS_S: Final = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Upper bounds for what waits for other brokers or clients."""
DELAY_BOUNDS_S: Final = REQUEST_BOUNDS_S[:-2]
"""Upper bounds for the disk and the event loop."""


class Histogram:
    """How many observed values are at most as large as each bound, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    counts: list[int]
    """By bucket; the last one is for values above all bounds."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def add(self, other: Histogram) -> None:
        """Include the values of another one with the same bounds."""
        self.counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self.counts)
