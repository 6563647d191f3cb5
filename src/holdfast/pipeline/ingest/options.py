"""The options of an ingest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast.pipeline.ingest.topics import Topics

ValueFormat = Literal["raw", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest:
    bootstrap: str
    """HOST:PORT, several with commas."""
    topics: Topics
    table: str
    """Path or address of the Delta table; created if it does not exist."""
    once: bool = True
    """End when everything that existed at the start is in the table; otherwise run until stopped.
    """
    value_format: ValueFormat = "raw"
    schema: Path | None = None
    """For json: a file with the fields of a value."""
    stops_on_data_loss: bool = True

    @property
    def quarantine(self) -> str:
        return f"{self.table.rstrip('/')}/_quarantine"

    @property
    def checkpoint(self) -> str:
        """Inside the table, so that they move together; Delta leaves names with "_" alone."""
        return f"{self.table.rstrip('/')}/_checkpoint"
