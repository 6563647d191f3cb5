"""`holdfast lab`: lists, runs and explains scenarios."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from holdfast.cli.errors import BadInput
from holdfast.cli.lab.options import (
    MOST_DIGITS,
    json_option,
    overrides_of,
    plan_options,
    rule_options,
    split_plan,
)
from holdfast.cli.lab.output import (
    list_dict,
    list_text,
    progress,
    run_dict,
    run_text,
    seed_dict,
    seed_text,
)
from holdfast.cli.lab.pictures import picture_options, show
from holdfast.cli.lazy import LazyCommand, LazyGroup
from holdfast.core import guard_explanation, guard_names
from holdfast.lab import (
    HANDLERS,
    OPTIONS,
    Explanation,
    Frame,
    Run,
    Scenario,
    ScenarioError,
    UnknownScenarioError,
    Variant,
    build,
    explain,
    explain_with_remedies,
    fold,
    ids,
    load,
    run_scenario,
    run_seed,
    suggestion,
)
from holdfast.model import MalformedTraceError, TraceEvent, parse_trace

CODES = "Exit codes: 0 as expected, 1 not as expected, 64 bad input, 70 a bug in Holdfast."


HEAVY = {
    "broker": LazyCommand(
        "holdfast.cli.lab.broker:broker", "Whole brokers, simulated: one seed, or many."
    ),
    "compare": LazyCommand(
        "holdfast.cli.lab.compare:compare_command", "In-sync replicas or a majority?"
    ),
    "search": LazyCommand(
        "holdfast.cli.lab.search:search", "Every schedule within bounds, or many random ones."
    ),
    "spec": LazyCommand("holdfast.cli.lab.spec:spec", "Explore the published specification."),
    "tour": LazyCommand("holdfast.cli.lab.tour:tour", "A guided tour: scenarios, pictures, seeds."),
}


@click.group(cls=LazyGroup, lazy=HEAVY, epilog=CODES)
def lab() -> None:
    """Every known way to lose acknowledged data, as scenarios that run the real core."""


variant_option = click.option(
    "--variant", metavar="NAME", help="Only this variant of the scenario."
)


@lab.command("list", epilog=CODES)
@json_option
def list_command(as_json: bool) -> None:
    """List the scenarios with the claim of each."""
    scenarios = [load(one) for one in ids()]
    click.echo(_json(list_dict(scenarios)) if as_json else list_text(scenarios))


@lab.command(epilog=CODES)
@json_option
def commands(as_json: bool) -> None:
    """List the commands and settings that a scenario file can use."""
    known = {one.usage: one.meaning for one in HANDLERS.values()}
    settings = {f"{name}={one.values}": one.meaning for name, one in OPTIONS.items()}
    if as_json:
        click.echo(
            _json({"schema": "holdfast-lab-commands/1", "commands": known, "settings": settings})
        )
        return
    for title, rows in (("Commands", known), ("Settings", settings)):
        click.echo(f"{title}\n")
        for usage, meaning in rows.items():
            click.echo(f"  {usage}\n      {meaning}")
        click.echo()


@lab.command(epilog=CODES)
@json_option
def guards(as_json: bool) -> None:
    """List the guards that --without can remove, with the rule that each one enforces."""
    known = {name: guard_explanation(name) for name in guard_names()}
    if as_json:
        rows = [{"name": name, "explanation": text} for name, text in known.items()]
        click.echo(_json({"schema": "holdfast-lab-guards/1", "guards": rows}))
        return
    width = max(len(name) for name in known)
    for name, text in known.items():
        click.echo(f"{name.ljust(width)}  {text}")


@lab.command(epilog=CODES)
@click.argument("names", nargs=-1, metavar="ID|FILE …")
@click.option("--all", "everything", is_flag=True, help="Run every scenario.")
@variant_option
@rule_options
@click.option("--trace", "trace_file", type=click.Path(dir_okay=False), help="Write the trace.")
@json_option
@click.pass_context
def run(
    ctx: click.Context,
    names: Sequence[str],
    everything: bool,
    variant: str | None,
    settings: Sequence[str],
    without: Sequence[str],
    trace_file: str | None,
    as_json: bool,
) -> None:
    """Run scenarios under their variants and compare with what they expect.

    With --set or --without the scenario runs under other rules, and no result is expected.
    """
    if everything == bool(names):
        raise BadInput("name scenarios, or give --all", hint="try 'holdfast lab list'")
    overrides = overrides_of(settings, without)
    chosen = ids() if everything else names
    results: list[dict[str, Any]] = []
    runs: list[Run] = []
    with progress(len(chosen)) as advance:
        for name in chosen:
            scenario = _load(name)
            played = [_run(scenario, one, overrides) for one in _variants(scenario, variant)]
            runs.extend(played)
            if as_json:
                results.append(run_dict(played, changed=bool(overrides)))
            else:
                click.echo(run_text(played, changed=bool(overrides), verbose=not everything))
            advance()
    if trace_file:
        _write_trace(trace_file, runs[0].events)
    if as_json:
        single = results[0] if len(results) == 1 else None
        click.echo(_json(single or {"schema": "holdfast-lab-runs/1", "runs": results}))
    ctx.exit(0 if all(one.as_expected for one in runs) else 1)


@lab.command(epilog=CODES)
@click.argument("name", metavar="ID|FILE")
@variant_option
@rule_options
@picture_options
@json_option
def step(
    name: str,
    variant: str | None,
    settings: Sequence[str],
    without: Sequence[str],
    as_json: bool,
    **pictures: Any,
) -> None:
    """Step through a scenario in the terminal: arrow keys, v for the next variant, q to quit.

    Without a terminal, or with --all, every step is printed. --html and --svg write pictures; the
    page shows every variant side by side unless one is chosen.
    """
    scenario = _load(name)
    overrides = overrides_of(settings, without)
    chosen = _variants(scenario, variant)
    variants = [(one.name, fold(_run(scenario, one, overrides).events)) for one in chosen]
    _show(variants, f"{scenario.id}: {scenario.title}", as_json=as_json, pictures=pictures)


@lab.command("explain", epilog=CODES)
@click.argument("name", metavar="ID|FILE|TRACE")
@click.option("--offset", type=int, help="The record at this offset.")
@click.option("--record", metavar="LABEL", help="The record with this label.")
@variant_option
@rule_options
@json_option
def explain_command(
    name: str,
    offset: int | None,
    record: str | None,
    variant: str | None,
    settings: Sequence[str],
    without: Sequence[str],
    as_json: bool,
) -> None:
    """Explain why a record is gone, or where it is: when acknowledged, and what removed it."""
    if (offset is None) == (record is None):
        raise BadInput("give --offset N or --record LABEL", hint="try --offset 0")
    about: int | str = offset if offset is not None else record or ""
    if _is_trace(name):
        explanation = explain(_read_trace(name), about)
        _demand_record(name, about, explanation)
    else:
        scenario = _load(name)
        chosen = _variants(scenario, variant)[0]
        overrides = overrides_of(settings, without)
        events = _run(scenario, chosen, overrides).events
        played = replace(chosen, options={**chosen.options, **overrides})
        explanation = explain_with_remedies(scenario, played, events, about)
        _demand_record(name, about, explanation)
    click.echo(_json(explanation.to_dict()) if as_json else explanation.to_text())


@lab.command(epilog=CODES)
@click.argument("what", metavar="SEED|TRACE")
@rule_options
@plan_options
@picture_options
@click.option("--trace", "trace_file", type=click.Path(dir_okay=False), help="Write the trace.")
@json_option
@click.pass_context
def replay(
    ctx: click.Context,
    /,
    what: str,
    settings: Sequence[str],
    without: Sequence[str],
    trace_file: str | None,
    as_json: bool,
    **more: Any,
) -> None:
    """Replay a seeded run by its number, or step through a trace file.

    A seed decides everything: faults, delays, traffic. The same number gives the same trace.
    """
    changes, pictures = split_plan(more)
    if not what.isdecimal():
        if settings or without or trace_file or changes:
            hint = "--set, --without, --trace and changes of the plan go with a seed"
            raise BadInput("a trace is shown as it is", hint=hint)
        frames = fold(_read_trace(what))
        _show([(Path(what).name, frames)], Path(what).name, as_json=as_json, pictures=pictures)
        return
    if len(what) > MOST_DIGITS:
        raise BadInput(f"a seed has at most {MOST_DIGITS} digits", hint="try 1")
    overrides = overrides_of(settings, without)
    base = {"min_insync_replicas": "2", "replica_lag_time_max_ms": "1500"}
    result = run_seed(int(what), *build({**base, **overrides}, 3), changes)
    if trace_file:
        _write_trace(trace_file, result.events)
    if any(pictures.values()):
        frames = fold(result.events)
        _show([(f"seed {what}", frames)], f"seed {what}", as_json=as_json, pictures=pictures)
    else:
        click.echo(_json(seed_dict(result)) if as_json else seed_text(result, overrides, changes))
    ctx.exit(1 if result.failures else 0)


def _demand_record(name: str, about: int | str, explanation: Explanation) -> None:
    if not explanation.accounts:
        what = f"a record at offset {about}" if isinstance(about, int) else f"the record {about!r}"
        hint = "'holdfast lab step' shows all records with their labels and offsets"
        raise BadInput(f"{name} never had {what}", hint=hint)


def _show(
    variants: list[tuple[str, list[Frame]]],
    title: str,
    *,
    as_json: bool,
    pictures: Mapping[str, Any],
) -> None:
    written = show(variants, title, as_json=as_json, **pictures)
    if written is not None:
        click.echo(_json(written))


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2)


def _load(name: str) -> Scenario:
    try:
        return load(name)
    except UnknownScenarioError as error:
        hint = error.hint or "try 'holdfast lab list'"
        raise BadInput(str(error), hint=hint) from None
    except OSError as error:
        hint = "try 'holdfast lab list'"
        raise BadInput(f"cannot read {name}: {error.strerror}", hint=hint) from None
    except ScenarioError as error:
        raise BadInput(str(error), hint=error.hint or None) from None


def _variants(scenario: Scenario, name: str | None) -> list[Variant]:
    if name is None:
        return list(scenario.variants)
    try:
        return [scenario.variant(name)]
    except KeyError:
        known = [one.name for one in scenario.variants]
        hint = suggestion(name, known) or f"one of {', '.join(known)}"
        raise BadInput(f"{scenario.id} has no variant {name!r}", hint=hint) from None


def _run(scenario: Scenario, variant: Variant, overrides: Mapping[str, str]) -> Run:
    try:
        return run_scenario(scenario, variant, overrides)
    except ScenarioError as error:
        raise BadInput(str(error), hint=error.hint or None) from None


def _is_trace(name: str) -> bool:
    return name.endswith((".jsonl", ".trace", ".json"))


def _read_trace(name: str) -> list[TraceEvent]:
    hint = "write one with 'holdfast lab run ID --trace FILE'"
    try:
        content = Path(name).read_bytes()
        events = list(parse_trace(content.decode().splitlines()))
    except OSError as error:
        raise BadInput(f"cannot read the trace {name}: {error.strerror}", hint=hint) from None
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadInput(f"{name}: line {line}: not UTF-8 text", hint=hint) from None
    except MalformedTraceError as error:
        raise BadInput(f"{name}: {error}", hint="one JSON object per line") from None
    if not events:
        raise BadInput(f"{name}: line 1: the trace is empty", hint=hint)
    return events


def _write_trace(name: str, events: Sequence[TraceEvent]) -> None:
    try:
        text = "".join(f"{event.to_json()}\n" for event in events)
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {name}: {error}") from None
    click.echo(f"trace: {name} ({len(events)} events)", err=True)
