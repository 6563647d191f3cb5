"""Judges one stretch of one partition: everything about its offsets is available together.

Sends, every copy's records, the table's rows and the consumers' deliveries are joined by offset.
docs/audit.md has the rules with their reasons. Pure: rows in, findings out; Spark only brings the
rows here.

A send claims the record at the offset it was acknowledged with, if the content is equal. What
cannot be decided within a stretch is passed on: unclaimed records (`left`), acknowledged sends
without their record (kind "lost" until the record is found elsewhere), and rows of readers that no
log has (kind "phantom" until a ledger has them).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.recfunctions import repack_fields

from holdfast.pipeline.audit.findings.details import AT_CONSUMED, AT_TABLE, KIND_NUMBER, Why
from holdfast.pipeline.audit.findings.finding_tables import folded, found
from holdfast.pipeline.audit.findings.findings import (
    DUPLICATE,
    EXPIRED,
    INCONSISTENT,
    LOST,
    NON_MONOTONIC,
    PHANTOM,
    REORDERED,
    SKIPPED,
    UNDECIDED,
    UNSEEN_TAIL,
)
from holdfast.pipeline.audit.jobs.row_types import (
    CONSUMED_BIT,
    TABLE_BIT,
    Bools,
    Ints,
    Table,
)
from holdfast.pipeline.audit.judge import replica_differences
from holdfast.pipeline.audit.judge.order import Span, group_of, reordered, spans, stepped_back
from holdfast.pipeline.audit.replicas.side_by_side import Copies

READERS = np.uint64(TABLE_BIT | CONSUMED_BIT)


class Expectation(NamedTuple):
    """What a reader should have of one partition: the offsets [first, end)."""

    first: int
    end: int


class Rules(NamedTuple):
    is_partial: bool
    """A broker's directory is missing."""
    min_insync: int
    is_acks_all: Bools
    """By producer."""


class Reading(NamedTuple):
    """The rows of a stretch in the table, or of all consumers."""

    place: int
    rows: Table
    expected: Expectation

    @property
    def bit(self) -> np.uint64:
        return TABLE_BIT if self.place == AT_TABLE else CONSUMED_BIT


class Judged(NamedTuple):
    facts: dict[str, Any]
    """Counts, as JSON can carry them."""
    found: Table
    left: Table
    """Records of the truth that no acknowledged send claims."""


class Sends(NamedTuple):
    """The acknowledged sends of a stretch, by offset."""

    rows: Table
    places: Ints
    is_claimed: Bools
    """The record is at its offset in the truth."""
    is_same: Bools
    """Preliminary: if two sends got one offset, only one of them has the record."""


def judge(copies: Copies, sends: Table, readings: Sequence[Reading], rules: Rules) -> Judged:
    """Everything that the stretch alone can decide."""
    claims = _claims(copies, sends)
    missing = _missing(copies, claims, rules)
    tables = [missing]
    facts: dict[str, Any] = {}
    for reading in readings:
        seen, findings = _read(copies, claims, missing, reading)
        facts["table" if reading.place == AT_TABLE else "consumed"] = seen
        tables += findings
    _note_readers(missing, readings)
    is_lost = _marked(copies, missing)
    tables.append(replica_differences.too_few(copies, claims.rows[claims.is_claimed], rules))
    tables += replica_differences.differences(copies, is_lost)
    kept = claims.rows[claims.is_claimed]
    groups = group_of(kept, is_delivery=False)
    is_late = reordered(kept["offset"], groups, kept["sequence"])
    tables.append(found(REORDERED, kept["offset"][is_late], row=kept[is_late]))
    facts["order"] = spans(groups, kept["sequence"])
    facts["polls"] = []
    for reading in readings:
        if reading.place == AT_CONSUMED:
            polls, back = _polls(reading)
            facts["polls"] = polls
            tables.append(back)
    facts |= _counts(copies, claims, missing)
    return Judged(facts, np.concatenate(tables), _left(copies, claims))


def _claims(copies: Copies, sends: Table) -> Sends:
    rows = sends[np.lexsort((sends["sequence"], sends["who"], sends["offset"]))]
    places = rows["offset"] - copies.first
    is_same = _matches(rows, copies.records, copies.at[places])
    is_claimed = np.zeros(len(rows), np.bool_)
    same = np.flatnonzero(is_same)
    is_claimed[same[np.unique(places[same], return_index=True)[1]]] = True
    return Sends(rows, places, is_claimed, is_same)


def _matches(rows: Table, others: Table, at: npt.NDArray[Any]) -> Bools:
    """Which rows equal their counterpart; none has one where `at` is below 0."""
    if not len(others):
        return np.zeros(len(rows), np.bool_)
    theirs = others[at]
    same: Bools = (at >= 0) & (theirs["key"] == rows["key"]) & (theirs["value"] == rows["value"])
    return same


