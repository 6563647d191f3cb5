"""Long seeded schedules lose no acknowledged record, and find a missing guard."""

from __future__ import annotations

import pytest
from hypothesis import settings

from holdfast.core import SAFE_RULES, Guards, Rules
from tests.properties.walks import walk

pytestmark = pytest.mark.slow


def breaks(seed: int, rules: Rules) -> bool:
    try:
        walk(seed, rules)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("minimum", [1, 2, 3])
def test_walks_lose_no_acknowledged_record(minimum: int) -> None:
    for seed in range(settings().max_examples):
        try:
            walk(seed, SAFE_RULES, minimum)
        except AssertionError as error:
            pytest.fail(f"walk({seed}, SAFE_RULES, {minimum}): {error}")


@pytest.mark.parametrize(
    "guard",
    [
        "best-log-recovery",
        "eligible-leaders",
        "higher-epoch-only",
        "joiner-reached-high-watermark",
        "maximal-isr",
        "stale-answer-by-offset",
        "truncate-on-missed-epoch",
    ],
)
def test_walks_without_a_guard_break_one(guard: str) -> None:
    # Mutants prove the checkers: what found nothing here would find nothing in the test above.
    rules = Rules(guards=Guards().without(guard))
    assert any(breaks(seed, rules) for seed in range(1_000))
