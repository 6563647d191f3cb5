"""Holdfast's engine and TLC reach the same verdicts, counts and shortest traces."""

from __future__ import annotations

import pytest

from holdfast.search.spec import explore
from tests.search.tlc import Run, bounds, runs

SECONDS = 50_000
"""A search with so many states takes seconds on a busy machine."""


def cases() -> list[object]:
    found: list[object] = []
    for run in runs():
        distinct = run.counts[0] if run.counts else 0
        marks = [pytest.mark.slow] if distinct > SECONDS else []
        found.append(pytest.param(run, id=str(run), marks=marks))
    return found


@pytest.mark.parametrize("run", cases())
def test_engine_agrees_with_tlc(run: Run) -> None:
    result = explore(run.question)
    coverage = result.coverage
    if run.steps is not None:
        assert result.trace is not None
        assert len(result.trace) - 1 == run.steps
        return
    assert result.trace is None
    assert result.limit is None
    assert (coverage.distinct, coverage.generated, coverage.depth) == run.counts


def test_table_has_what_the_oracles_demand() -> None:
    asked = {(run.question.variant, run.question.bounds, run.question.invariant) for run in runs()}
    for variant in ("hw", "kip101", "kip279", "kip320-first", "kip320"):
        for small in ("2/2/2/2", "3/2/2/2"):
            for invariant in ("weak-isr", "strong-isr"):
                assert (variant, bounds(small), invariant) in asked
        assert (variant, bounds("2/2/2/1"), None) in asked
