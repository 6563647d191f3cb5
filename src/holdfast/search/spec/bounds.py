"""How large the specification's world is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

MOST = 255
MOST_REPLICAS = 16
"""Far beyond what any search can finish; fields of 16 bits hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    replicas: int
    log_size: int
    """Records that fit into one log."""
    records: int
    """Records that producers write in all."""
    max_epoch: int
    """The last leader epoch; the first is 0, so a controller decides max_epoch + 1 times."""

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
        """Every two different replicas, in both orders."""
        for one in range(self.replicas):
            for other in range(self.replicas):
                if one != other:
                    yield one, other
