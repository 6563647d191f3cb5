"""Checks the order within a stretch: of one producer's sends, and of one consumer's deliveries.

Across stretches the least and the greatest number of each decide (`spans`); only stretches whose
spans overlap are checked again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.pipeline.audit.jobs.row_types import Bools, Ints, Table

_ROOM = np.int64(1 << 44)
"""More sends than one ledger will ever have, with room for 2^19 ledgers above."""


class Span(NamedTuple):
    """The least and the greatest sequence of one group in one stretch."""

    group: int
    least: int
    greatest: int


def group_of(rows: Table, is_delivery: bool) -> Ints:
    """A producer; or a consumer and its assignment: a new assignment may begin anywhere."""
    who = rows["who"].astype(np.int64)
    return (who << 24) | rows["delay"] if is_delivery else who


def spans(groups: Ints, sequences: Ints) -> list[Span]:
    if not len(groups):
        return []
    order = np.lexsort((sequences, groups))
    starts = np.flatnonzero(np.diff(groups[order], prepend=groups[order][0] - 1))
    ends = np.append(starts[1:], len(order)) - 1
    return [
        Span(int(groups[order[start]]), int(sequences[order[start]]), int(sequences[order[end]]))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def reordered(offsets: Ints, groups: Ints, sequences: Ints) -> Bools:
    """Which sends come after one that their producer sent later."""
    order = np.lexsort((offsets, groups))
    ranked = _ranked(groups[order], sequences[order])
    before = np.maximum.accumulate(ranked)
    is_late = np.zeros(len(offsets), np.bool_)
    is_late[order] = ranked < before
    return is_late


def stepped_back(offsets: Ints, groups: Ints, sequences: Ints) -> Bools:
    """Which deliveries came after the same or a later offset had been delivered."""
    order = np.lexsort((-sequences, offsets, groups))[::-1]
    ranked = _ranked(groups[order], sequences[order])
    before = np.minimum.accumulate(ranked)
    is_back = np.zeros(len(offsets), np.bool_)
    is_back[order] = ranked > before
    return is_back


def _ranked(groups: Ints, sequences: Ints) -> Ints:
    """Numbers that cannot be confused with another group's. `groups` are sorted, either way."""
    rank: npt.NDArray[Any] = np.cumsum(np.diff(groups, prepend=groups[:1]) != 0)
    if len(groups) and groups[0] > groups[-1]:
        rank = rank[-1] - rank
    return rank * _ROOM + sequences
