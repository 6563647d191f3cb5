"""Reads a Delta table from its files, as an oracle without Spark.

Every commit is a JSON file of actions; a table is what was added and not removed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq


def actions(table: Path) -> list[dict[str, dict[str, object]]]:
    """The actions of all commits, oldest first."""
    commits = sorted((table / "_delta_log").glob("*.json"))
    return [json.loads(line) for one in commits for line in one.read_text().splitlines()]


def files(table: Path) -> list[Path]:
    """The files of the newest version."""
    alive: dict[str, None] = {}
    for action in actions(table):
        if "add" in action:
            alive[str(action["add"]["path"])] = None
        elif "remove" in action:
            alive.pop(str(action["remove"]["path"]), None)
    return [table / unquote(name) for name in alive]


def rows(table: Path, columns: Sequence[str]) -> list[tuple[object, ...]]:
    """All rows, in no order."""
    parts = [pq.read_table(path, columns=list(columns), partitioning=None) for path in files(table)]
    if not parts:
        return []
    whole = pa.concat_tables(parts)
    return list(zip(*(whole.column(name).to_pylist() for name in columns), strict=True))


def count(table: Path) -> int:
    """The number of rows; 0 while there is no table."""
    return sum(pq.read_metadata(path).num_rows for path in files(table))
