"""What an ingest is asked to do."""

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
    """Path or address of the Delta table; made if it is not there."""
    once: bool = True
    """End when all that was there at the start is in the table; else go on until stopped."""
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
