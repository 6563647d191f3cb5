"""The inputs of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.pipeline.errors import PipelineError

SPAN = 1 << 20
"""Offsets in a stretch: one task judges one stretch.

A stretch's rows must fit into memory, about 400 bytes per offset.
"""
MOST_FINDINGS = 1000
LEDGERS = (".arrows", ".parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditInputs:
    ledger: Path
    logs: Mapping[str, Path]
    """Broker name -> its log directory."""
    table: str | None = None
    """A Delta table: a path that Spark can read."""
    consumed: Path | None = None
    """A directory of consumers' ledgers."""
    is_consumed_whole: bool = False
    """The consumers began at the start of every partition, so nothing may be missing there."""
    store: str | None = None
    """The coordination store of our own brokers: a file, or ZooKeeper. None: the file beside the
    brokers' directories, if there is one."""
    traces: tuple[Path, ...] = field(default=())
    topics: tuple[str, ...] = ()
    """None: those in the ledger."""
    min_insync: int | None = None
    """min.insync.replicas. None: 2 if a partition has three copies or more, otherwise 1, as
    `holdfast up` sets it; no log directory contains the real value.
    """
    span: int = SPAN
    most_findings: int = MOST_FINDINGS

    def check(self) -> None:
        """PipelineError if there is nothing to audit: checked before Spark starts.

        One log directory of several may be missing. Its broker's copies are then unknown, and the
        verdict says so.
        """
        if not any(folder.is_dir() for folder in self.logs.values()):
            names = ", ".join(str(folder) for folder in self.logs.values())
            raise PipelineError(
                f"no log directory is there: {names}", hint="name the brokers' log.dirs"
            )
        for folder in (self.ledger, *((self.consumed,) if self.consumed else ())):
            if not any(path.suffix in LEDGERS for path in folder.rglob("*")):
                raise PipelineError(
                    f"there is no ledger in {folder}",
                    hint="name the directory that was given to LedgerProducer or LedgerConsumer",
                )
        if self.table is not None and "://" not in self.table and not Path(self.table).is_dir():
            raise PipelineError(
                f"there is no table {self.table}", hint="give the path that `holdfast ingest` fills"
            )
