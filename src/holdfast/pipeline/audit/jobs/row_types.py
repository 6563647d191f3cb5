"""The audit's rows: fixed width, moved in packs of thousands, never one by one.

Four numbers identify the content of a record: the CRC-32C and the length of its key and of its
value. Here they are two: `key` and `value`, each the length plus one in the upper half and the CRC
in the lower; a null is 0. Two records with the same two numbers are taken for equal.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Table = npt.NDArray[Any]
"""A structured array of one of the types below."""

ACKED: Final = 2
UNKNOWN: Final = 1
REFUSED: Final = 3
RESULTS: Final = {UNKNOWN: "unknown", ACKED: "acked", REFUSED: "refused"}

NOBODY: Final = -1
NO_OFFSET: Final = -1

ROW: Final = np.dtype(
    [
        ("offset", "<i8"),
        ("key", "<i8"),
        ("value", "<i8"),
        ("sequence", "<i8"),  # of the send in its ledger, of the delivery in a consumer's
        ("time", "<i8"),  # when it was sent, in milliseconds
        ("delay", "<i4"),  # from sending to acknowledgement; a consumer's assignment
        ("who", "<i4"),  # which producer or consumer
        ("error", "<i2"),
        ("result", "u1"),
    ]
)
"""A send, a delivery, or a row of the table."""

RECORD: Final = np.dtype(
    [("offset", "<i8"), ("key", "<i8"), ("value", "<i8"), ("epoch", "<i4"), ("is_data", "?")]
)
"""A record in a log."""

FOUND: Final = np.dtype(
    [
        ("kind", "u1"),  # its place in KINDS
        ("place", "u1"),  # its place in PLACES
        ("why", "u1"),  # its place in DETAILS
        ("has", "<u8"),  # one bit per broker, and one per reader
        ("lacks", "<u8"),
        ("first", "<i8"),
        ("last", "<i8"),
        ("count", "<i8"),
        ("there", "<i8"),  # another offset that matters
        ("row", ROW),  # the ledger's; NOBODY where there is none
        ("last_row", ROW),
    ]
)
"""A finding: one record, or a run of neighbours."""

TABLE_BIT: Final = np.uint64(1 << 62)
CONSUMED_BIT: Final = np.uint64(1 << 63)
MOST_BROKERS: Final = 62


def content(crcs: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> Ints:
    """Checksums and lengths (-1: null) as one number each."""
    sizes = lengths.astype(np.int64)
    ids: Ints = np.where(sizes < 0, 0, ((sizes + 1) << 32) | crcs.astype(np.int64))
    return ids


def pack(table: Table) -> bytes:
    return table.tobytes()


def unpack(packs: list[bytes], kind: np.dtype[Any]) -> Table:
    """All packs of one type, one after the other."""
    if not packs:
        return np.empty(0, kind)
    return np.frombuffer(b"".join(packs), kind)


def empty_row() -> Table:
    """Used where no ledger has the record."""
    row = np.zeros((), ROW)
    row["who"] = NOBODY
    row["offset"] = NO_OFFSET
    return row


def runs(offsets: Ints, *alike: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Starts and ends (exclusive) of runs of neighbouring offsets with otherwise equal values.

    `offsets` rise.
    """
    if not len(offsets):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    is_new = np.ones(len(offsets), np.bool_)
    is_new[1:] = np.diff(offsets) != 1
    for column in alike:
        is_new[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(is_new)
    return starts, np.append(starts[1:], len(offsets))
