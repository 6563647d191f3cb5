"""What can be lost, and what shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.lab.judge.verdict import OUTCOMES
from holdfast.lab.scenarios.scenario import Scenario

LOSSES: Final = ("diverged", "lost", "exposed-lost", "skipped", "lost-at-consumer")
"""Outcomes in which a record that somebody counted on is gone."""
DISORDERS: Final = ("reordered", "duplicated", "processed-twice", "stale-read")
"""Outcomes in which every record is there, and yet something is not as expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A run that anybody can see again."""

    kind: str
    """scenario: a story of the catalogue; search: the shortest run that a search has found."""
    title: str
    command: str
    scenario_text: str | None = None
    """A scenario file, if a search has written it."""

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
    """One thing that can go wrong, and the faults that it takes."""

    outcome: str
    faults: str
    """In words."""
    kinds: Mapping[str, int]
    """How many faults of each kind."""
    evidence: tuple[Evidence, ...]
    scenario: Scenario | None = None
    """What is played again to see whether another setting helps; None: `kinds` is searched."""

    @property
    def is_loss(self) -> bool:
        """Whether a record is gone."""
        return self.outcome not in DISORDERS

    @property
    def meaning(self) -> str:
        """The outcome in words; an invariant of the search stands for itself."""
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
    """One search and how it ended."""

    faults: str
    command: str
    verdict: str
    distinct: int

    def to_dict(self) -> dict[str, Any]:
        """With stable keys."""
        return {
            "faults": self.faults,
            "command": self.command,
            "verdict": self.verdict,
            "distinct": self.distinct,
        }
