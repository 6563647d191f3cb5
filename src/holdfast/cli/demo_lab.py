"""The lab's part of the tour: a record is lost under the old rules and kept under the new ones."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from holdfast.cli.demo_parts import WIDTH, heading
from holdfast.cli.errors import BadInput
from holdfast.cli.stepper import render
from holdfast.lab import (
    Run,
    Scenario,
    Variant,
    explain,
    fold,
    ids,
    load,
    remedies,
    run_scenario,
    run_seed,
    steps,
)
from holdfast.web import html_tabs

STORY = "loss-restart-truncation"
PAGES = (STORY, "loss-page-cache", "last-replica-standing", "sync-fetch-after-produce")
SEEDS = range(1, 26)


def tell(console: Console, pages: Path, pause: float) -> bool:
    """The lab's part of the tour; whether all was as expected."""
    scenario = load(STORY)
    _tell_story(console, scenario, pause)
    good = _tell_catalogue(console)
    good = _tell_seeds(console) and good
    _write_pages(console, pages)
    return good


def _tell_story(console: Console, scenario: Scenario, pause: float) -> None:
    """One story, step by step under the old rule; its end under the new one; and why."""
    before, after = scenario.variants[0], scenario.variants[1]
    heading(console, f"2. {scenario.title}")
    console.print(scenario.header)
    run = run_scenario(scenario, before)
    _show_steps(console, run, pause)
    heading(console, f"The same story, new rule ({_rules(after)})")
    last = fold(run_scenario(scenario, after).events)
    console.print(render(last[-1], len(last), WIDTH, place=len(last) - 1))
    if run.verdict.lost:
        heading(console, f"Why {run.verdict.lost[0]} is gone (holdfast lab explain {scenario.id})")
        label = run.verdict.lost[0]
        told = explain(run.events, label, remedies(scenario, before, label))
        console.print(told.to_text(), markup=False)


def _show_steps(console: Console, run: Run, pause: float) -> None:
    frames = fold(run.events)
    for frame in steps(frames):
        console.print()
        console.print(render(frame, len(frames), WIDTH, place=frames.index(frame)))
        time.sleep(pause)


def _rules(variant: Variant) -> str:
    return ", ".join(f"{key}={value}" for key, value in variant.options.items()) or "the default"


def _tell_catalogue(console: Console) -> bool:
    """Every scenario under every variant: what was lost, what was kept."""
    heading(console, "3. Every known way, one line each")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("scenario", "variant", "outcome", "verdict"):
        table.add_column(title)
    good = True
    for name in ids():
        scenario = load(name)
        for place, variant in enumerate(scenario.variants):
            run = run_scenario(scenario, variant)
            good = good and run.as_expected
            verdict = run.verdict
            style = {"valid": "green", "invalid": "red"}.get(verdict.verdict, "yellow")
            table.add_row(
                scenario.id if not place else "",
                variant.name,
                f"{verdict.outcome}{'' if run.as_expected else ' (NOT AS EXPECTED)'}",
                f"[{style}]{verdict.verdict}[/]",
            )
    console.print(table)
    return good


def _tell_seeds(console: Console) -> bool:
    """Random faults under the default rules."""
    heading(console, f"4. Random faults, seeds {SEEDS[0]} to {SEEDS[-1]}, all guards in place")
    promised = lost = failed = events = 0
    for seed in SEEDS:
        result = run_seed(seed)
        promised += result.acknowledged
        events += len(result.events)
        failed += bool(result.failures)
        lost += sum(1 for one in result.verdict.lost if not one.startswith("hasty"))
    console.print(
        f"{events:,} events; {promised:,} records acknowledged; acks=all records lost: {lost}; "
        f"runs that broke an invariant or did not recover: {failed}"
    )
    return not failed and not lost


def _write_pages(console: Console, folder: Path) -> None:
    heading(console, "5. Pictures to step through in a browser")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in PAGES:
            scenario = load(name)
            stories = [
                (one.name, fold(run_scenario(scenario, one).events)) for one in scenario.variants
            ]
            path = folder / f"{name}.html"
            page = html_tabs(stories, f"{scenario.id}: {scenario.title}")
            path.write_text(page, encoding="utf-8")
            console.print(f"  {path}", markup=False, soft_wrap=True)
    except OSError as error:
        raise BadInput(f"cannot write pages to {folder}: {error}") from None
