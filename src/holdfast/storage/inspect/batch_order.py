"""Compares the offsets and leader epochs of batches, which no CRC covers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from holdfast.storage.segment.batch_scan import Run
from holdfast.storage.segment.damage import OFFSETS, Doubt, Fault

MOST_OFFSETS = 1 << 31
"""The maximum within a segment: its indexes have no room for more."""


class Span(NamedTuple):
    """The offsets that a segment may hold."""

    base: int
    upper: int | None
    """Where the next segment begins; None for the last one, which may be growing."""

    @property
    def limit(self) -> int:
        """The first offset that cannot be in it."""
        most = self.base + MOST_OFFSETS
        return most if self.upper is None else min(self.upper, most)

    def holds(self, offset: int) -> bool:
        return self.base <= offset < self.limit


class BatchOrder:
    """What the batches so far lead to expect of the next one."""

    def __init__(self, end: int | None) -> None:
        self.end = end
        """The end offset of the last batch that is not in doubt; None if unknown."""
        self.epoch = -1
        """The highest leader epoch."""

    def doubted(self, run: Run, span: Span, base_at: Callable[[int], int | None]) -> Run:
        """The run with its doubts. `base_at` reads the base offset of the batch at a position.

        A batch whose offset cannot be true leads to expect nothing.
        """
        doubts: list[Doubt] = []
        end, epoch, limit = self.end, self.epoch, span.limit
        for nth, fields in enumerate(run.batches):
            base = fields[0]
            after = base + fields[6] + 1
            if base == end and fields[2] == epoch and after <= limit:
                end = after
                continue
            doubt = _offset_doubt(run, nth, end, span, base_at)
            if doubt is not None:
                doubts.append(doubt)
            if 0 <= fields[2] < epoch:
                reason = f"leader epoch {fields[2]} after {epoch}"
                doubts.append(Doubt(nth, Fault.EPOCH_DOWN, reason))
            epoch = max(epoch, fields[2])
            if doubt is None or doubt.fault not in OFFSETS:
                end = after
        self.end, self.epoch = end, epoch
        return run._replace(doubts=doubts) if doubts else run


def _offset_doubt(
    run: Run, nth: int, end: int | None, span: Span, base_at: Callable[[int], int | None]
) -> Doubt | None:
    base = run.batches[nth][0]
    last = base + run.batches[nth][6]
    if not (span.holds(base) and span.holds(last)):
        reason = f"offsets {base} to {last} do not belong in this segment"
        return Doubt(nth, Fault.STRAY, reason)
    if end is None or base == end:
        return None
    if base < end:
        return Doubt(nth, Fault.BACKWARD, f"expected {end} or more")
    following = run.batches[nth + 1][0] if nth + 1 < len(run.batches) else base_at(run.end)
    if following is not None and following <= base:
        return Doubt(nth, Fault.LEAP, f"offset {base} before a batch with offset {following}")
    return Doubt(nth, Fault.GAP, "")
