"""Runs the scenarios of the catalogue, by today's rules, under the given settings.

A scenario with fewer brokers than the given cluster is a run of that cluster with the other brokers
down, as long as writes need no more brokers than the scenario has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from shlex import quote
from typing import Final

from holdfast.lab.scenarios.catalogue import ids, load
from holdfast.lab.scenarios.run import Run, run_scenario
from holdfast.lab.scenarios.scenario import Command, Scenario, ScenarioError
from holdfast.search.advise.combination import Asked
from holdfast.search.advise.losses import DISORDERS, LOSSES, Evidence, Loss

TODAY: Final[Mapping[str, str]] = {
    "truncation": "leader-epoch",
    "isr_update": "committed",
    "isr_expand": "rechecked",
    "isr_lag_rule": "time",
    "commit_rule": "isr",
    "without": "()",
    "looks": "on",
    "sink": "plain",
}
"""Options that a scenario's variants may change and that advice does not cover."""
MOST_RETRIES: Final = 5
"""A scenario's producer retries immediately; if five retries fail, more will not help."""
_OF_CONSUMERS: Final = ("lost-at-consumer", "processed-twice")
_KINDS: Final = {
    "crash": "crash",
    "power-loss": "power",
    "lose-disk": "disk",
    "cut": "cut",
    "elect": "election",
    "reassign": "election",
    "pause": "pause",
    "stop": "stop",
    "drop": "lost message",
}


def play_all(asked: Asked) -> Iterator[tuple[Scenario, str]]:
    """Every scenario that fails under these settings, and its outcome."""
    for name in ids():
        scenario = load(name)
        outcome = outcome_of(scenario, asked)
        if outcome in LOSSES or outcome in DISORDERS:
            yield scenario, outcome


def outcome_of(scenario: Scenario, asked: Asked) -> str | None:
    """The outcome of a scenario; None if it does not apply to these settings."""
    brokers = _brokers(scenario)
    if brokers > asked.replicas or (brokers < asked.replicas and brokers < asked.needed):
        return None
    run = _played(scenario, asked)
    outcome = run.verdict.outcome if run else None
    return None if outcome in _OF_CONSUMERS and "commit" not in asked.options else outcome


def _played(scenario: Scenario, asked: Asked) -> Run | None:
    try:
        return run_scenario(scenario, scenario.variants[-1], _overrides(asked))
    except ScenarioError:  # The scenario cannot continue: what it waits for does not happen.
        return None


def _overrides(asked: Asked) -> dict[str, str]:
    retries = str(min(MOST_RETRIES, int(asked.options["retries"])))
    return {**TODAY, **asked.options, "retries": retries}


def losses_of(asked: Asked, found: list[Loss], failures: int) -> list[Loss]:
    """The losses of the searches and of the scenarios together.

    A scenario is evidence for a loss that a search found, or a loss of its own. It is omitted if a
    known loss with the same outcome needs no more failures.
    """
    lines = list(found)
    least = {
        outcome: min(_failures(one.kinds) for one in found if one.outcome == outcome)
        for outcome in dict.fromkeys(one.outcome for one in found)
    }
    alone: dict[str, list[tuple[Scenario, Counter[str]]]] = {}
    for scenario, outcome in play_all(asked):
        kinds = _faults(scenario)
        place = next((at for at, one in enumerate(lines) if _same(one, outcome, kinds)), None)
        if place is None and _failures(kinds) < least.get(outcome, failures + 1):
            alone.setdefault(outcome, []).append((scenario, kinds))
        elif place is not None:
            evidence = (*lines[place].evidence, _evidence(scenario, asked))
            lines[place] = replace(lines[place], evidence=evidence)
    for outcome, matches in alone.items():
        matches.sort(key=lambda one: (_failures(one[1]), one[1].total()))
        first, kinds = matches[0]
        lines.append(
            Loss(
                outcome=outcome,
                faults=_faults_text(kinds),
                kinds=kinds,
                evidence=tuple(_evidence(one, asked) for one, _ in matches),
                scenario=first,
            )
        )
    return lines


def _failures(kinds: Mapping[str, int]) -> int:
    return max(kinds.get(one, 0) for one in ("crash", "power", "disk"))


def _same(line: Loss, outcome: str, kinds: Counter[str]) -> bool:
    return line.outcome == outcome and all(kinds[one] >= count for one, count in line.kinds.items())


def _evidence(scenario: Scenario, asked: Asked) -> Evidence:
    changed = _overrides(asked)
    mentioned = _mentioned(scenario)
    chosen = {key: text for key, text in changed.items() if key not in TODAY or key in mentioned}
    words = [f"holdfast lab run {scenario.id} --variant {scenario.variants[-1].name}"]
    words.extend(f"--set {quote(f'{key}={text}')}" for key, text in chosen.items())
    return Evidence(kind="scenario", title=scenario.title, command=" ".join(words))


def _mentioned(scenario: Scenario) -> dict[str, None]:
    """All options that a scenario or one of its variants sets."""
    names = dict.fromkeys(key for variant in scenario.variants for key in variant.options)
    return names | dict.fromkeys(key for one in _commands(scenario) for key in one.options)


def _commands(scenario: Scenario) -> Iterator[Command]:
    for step in scenario.steps:
        yield from step.commands


def _brokers(scenario: Scenario) -> int:
    cluster = next(one for one in _commands(scenario) if one.name == "cluster")
    return len(cluster.options["brokers"].strip("()").split(","))


def _faults(scenario: Scenario) -> Counter[str]:
    """The number of faults of each kind in a scenario's commands."""
    kinds: Counter[str] = Counter()
    for one in _commands(scenario):
        kind = _KINDS.get(one.name)
        if kind == "crash" and one.options.get("keep") == "flushed":
            kind = "power"
        if kind:
            kinds[kind] += len(one.words) if kind in ("crash", "power", "disk") else 1
    return kinds


def _faults_text(kinds: Counter[str]) -> str:
    if not kinds:
        return "no fault at all"
    named = {"power": "loss of power", "disk": "lost disk", "cut": "disconnected broker"}
    return ", ".join(f"{count} x {named.get(kind, kind)}" for kind, count in kinds.items())
