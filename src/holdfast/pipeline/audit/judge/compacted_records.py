"""Decides which missing records the cleaner may have removed.

A compacted log has holes, and holes hide losses. So three conditions must hold: the offset lies
below cleaner-offset-checkpoint, the record had a key, and the log has a later record of that key,
or the ledger a later acknowledged tombstone. A tombstone itself may be removed after a time.
"""

from __future__ import annotations

import numpy as np

from holdfast.pipeline.audit.jobs.row_types import Bools, Ints, Table
from holdfast.pipeline.audit.replicas.slice_reader import read_slice
from holdfast.pipeline.audit.replicas.truth import Replica

NULL = 0


def is_cleaned(rows: Table, truth: Replica, span: int) -> Bools:
    """Which acknowledged sends, missing in the truth, the cleaner may have removed."""
    is_candidate: Bools = (rows["offset"] < truth.cleaned) & (rows["key"] != NULL)
    if not is_candidate.any():
        return is_candidate
    keys = np.unique(rows["key"][is_candidate])
    newest = _newest(keys, truth, span)
    is_tombstone = is_candidate & (rows["value"] == NULL)
    _raise(newest, keys, rows[is_tombstone])
    at = np.minimum(np.searchsorted(keys, rows["key"]), len(keys) - 1)
    cleaned: Bools = is_candidate & (is_tombstone | (newest[at] > rows["offset"]))
    return cleaned


def _newest(keys: Ints, truth: Replica, span: int) -> Ints:
    """The last offset of each key, or -1. The driver reads the partition: it is compacted."""
    newest = np.full(len(keys), -1, np.int64)
    for first in range(truth.start, truth.end, span):
        part = read_slice(truth.segments, first, first + span, settled=0, is_decoded=True)
        _raise(newest, keys, part.records[np.isin(part.records["key"], keys)])
    return newest


def _raise(newest: Ints, keys: Ints, rows: Table) -> None:
    np.maximum.at(newest, np.searchsorted(keys, rows["key"]), rows["offset"])
