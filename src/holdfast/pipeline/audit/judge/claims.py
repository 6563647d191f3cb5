"""Finds the producers of records that no acknowledged send claims at its own offset.

It matches by content, one record for one send, in this order: sends that were acknowledged without
an offset; sends without an answer; refused ones; and only then acknowledged sends whose own offset
does not hold them. The last must wait: a record that an unanswered send explains is no proof that
an acknowledged one was kept. An unclaimed record is a duplicate if a ledger has its content, and
otherwise another producer's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.pipeline.audit.jobs.row_types import ACKED, UNKNOWN, Bools, Ints, Table


class Claims(NamedTuple):
    """Indices: into the records, and into the sends that claim them."""

    records: Ints
    sends: Ints


class Settled(NamedTuple):
    opened: Claims
    """Claimed by sends without an offset of their own."""
    moved: Claims
    """Claimed by acknowledged sends that are not at their offset."""
    rest: Ints
    """Unclaimed records."""


def settle(
    records: Table,
    record_partitions: Ints,
    opened: Table,
    opened_partitions: Ints,
    strayed: Table,
    strayed_partitions: Ints,
) -> Settled:
    """Match the sends and records of one topic. A send of unknown partition may be in any."""
    is_free = np.ones(len(records), np.bool_)
    is_open = np.ones(len(opened), np.bool_)
    # Acknowledged sends first, then by their age.
    rank = np.where(opened["result"] == ACKED, 0, np.where(opened["result"] == UNKNOWN, 1, 2))
    by_rank = np.lexsort((opened["sequence"], opened["time"], rank))
    pairs = []
    for is_known in (True, False):
        candidates = by_rank[is_open[by_rank] & ((opened_partitions[by_rank] >= 0) == is_known)]
        free = np.flatnonzero(is_free)
        mine, theirs = _pairs(
            _identities(records[free], record_partitions[free] if is_known else None),
            _identities(opened[candidates], opened_partitions[candidates] if is_known else None),
        )
        pairs.append(Claims(free[mine], candidates[theirs]))
        is_free[free[mine]] = False
        is_open[candidates[theirs]] = False
    free = np.flatnonzero(is_free)
    mine, theirs = _pairs(
        _identities(records[free], record_partitions[free]),
        _identities(strayed, strayed_partitions),
    )
    moved = Claims(free[mine], theirs)
    is_free[free[mine]] = False
    both = Claims(*(np.concatenate(part) for part in zip(*pairs, strict=True)))
    return Settled(both, moved, np.flatnonzero(is_free))


def _identities(rows: Table, partitions: Ints | None) -> npt.NDArray[Any]:
    identities = np.zeros(len(rows), [("partition", "<i8"), ("key", "<i8"), ("value", "<i8")])
    if partitions is not None:
        identities["partition"] = partitions
    identities["key"], identities["value"] = rows["key"], rows["value"]
    return identities


def _pairs(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Pairs equal ones: the first with the first, the second with the second, …"""
    _, group = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    mine, other = _numbered(group[: len(ours)]), _numbered(group[len(ours) :])
    _, at, their_at = np.intersect1d(mine, other, assume_unique=True, return_indices=True)
    return at, their_at


def _numbered(groups: npt.NDArray[np.intp]) -> Ints:
    """Numbers equal ones by their order: group and place in it."""
    order = np.argsort(groups, kind="stable")
    ranked = groups[order]
    starts = np.flatnonzero(np.diff(ranked, prepend=-1))
    sizes = np.diff(np.append(starts, len(ranked)))
    numbers = np.empty(len(groups), np.int64)
    numbers[order] = ranked * (1 << 31) + np.arange(len(ranked)) - np.repeat(starts, sizes)
    return numbers


def digests(rows: Table) -> Ints:
    """One number per content, for searching; equal contents have equal numbers."""
    # Odd factors, so that no bit is lost; numpy's integers wrap around.
    mixed: Ints = rows["key"] * np.int64(-7046029254386353131) ^ (
        rows["value"] * np.int64(-4417276706812531889)
    )
    return mixed


def known(rows: Table, contents: npt.NDArray[Any]) -> Bools:
    """Which rows have a content that a ledger has; `contents` has key and value."""
    return np.isin(_identities(rows, None), _identities(contents, None))
