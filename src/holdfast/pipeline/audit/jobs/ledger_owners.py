"""The owners of the ledgers: numbers producers and consumers, and maps files to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from holdfast.ledger import CONSUMED, SENT, Kind, LedgerError, read_file
from holdfast.pipeline.audit.jobs.row_sources import LedgerFile
from holdfast.pipeline.audit.jobs.row_types import Bools
from holdfast.pipeline.errors import PipelineError

ALL = "all"


class Owner(NamedTuple):
    run: str
    name: str
    acks: str
    """ "all", "1" or "0"; empty for a consumer."""
    is_idempotent: bool
    folder: str


class Roster(NamedTuple):
    owners: tuple[Owner, ...]
    files: tuple[LedgerFile, ...]
    topics: tuple[str, ...]
    missing: tuple[str, ...]
    """Files that cannot be read, in sentences."""

    def is_acks_all(self) -> Bools:
        return np.array([owner.acks == ALL for owner in self.owners], np.bool_)


def producers(folder: Path) -> Roster:
    """Every producer."""
    return _roster(folder, SENT, "producer")


def consumers(folder: Path) -> Roster:
    """Every consumer."""
    return _roster(folder, CONSUMED, "consumer")


def _roster(folder: Path, kind: Kind, role: str) -> Roster:
    if not folder.is_dir():
        raise PipelineError(
            f"there is no ledger directory {folder}", hint=f"name the one that the {role} wrote to"
        )
    owners: dict[Owner, int] = {}
    files, missing = [], []
    topics: set[str] = set()
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".arrows", ".parquet"):
            continue
        try:
            first = _first_row(path, kind)
            if first is None:
                continue
            topics |= {first["topic"]} if path.suffix == ".arrows" else _topics(path, kind)
        except (LedgerError, OSError) as error:
            missing.append(f"a ledger cannot be read: {error}")
            continue
        owner = Owner(
            run=first["run"],
            name=first[role],
            acks={-1: ALL, None: ""}.get(first.get("acks"), str(first.get("acks"))),
            is_idempotent=bool(first.get("idempotent")),
            folder=str(path.parent),
        )
        files.append(LedgerFile(str(path), owners.setdefault(owner, len(owners))))
    if not files and not missing:
        raise PipelineError(
            f"no ledger below {folder} says what was {kind.name}",
            hint=f"name the directory that the {role} wrote to",
        )
    return Roster(tuple(owners), tuple(files), tuple(sorted(topics)), tuple(missing))


def _first_row(path: Path, kind: Kind) -> dict[str, Any] | None:
    for batch in read_file(path, kind):
        if batch.num_rows:
            row: dict[str, Any] = batch.slice(0, 1).to_pylist()[0]
            return row
    return None


def _topics(path: Path, kind: Kind) -> set[str]:
    """A Parquet file may hold several topics."""
    found: set[str] = set()
    for batch in read_file(path, kind, columns=["topic"]):
        found |= set(batch.column(0).unique().to_pylist())
    return found
