"""Possible losses, and the runs that show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.lab.judge.verdict import OUTCOMES
from holdfast.lab.scenarios.scenario import Scenario

LOSSES: Final = ("diverged", "lost", "exposed-lost", "skipped", "lost-at-consumer")
"""Outcomes in which a record is gone that a client relied on."""
DISORDERS: Final = ("reordered", "duplicated", "processed-twice", "stale-read")
"""Outcomes in which every record is there, but not as expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A run that can be repeated."""

    kind: str
    """scenario: one of the catalogue; search: the shortest run that a search found."""
    title: str
    command: str
    scenario_text: str | None = None
    """The scenario file that a search wrote."""

    def to_dict(self) -> dict[str, Any]:
        """With stable keys."""
        return {
            "kind": self.kind,
            "title": self.title,
            "command": self.command,
            "story": self.scenario_text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One possible failure, and the faults that cause it."""

    outcome: str
    faults: str
    """In words."""
    kinds: Mapping[str, int]
    """How many faults of each kind."""
    evidence: tuple[Evidence, ...]
    scenario: Scenario | None = None
    """The scenario that tests whether another setting helps; None: search with `kinds`."""

    @property
    def is_loss(self) -> bool:
        """Whether a record is gone."""
        return self.outcome not in DISORDERS

    @property
    def meaning(self) -> str:
        """The outcome in words; an invariant by its name."""
        return OUTCOMES.get(self.outcome, self.outcome)

    def to_dict(self) -> dict[str, Any]:
        """With stable keys."""
        return {
            "outcome": self.outcome,
            "meaning": self.meaning,
            "loss": self.is_loss,
            "faults": self.faults,
            "fault_counts": dict(self.kinds),
            "evidence": [one.to_dict() for one in self.evidence],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """One search and its result."""

    faults: str
    command: str
    verdict: str
    distinct: int
