"""What an audit is asked to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SPAN = 1 << 20
"""Offsets in a stretch: what one task decides at once. A stretch's rows must fit into memory, about
400 bytes an offset."""
MOST_FINDINGS = 1000


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
    traces: tuple[Path, ...] = field(default=())
    topics: tuple[str, ...] = ()
    """None: those in the ledger."""
    min_insync: int | None = None
    """min.insync.replicas. None: 2 where a partition has three copies or more, else 1, as
    `holdfast up` sets it; no log directory tells what it really was."""
    span: int = SPAN
    most_findings: int = MOST_FINDINGS
