"""Finds the settings that would have kept a record, by running the scenario again.

First one change at a time, then two. A change counts if the scenario still runs to its end and the
record is not lost. If the scenario cannot finish under a change (a message it delivers is never
sent), the change does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from holdfast.core import guard_explanation
from holdfast.lab.judge.explain import Explanation, explain
from holdfast.lab.scenarios.options import OPTIONS
from holdfast.lab.scenarios.run import run_scenario
from holdfast.lab.scenarios.scenario import Scenario, ScenarioError, Variant
from holdfast.model import TraceEvent

Change = tuple[str, str]

_SAFER: tuple[Change, ...] = (
    ("truncation", "leader-epoch"),
    ("isr_update", "committed"),
    ("isr_expand", "rechecked"),
    ("isr_lag_rule", "time"),
    ("unclean", "off"),
    ("acks", "all"),
    ("min_insync_replicas", "2"),
    ("min_insync_replicas", "3"),
    ("flush", "every-append"),
    ("reads", "leader-only"),
)


def explain_with_remedies(
    scenario: Scenario, variant: Variant, events: Iterable[TraceEvent], asked: int | str
) -> Explanation:
    """Explain a record of this run of the scenario; if it is lost, also what would have kept it."""
    trace = list(events)
    explanation = explain(trace, asked)
    lost = [one.record for one in explanation.accounts if one.outcome.endswith("lost")]
    return explain(trace, asked, remedies(scenario, variant, lost[0])) if lost else explanation


def remedies(scenario: Scenario, variant: Variant, label: str) -> list[str]:
    """The smallest changes that keep the record, as sentences; empty if there are none."""
    changes = [*_guards_put_back(scenario, variant), *_SAFER]
    for size in (1, 2):
        found = [
            _sentence(chosen, _removed(scenario, variant))
            for chosen in combinations(changes, size)
            if len({key for key, _ in chosen}) == size and _keeps(scenario, variant, chosen, label)
        ]
        if found:
            return found
    return []


def _guards_put_back(scenario: Scenario, variant: Variant) -> Iterator[Change]:
    """For each removed guard, the change that restores it: the other removed guards."""
    removed = _removed(scenario, variant)
    for guard in removed:
        rest = ",".join(one for one in removed if one != guard)
        yield "without", f"({rest})"


def _removed(scenario: Scenario, variant: Variant) -> list[str]:
    text = variant.options.get("without")
    if text is None:
        cluster = next(
            one for step in scenario.steps for one in step.commands if one.name == "cluster"
        )
        text = cluster.options.get("without", "")
    names: tuple[str, ...] = OPTIONS["without"].parse(text)
    return list(names)


def _keeps(scenario: Scenario, variant: Variant, chosen: tuple[Change, ...], label: str) -> bool:
    options = dict(chosen)
    if all(variant.options.get(key) == value for key, value in chosen):
        return False
    try:
        run = run_scenario(scenario, variant, options)
    except ScenarioError:
        return False
    verdict = run.verdict
    return label not in verdict.lost and label not in verdict.exposed_lost and not verdict.diverged


def _sentence(chosen: tuple[Change, ...], removed: list[str]) -> str:
    return " and ".join(_change_text(key, value, removed) for key, value in chosen)


def _change_text(key: str, value: str, removed: list[str]) -> str:
    if key == "without":
        guard = next(one for one in removed if one not in OPTIONS["without"].parse(value))
        return f"the guard {guard}: {guard_explanation(guard)}"
    names = {"unclean": "unclean.leader.election.enable"}
    text = "false" if (key, value) == ("unclean", "off") else value
    return f"{names.get(key, key.replace('_', '.'))}={text}"
