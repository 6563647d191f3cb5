"""The results of TLC 2.18 on the published specification, to compare with.

`tlc.txt` has one line per run: variant, bounds (replicas/log size/records/highest epoch), whether
replicas were interchangeable, the invariant; then distinct, generated and depth of a complete
search, or `violated` and the steps of the shortest trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast.search.spec import Bounds, Question


@dataclass(frozen=True, slots=True)
class Run:
    question: Question
    counts: tuple[int, int, int] | None
    """Distinct, generated, depth."""
    steps: int | None

    def __str__(self) -> str:
        asked = self.question
        names = "symmetric" if asked.symmetry else "named"
        return f"{asked.variant} {asked.bounds} {names} {asked.invariant}"


def bounds(text: str) -> Bounds:
    replicas, log_size, records, max_epoch = map(int, text.split("/"))
    return Bounds(replicas=replicas, log_size=log_size, records=records, max_epoch=max_epoch)


def runs() -> list[Run]:
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    return [_run(*line.split()) for line in lines if not line.startswith("#")]


def _run(variant: str, bound: str, names: str, invariant: str, *result: str) -> Run:
    question = Question(
        variant=variant,
        bounds=bounds(bound),
        symmetry=names == "symmetric",
        invariant=None if invariant == "none" else invariant,
    )
    if result[0] == "violated":
        return Run(question, None, int(result[1]))
    distinct, generated, depth = map(int, result)
    return Run(question, (distinct, generated, depth), None)