def _missing(copies: Copies, claims: Sends, rules: Rules) -> Table:
    """Acknowledged sends that the truth lacks: lost, expired, or undecided."""
    is_missing = ~claims.is_claimed
    rows, places = claims.rows[is_missing], claims.places[is_missing]
    table = found(LOST, rows["offset"], row=rows)
    truth = copies.truth
    if not len(rows):
        return table
    if truth is None:
        table["kind"] = KIND_NUMBER[UNDECIDED]
        table["why"] = Why.PARTIAL if rules.is_partial else Why.NO_LOG
        return table
    offsets = rows["offset"]
    why = np.where(offsets >= truth.end, Why.BEYOND, Why.ABSENT)
    why = np.where(copies.at[places] >= 0, Why.OTHER, why)
    table["why"] = np.where(claims.is_same[is_missing], Why.TWICE, why)
    table["has"] = copies.holders_of(rows)
    table["lacks"] = copies.everyone & ~table["has"]
    is_unreadable = copies.is_unreadable[places]
    table["why"][is_unreadable] = Why.NO_COPY
    is_out_of_reach = copies.is_out_of_reach[places]
    for is_doubtful, reason in ((is_out_of_reach, Why.UNREADABLE), (rules.is_partial, Why.PARTIAL)):
        doubtful = np.broadcast_to(is_doubtful, len(rows))
        table["kind"][doubtful] = KIND_NUMBER[UNDECIDED]
        table["why"][doubtful] = reason
    oldest = min(replica.start for replica in copies.replicas)
    is_expired = (offsets < truth.start) & ((offsets < oldest) | (table["has"] > 0))
    table["kind"][is_expired] = KIND_NUMBER[EXPIRED]
    table["why"][is_expired] = Why.NONE
    return table


def _note_readers(missing: Table, readings: Sequence[Reading]) -> None:
    """A reader may still have what the truth lacks."""
    for reading in readings:
        at = _first_at(reading.rows, missing["first"])
        has = _matches(missing["row"], reading.rows, at)
        missing["has"][has] |= reading.bit
        missing["lacks"][~has] |= reading.bit


def _first_at(rows: Table, offsets: Ints) -> Ints:
    """The first row with the offset, or -1. `rows` are sorted by offset."""
    if not len(rows):
        return np.full(len(offsets), -1, np.int64)
    at = np.searchsorted(rows["offset"], offsets)
    is_there = rows["offset"][np.minimum(at, len(rows) - 1)] == offsets
    return np.where(is_there & (at < len(rows)), at, -1)


def _read(
    copies: Copies, claims: Sends, missing: Table, reading: Reading
) -> tuple[int, list[Table]]:
    """The number of acknowledged records that a reader has, and what is wrong with its rows."""
    rows, expected = reading.rows, reading.expected
    is_expired = missing["kind"] == KIND_NUMBER[EXPIRED]
    due = np.concatenate([claims.rows[claims.is_claimed], missing["row"][is_expired]])
    at = _first_at(rows, due["offset"])
    is_read = _matches(due, rows, at)
    is_left = due["offset"] < (copies.truth.start if copies.truth else 0)
    is_absent = (at < 0) & (due["offset"] >= expected.first)
    if reading.place == AT_CONSUMED and not expected.end:
        is_absent &= ~is_left  # No consumer began here, and one may begin after expired records.
    is_tail = is_absent & (due["offset"] >= expected.end) & ~is_left
    is_gone = is_absent & ~is_tail
    gone = due[is_gone]
    why = np.where(is_left[is_gone], Why.EXPIRED_UNREAD, Why.PASSED)
    has = copies.holders(gone["offset"] - copies.first) if copies.truth else 0
    lost = found(LOST, gone["offset"], place=reading.place, why=why, has=has, row=gone)
    lost["lacks"] = reading.bit
    tail = due[is_tail]
    tail = tail[np.argsort(tail["offset"], kind="stable")]
    unseen = found(UNSEEN_TAIL, tail["offset"], place=reading.place, why=Why.BEHIND, row=tail)
    unseen["lacks"] = reading.bit
    tables = [lost, folded(unseen), _skipped(copies, claims, reading)]
    tables += _contradictions(copies, missing, reading)
    is_other = is_left & (at >= 0) & ~is_read
    other = due[is_other]
    tables.append(
        found(INCONSISTENT, other["offset"], place=reading.place, why=Why.CONTENT, row=other)
    )
    return int(np.count_nonzero(is_read)), tables


