"""What `holdfast lab` prints: the same facts as text and as JSON with stable keys."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

import click

from holdfast.cli.lab.options import plan_words
from holdfast.lab import Run, Scenario, SeededRun, fold, paths, section_of, table
from holdfast.lab.render.narrate import line, names_of

_SIGNS = {"valid": "✓", "invalid": "✗", "beyond the guarantee": "!"}


def list_dict(scenarios: Sequence[Scenario]) -> dict[str, Any]:
    """The catalogue."""
    return {
        "schema": "holdfast-lab-list/1",
        "scenarios": [
            {
                "id": one.id,
                "section": section_of(one),
                "title": one.title,
                "variants": [variant.name for variant in one.variants],
            }
            for one in scenarios
        ],
    }


def list_text(scenarios: Sequence[Scenario]) -> str:
    """The catalogue, section by section."""
    lines: list[str] = []
    section = ""
    width = max(len(one.id) for one in scenarios)
    for one in scenarios:
        if section_of(one) != section:
            section = section_of(one)
            letter, _, name = section.partition("_")
            lines.append(f"\n{letter.upper()}  {name.replace('_', ' ')}")
        lines.append(f"  {one.id.ljust(width)}  {one.title}")
    return "\n".join(lines).lstrip("\n")


def run_dict(runs: Sequence[Run], *, changed: bool) -> dict[str, Any]:
    """One scenario: the first variant's facts, then all of them under `variants`."""
    variants = [_variant_dict(one, changed=changed) for one in runs]
    scenario = runs[0].scenario
    return {
        "schema": "holdfast-lab-run/1",
        "id": scenario.id,
        "title": scenario.title,
        **variants[0],
        "variants": variants,
    }


def _variant_dict(run: Run, *, changed: bool) -> dict[str, Any]:
    verdict = run.verdict
    return {
        "variant": run.variant.name,
        "options": dict(run.variant.options),
        "as_expected": None if changed else run.as_expected,
        "verdict": verdict.verdict,
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "lost": list(verdict.lost),
        "exposed_lost": list(verdict.exposed_lost),
        "refused_kept": list(verdict.refused_kept),
        "diverged": list(verdict.diverged),
        "duplicated": list(verdict.duplicated),
        "reordered": list(verdict.reordered),
        "consumer_lost": list(verdict.consumer_lost),
        "producer_lost": list(verdict.producer_lost),
        "processed_twice": list(verdict.processed_twice),
        "hidden": list(verdict.hidden),
        "skipped": list(verdict.skipped),
        "violations": list(verdict.violations),
        "mismatches": [
            {"line": one.line, "expected": list(one.expected), "actual": list(one.actual)}
            for one in run.mismatches
        ],
        "table": table(fold(run.events)),
    }


def run_text(runs: Sequence[Run], *, changed: bool, verbose: bool) -> str:
    """One scenario: one line per variant, and where it differs from its expectation."""
    scenario = runs[0].scenario
    lines = [f"{scenario.id}: {scenario.title}"]
    width = max(len(one.variant.name) for one in runs)
    for run in runs:
        verdict = run.verdict
        lost = f" {' '.join(verdict.lost)}" if 0 < len(verdict.lost) <= 8 else ""
        if len(verdict.lost) > 8:
            lost = f" {len(verdict.lost)} records"
        options = " ".join(f"{key}={value}" for key, value in run.variant.options.items())
        expected = "" if changed or run.as_expected else "  NOT AS THE SCENARIO EXPECTS"
        lines.append(
            f"  {_SIGNS[verdict.verdict]} {run.variant.name.ljust(width)}  {verdict.outcome}{lost}"
            f" ({verdict.verdict}){f'  [{options}]' if options else ''}{expected}"
        )
        for one in run.mismatches:
            lines.append(f"    {scenario.path}:{one.line}")
            lines.extend(f"      expected  {text}" for text in one.expected)
            lines.extend(f"      happened  {text}" for text in one.actual)
    if verbose:
        shipped = Path(scenario.path) in paths()
        name = scenario.id if shipped else quote(scenario.path)
        lines.append(f"  step through it: holdfast lab step {name}")
    return "\n".join(lines)


def seed_dict(result: SeededRun) -> dict[str, Any]:
    """One seeded run."""
    verdict = result.verdict
    return {
        "schema": "holdfast-lab-seed/1",
        "seed": result.plan.seed,
        "faults": list(result.plan.faults),
        "events": len(result.events),
        "trace_hash": result.trace_hash,
        "acknowledged": result.acknowledged,
        "verdict": verdict.verdict,
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "lost": list(verdict.lost),
        "failures": list(result.failures),
    }


def seed_text(
    result: SeededRun, overrides: Mapping[str, str], changes: Mapping[str, Any] | None = None
) -> str:
    """The seed first, then the events, then the verdict; on failure, how to repeat it."""
    names = names_of(result.events)
    lines = [result.plan.summary]
    quiet = ("fetch-sent", "fetched", "fetch-answered", "fetch-parked", "consumed", "sent")
    for event in result.events:
        text = None if event.kind in quiet else line(event, names)
        if text is not None:
            lines.append(f"{event.t:>7}  {text}")
    verdict = result.verdict
    lines.append(f"acknowledged: {result.acknowledged}, trace {result.trace_hash[:16]}")
    lines.append(f"outcome: {verdict.outcome} ({verdict.verdict}: {verdict.reason})")
    lines.extend(f"FAILED {one}" for one in result.failures)
    if result.failures:
        options = "".join(f" --set {quote(f'{key}={value}')}" for key, value in overrides.items())
        options += plan_words(changes or {})
        lines.append(f"see it again: holdfast lab replay {result.plan.seed}{options}")
    return "\n".join(lines)


@contextmanager
def progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal for long work, nothing for short."""
    if total < 2 or not sys.stderr.isatty():
        yield lambda: None
        return
    with click.progressbar(length=total, label="scenarios", file=sys.stderr) as bar:
        yield lambda: bar.update(1)
