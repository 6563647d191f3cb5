"""`holdfast lab tour`: the old rules lose a record, the new ones keep it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from holdfast.cli.errors import BadInput
from holdfast.cli.lab.stepper import render
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

SCENARIO = "loss-restart-truncation"
PAGES = (SCENARIO, "loss-page-cache", "last-replica-standing", "sync-fetch-after-produce")
SEEDS = range(1, 26)
WIDTH = 100


@click.command(epilog="Exit codes: 0 all as expected, 1 not, 64 bad input.")
@click.option(
    "--pages",
    "folder",
    default="tour",
    show_default=True,
    type=click.Path(file_okay=False),
    help="Where the pages go.",
)
@click.option("--no-pause", is_flag=True, help="Do not wait between the pictures.")
@click.pass_context
def tour(ctx: click.Context, /, folder: str, no_pause: bool) -> None:
    """A guided tour: one scenario in pictures, then all of them, then random faults."""
    console = Console(width=WIDTH, highlight=False)
    pause = 0.0 if no_pause or not sys.stdout.isatty() else 0.9
    _show_scenario(console, load(SCENARIO), pause)
    good = _run_catalogue(console)
    good = _run_seeds(console) and good
    _write_pages(console, Path(folder))
    console.print("\nGo on: [bold]holdfast lab list[/], then [bold]holdfast lab step ID[/].")
    ctx.exit(0 if good else 1)


def _heading(console: Console, text: str) -> None:
    console.print()
    console.rule(f"[bold]{text}")


def _show_scenario(console: Console, scenario: Scenario, pause: float) -> None:
    """One scenario, step by step under the old rule; its end under the new one; and why."""
    before, after = scenario.variants[0], scenario.variants[1]
    _heading(console, f"1. {scenario.title}")
    console.print(scenario.header)
    run = run_scenario(scenario, before)
    _show_steps(console, run, pause)
    _heading(console, f"The same scenario, new rule ({_rules(after)})")
    last = fold(run_scenario(scenario, after).events)
    console.print(render(last[-1], len(last), WIDTH, place=len(last) - 1))
    if run.verdict.lost:
        _heading(console, f"Why {run.verdict.lost[0]} is gone (holdfast lab explain {scenario.id})")
        label = run.verdict.lost[0]
        account = explain(run.events, label, remedies(scenario, before, label))
        console.print(account.to_text(), markup=False)


def _show_steps(console: Console, run: Run, pause: float) -> None:
    frames = fold(run.events)
    for frame in steps(frames):
        console.print()
        console.print(render(frame, len(frames), WIDTH, place=frames.index(frame)))
        time.sleep(pause)


def _rules(variant: Variant) -> str:
    return ", ".join(f"{key}={value}" for key, value in variant.options.items()) or "the default"


def _run_catalogue(console: Console) -> bool:
    """Every scenario under every variant: what was lost, what was kept."""
    _heading(console, "2. Every known way, one line each")
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


def _run_seeds(console: Console) -> bool:
    """Random faults under the default rules."""
    _heading(console, f"3. Random faults, seeds {SEEDS[0]} to {SEEDS[-1]}, all guards in place")
    acknowledged = lost = failed = events = 0
    for seed in SEEDS:
        result = run_seed(seed)
        acknowledged += result.acknowledged
        events += len(result.events)
        failed += bool(result.failures)
        lost += sum(1 for one in result.verdict.lost if not one.startswith("hasty"))
    console.print(
        f"{events:,} events; {acknowledged:,} records acknowledged; acks=all records lost: {lost}; "
        f"runs that broke an invariant or did not recover: {failed}"
    )
    return not failed and not lost


def _write_pages(console: Console, folder: Path) -> None:
    _heading(console, "4. Pictures to step through in a browser")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in PAGES:
            scenario = load(name)
            variants = [
                (one.name, fold(run_scenario(scenario, one).events)) for one in scenario.variants
            ]
            path = folder / f"{name}.html"
            page = html_tabs(variants, f"{scenario.id}: {scenario.title}")
            path.write_text(page, encoding="utf-8")
            console.print(f"  {path}", markup=False, soft_wrap=True)
    except OSError as error:
        raise BadInput(f"cannot write pages to {folder}: {error}") from None
