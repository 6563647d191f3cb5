"""The bounds of the specification's world."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

MOST = 255
MOST_REPLICAS = 16
"""More than any search can complete; fields of 16 bits suffice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    replicas: int
    log_size: int
    """Records that fit into one log."""
    records: int
    """The number of records that producers write."""
    max_epoch: int
    """The last leader epoch. The first is 0, so a controller decides max_epoch + 1 times."""

    def __post_init__(self) -> None:
        for field in fields(self):
            least = 0 if field.name == "max_epoch" else 1
            most = MOST_REPLICAS if field.name == "replicas" else MOST
            if not least <= getattr(self, field.name) <= most:
                raise ValueError(f"{field.name} must be between {least} and {most}")

    def __str__(self) -> str:
        """The short form: replicas/log size/records/highest epoch."""
        return f"{self.replicas}/{self.log_size}/{self.records}/{self.max_epoch}"

    @property
    def epochs(self) -> int:
        return self.max_epoch + 1

    def pairs(self) -> Iterator[tuple[int, int]]:
        """All pairs of different replicas, in both orders."""
        for one in range(self.replicas):
            for other in range(self.replicas):
                if one != other:
                    yield one, other
