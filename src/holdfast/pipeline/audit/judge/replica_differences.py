"""Compares copies with the truth, whatever the ledger says: differences, gaps, too few copies.

A leader epoch has one log, so two records of one epoch at one offset are always wrong. Records of
different epochs may differ above the copy's high watermark: there a broker that is down keeps the
tail of an epoch that ended without it, and truncates it when it comes back.

A copy may end before the truth does, if it is behind or was copied earlier; but not before what it
must have (`Replica.settled`). A compacted log has holes, and copies may be cleaned at
different times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from holdfast.pipeline.audit.findings.details import KIND_NUMBER, Why
from holdfast.pipeline.audit.findings.finding_tables import folded, found
from holdfast.pipeline.audit.findings.findings import (
    DIFFER,
    GAP,
    INCONSISTENT,
    TOO_FEW,
    UNDECIDED,
)
from holdfast.pipeline.audit.jobs.row_types import FOUND, Bools, Ints, Table
from holdfast.pipeline.audit.replicas.side_by_side import Copies, Copy
from holdfast.pipeline.audit.replicas.truth import Replica

if TYPE_CHECKING:
    from holdfast.pipeline.audit.judge.stretch_verdict import Rules


def too_few(copies: Copies, rows: Table, rules: Rules) -> Table:
    """Acknowledged with acks=all, in the truth, and on too few brokers.

    A copy that ends before the record may be older than the acknowledgement. Nothing proves it: a
    time in a directory may come from a backup, or from a broker that died early. So the excuse
    leaves the record undecided.
    """
    if copies.truth is None or rules.min_insync < 2:
        return np.empty(0, FOUND)
    rows = rows[rules.is_acks_all[rows["who"]]]
    has = copies.holders(rows["offset"] - copies.first)
    counts = np.bitwise_count(has).astype(np.int64)
    is_short = counts < rules.min_insync
    is_open = counts + _older(copies, rows) >= rules.min_insync
    table = found(TOO_FEW, rows["offset"], has=has, row=rows)
    table["kind"][is_open] = KIND_NUMBER[UNDECIDED]
    table["why"][is_open] = Why.OLDER
    table["lacks"] = copies.everyone & ~has
    return folded(table[is_short])


def _older(copies: Copies, rows: Table) -> Ints:
    """How many copies end before each record and may be older than its acknowledgement."""
    acked_ms = rows["time"] + rows["delay"]
    counts = np.zeros(len(rows), np.int64)
    for one in copies.replicas:
        if not one.is_absent:
            is_beyond = rows["offset"] >= max(one.end, one.settled)
            counts += is_beyond & (acked_ms > one.taken_ms)
    return counts


def differences(copies: Copies, is_named: Bools) -> list[Table]:
    """Differences between copies, and gaps of the truth; not where a send is a finding already."""
    truth = copies.truth
    if truth is None:
        return []
    tables = []
    is_reported = is_named.copy()
    for copy in copies.all:
        tables += [_damaged(copies, copy, is_reported), _epochs(copies, copy, is_reported)]
    for copy in copies.others:
        tables += _differences(copies, copy, is_reported)
    offsets = np.arange(copies.first, copies.until)
    is_gap = (copies.at < 0) & (offsets >= max(truth.start, truth.cleaned)) & (offsets < truth.end)
    is_gap &= ~is_reported & ~copies.is_unreadable
    gap = found(GAP, offsets[is_gap], why=Why.ABSENT)
    gap["lacks"] = copies.bits[truth.broker]
    tables.append(folded(gap))
    return tables


def _differences(copies: Copies, copy: Copy, is_reported: Bools) -> list[Table]:
    truth, replica = copies.truth, copy.replica
    assert truth is not None
    cleaned = max(truth.cleaned, replica.cleaned)
    own_places = copy.own["offset"] - copies.first
    has_own = np.zeros(copies.size, np.bool_)
    has_own[own_places] = True
    offsets = np.arange(copies.first, copies.until)
    is_hole = (copies.at >= 0) & ~copy.is_equal & ~has_own
    is_hole &= (offsets >= max(replica.start, cleaned)) & (
        offsets < max(replica.end, replica.settled)
    )
    is_hole &= ~copy.is_damaged & ~copies.is_out_of_reach & ~is_reported
    theirs, ours = copies.bits[truth.broker], copies.bits[replica.broker]
    why = np.where(offsets[is_hole] < replica.end, Why.HOLE, _short(replica))
    hole = found(DIFFER, offsets[is_hole], why=why)
    hole["has"] = copies.holders(offsets[is_hole] - copies.first)
    hole["lacks"] = ours

    own = copy.own[~copy.is_equal[own_places] & ~is_reported[own_places]]
    at = copies.at[own["offset"] - copies.first]
    is_committed = own["offset"] < (replica.high_watermark or 0)
    epochs = copies.records["epoch"][at] if len(copies.records) else np.zeros(len(own), np.int32)
    is_contrary = (at >= 0) & (is_committed | (epochs == own["epoch"]))
    contrary = found(INCONSISTENT, own["offset"][is_contrary], why=Why.CONTENT, has=theirs)
    contrary["lacks"] = ours
    is_extra = (at < 0) & (own["offset"] >= max(truth.start, cleaned))
    is_extra &= is_committed | (own["offset"] < truth.end)
    is_extra &= ~copies.is_unreadable[own["offset"] - copies.first]
    extra = found(DIFFER, own["offset"][is_extra], why=Why.EXTRA, has=ours)
    extra["lacks"] = theirs
    is_reported[extra["first"] - copies.first] = True
    return [folded(hole), folded(contrary), folded(extra)]


def _short(replica: Replica) -> Why:
    """Why a copy lacks the records after its end."""
    if replica.is_absent:
        return Why.NO_FOLDER
    return Why.EMPTY if replica.is_empty else Why.SHORT


def _damaged(copies: Copies, copy: Copy, is_reported: Bools) -> Table:
    """Batches of a copy with wrong bytes."""
    assert copies.truth is not None
    offsets = np.arange(copies.first, copies.until)
    end = max(copies.truth.end, copy.replica.end, copy.replica.settled)
    is_bad = copy.is_damaged & ~copy.is_equal & ~is_reported & (offsets < end)
    damaged = found(DIFFER, offsets[is_bad], why=Why.DAMAGED)
    damaged["has"] = copies.holders(offsets[is_bad] - copies.first)
    damaged["lacks"] = copies.bits[copy.replica.broker]
    return folded(damaged)


def _epochs(copies: Copies, copy: Copy, is_reported: Bools) -> Table:
    """Batches with a wrong leader epoch: by the checkpoint, or by the truth's log.

    A retry may put the very same batch into the log of the next leader: above the copy's high
    watermark the two may differ, until the copy has followed.
    """
    offsets = np.arange(copies.first, copies.until)
    is_committed = offsets < (copy.replica.high_watermark or 0)
    is_other = copy.is_epoch_other & is_committed & ~copies.all[0].is_epoch_wrong
    is_wrong = (copy.is_epoch_wrong | is_other) & (copies.at >= 0) & ~is_reported
    wrong = found(INCONSISTENT, offsets[is_wrong], why=Why.EPOCH)
    ours = copies.bits[copy.replica.broker]
    wrong["has"] = copies.holders(offsets[is_wrong] - copies.first) & ~ours
    wrong["lacks"] = ours
    return folded(wrong)
