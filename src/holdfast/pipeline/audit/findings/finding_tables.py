"""Builds tables of findings (FOUND), and folds neighbours into runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.pipeline.audit.findings.details import AT_LOG, KIND_NUMBER, Why
from holdfast.pipeline.audit.jobs.row_types import FOUND, Ints, Table, empty_row, runs


def found(
    kind: str,
    offsets: Ints,
    *,
    place: int = AT_LOG,
    why: npt.NDArray[Any] | int = Why.NONE,
    has: npt.NDArray[np.uint64] | np.uint64 | int = 0,
    row: Table | None = None,
) -> Table:
    """One finding per offset."""
    table = np.zeros(len(offsets), FOUND)
    table["kind"] = KIND_NUMBER[kind]
    table["place"] = place
    table["why"] = why
    table["has"] = has
    table["first"] = table["last"] = offsets
    table["count"] = 1
    table["there"] = -1
    table["row"] = table["last_row"] = empty_row() if row is None else row
    return table


ALIKE = ("kind", "place", "why", "has", "lacks")


def folded(table: Table) -> Table:
    """Neighbours as runs. The table is sorted by offset among equal rows."""
    if len(table) < 2:
        return table
    alike = [table[name] for name in ALIKE]
    distance = np.where(table["there"] < 0, 0, table["there"] - table["first"])
    starts, ends = runs(table["first"], *alike, distance)
    result: Table = table[starts].copy()
    result["last"] = table["last"][ends - 1]
    result["last_row"] = table["last_row"][ends - 1]
    counts = np.concatenate([[0], np.cumsum(table["count"])])
    result["count"] = counts[ends] - counts[starts]
    return result