def _skipped(copies: Copies, claims: Sends, reading: Reading) -> Table:
    """Records of the truth that no producer has as acknowledged, and that the reader skipped."""
    records = _left(copies, claims)
    offsets = records["offset"]
    first, end = reading.expected
    is_due = (offsets >= first) & (offsets < end) & (_first_at(reading.rows, offsets) < 0)
    skipped = found(SKIPPED, offsets[is_due], place=reading.place, why=Why.PASSED)
    skipped["lacks"] = reading.bit
    return folded(skipped)


def _contradictions(copies: Copies, missing: Table, reading: Reading) -> list[Table]:
    """A reader's rows that contradict the truth: read twice, other content, or unknown."""
    rows, tables = reading.rows, []
    truth = copies.truth
    if reading.place == AT_TABLE:
        is_again = np.zeros(len(rows), np.bool_)
        is_again[1:] = np.diff(rows["offset"]) == 0
        again = rows["offset"][is_again]
        tables.append(found(DUPLICATE, again, place=AT_TABLE, why=Why.READ_TWICE))
    places = rows["offset"] - copies.first
    at = copies.at[places]
    is_other = (at >= 0) & ~_matches(rows, copies.records, at)
    other = _as_nobodys(rows[is_other])
    table = found(INCONSISTENT, other["offset"], place=reading.place, why=Why.CONTENT, row=other)
    table["lacks"] = reading.bit
    if truth is not None:
        table["has"] = copies.holders(other["offset"] - copies.first)
    tables.append(table)
    is_nowhere = (at < 0) & (rows["offset"] >= (max(truth.start, truth.cleaned) if truth else 0))
    is_nowhere &= ~copies.is_unreadable[places]
    stray = rows[is_nowhere]
    is_acknowledged = np.isin(_identity(stray), _identity(missing["row"]))
    stray = _as_nobodys(stray[~is_acknowledged])
    table = found(PHANTOM, stray["offset"], place=reading.place, why=Why.NOWHERE, row=stray)
    table["has"] = copies.holders_of(stray) | reading.bit
    table["lacks"] = copies.everyone & ~table["has"]
    is_held = (table["has"] & ~READERS) > 0
    table["kind"][is_held] = KIND_NUMBER[INCONSISTENT]
    table["why"][is_held] = Why.STALE
    tables.append(table)
    return tables


def _identity(rows: Table) -> npt.NDArray[Any]:
    """Offset and content."""
    return repack_fields(rows[["offset", "key", "value"]])


def _as_nobodys(rows: Table) -> Table:
    """A reader's rows carry no ledger row, only content."""
    bare = rows.copy()
    bare["who"] = -1
    return bare


def _polls(reading: Reading) -> tuple[list[Span], Table]:
    rows = reading.rows
    groups = group_of(rows, is_delivery=True)
    is_back = stepped_back(rows["offset"], groups, rows["sequence"])
    back = rows[is_back]
    return spans(groups, rows["sequence"]), found(
        NON_MONOTONIC, back["offset"], place=AT_CONSUMED, row=back
    )


def _marked(copies: Copies, missing: Table) -> Bools:
    """By place: an acknowledged send is named there already."""
    is_named = np.zeros(copies.size, np.bool_)
    is_named[missing["first"] - copies.first] = True
    return is_named


def _left(copies: Copies, claims: Sends) -> Table:
    is_left = copies.records["is_data"].copy()
    is_left[copies.at[claims.places[claims.is_claimed]]] = False
    left: Table = copies.records[is_left]
    return left


def _counts(copies: Copies, claims: Sends, missing: Table) -> dict[str, Any]:
    """Acknowledged, found in the truth and in every copy, and both by the second of sending."""
    claimed = claims.rows[claims.is_claimed]
    places = claims.places[claims.is_claimed]
    held = [missing["has"]]
    if copies.truth is not None:
        held.append(copies.holders(places))
    bits = np.concatenate(held)
    seconds, at = np.unique(claims.rows["time"] // 1000, return_inverse=True)
    acked = np.bincount(at, minlength=len(seconds))
    kept = np.bincount(at, weights=claims.is_claimed, minlength=len(seconds)).astype(np.int64)
    return {
        "acked": len(claims.rows),
        "in_truth": len(claimed),
        "found": {
            replica.broker: int(np.count_nonzero(bits & copies.bits[replica.broker]))
            for replica in copies.replicas
        },
        "seconds": [seconds.tolist(), acked.tolist(), kept.tolist()],
        "errors": list(copies.errors()),
        "damages": copies.damages(),
        "is_doubtful": bool(copies.is_out_of_reach.any() or copies.is_unreadable.any()),
    }
