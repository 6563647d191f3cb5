"""`holdfast lab broker`: real brokers on a simulated loop, network, disk and store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import click

from holdfast.cli.errors import BadInput
from holdfast.cli.lab.options import (
    json_option,
    limit_option,
    plan_options,
    plan_words,
    seed_range,
    split_plan,
)
from holdfast.cli.lab.pictures import picture_options, show
from holdfast.cli.lab.progress import watching
from holdfast.cli.lab.seeds import save_trace
from holdfast.lab import fold
from holdfast.lab.render.narrate import line, names_of
from holdfast.search import LIMIT, VIOLATED, SeedsFound, search_runs
from holdfast.search.limits import LimitError, Limits, parse_limits
from holdfast.simulation import FAULTS, SimulatedRun, simulate

CODES = "Exit codes: 0 holds, 1 violated, 2 limit, 64 bad input, 130 interrupted."
_QUIET = ("fetched", "fetch-refused", "appended", "flushed", "high-watermark", "acknowledged")


@click.command(epilog=CODES)
@click.argument("seed", required=False)
@click.option("--seeds", metavar="A..B", help="Many runs, until one fails.")
@limit_option
@plan_options
@picture_options
@click.option(
    "--save", type=click.Path(dir_okay=False), metavar="FILE", help="Where the trace is saved."
)
@json_option
@click.pass_context
def broker(
    ctx: click.Context,
    /,
    seed: str | None,
    seeds: str | None,
    limits: Sequence[str],
    save: str | None,
    as_json: bool,
    **more: Any,
) -> None:
    """Run whole brokers in a simulated world: virtual time, network, disks and store.

    A seed decides everything: faults, delays, traffic. First anything may fail, then all faults
    end, and the cluster must converge with every acknowledged record in place. Give one SEED to see
    what happens in it, or --seeds A..B to look for one that fails.
    """
    if (seed is None) == (seeds is None):
        raise BadInput("give one seed, or --seeds A..B", hint="try --seeds 0..99")
    changes, pictures = split_plan(more, FAULTS)
    if seeds is not None:
        if changes or any(pictures.values()):
            raise BadInput("pictures and changes of the plan go with one seed")
        ctx.exit(_many(seeds, _limits(limits), save, as_json=as_json))
    if limits:
        raise BadInput("--limit goes with --seeds")
    assert seed is not None
    number, _ = seed_range(seed)
    ctx.exit(_one(number, changes, pictures, save, as_json=as_json))


def _limits(texts: Sequence[str]) -> Limits:
    try:
        return parse_limits(texts)
    except LimitError as error:
        raise BadInput(f"--limit {error}", hint="try --limit 1000 or --limit 60s") from None


# One seed.


def _one(
    seed: int,
    changes: Mapping[str, Any],
    pictures: Mapping[str, Any],
    save: str | None,
    *,
    as_json: bool,
) -> int:
    run = simulate(seed, changes)
    path = save_trace(save, run.events) if save else None
    if any(pictures.values()):
        title = f"seed {seed}"
        written = show([(title, fold(run.events))], title, as_json=as_json, **pictures)
        if written is not None:
            click.echo(json.dumps(written, ensure_ascii=False, indent=2))
    elif as_json:
        facts = {"schema": "holdfast-lab-broker/1", **_facts(run, path, changes)}
        click.echo(json.dumps(facts, ensure_ascii=False, indent=2))
    else:
        click.echo(_text(run, path, changes))
    return 1 if run.failures else 0


def _facts(run: SimulatedRun, path: str | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "seed": run.plan.seed,
        "faults": list(run.plan.faults),
        "failures": list(run.failures),
        "acknowledged": run.acknowledged,
        "consumed": run.consumed,
        "compactions": run.compactions,
        "virtual_s": round(run.virtual_s, 3),
        "steps": len(run.events),
        "trace_hash": run.trace_hash,
        "trace": path,
        "replay": f"holdfast lab broker {run.plan.seed}{plan_words(changes)}",
    }


def _text(run: SimulatedRun, path: str | None, changes: Mapping[str, Any]) -> str:
    """What happened, without routine replication, and the result."""
    names = names_of(run.events)
    lines = [run.plan.summary]
    for event in run.events:
        text = None if event.kind in _QUIET else line(event, names)
        if text is not None:
            lines.append(f"{event.t:>7}  {f'{event.partition} ' if event.partition else ''}{text}")
    lines.append(
        f"acknowledged: {run.acknowledged}, read: {run.consumed}, compactions: {run.compactions}, "
        f"{run.virtual_s:.1f} s of virtual time, trace {run.trace_hash[:16]}"
    )
    lines.extend(f"FAILED {one}" for one in run.failures)
    if run.failures:
        again = f"holdfast lab broker {run.plan.seed}{plan_words(changes)}"
        lines.append(f"see it again: {again}")
    if path:
        lines.append(f"saved: {path} (step through it: holdfast lab replay {quote(path)})")
    return "\n".join(lines)


# Many seeds.


def _many(text: str, limits: Limits, save: str | None, *, as_json: bool) -> int:
    first, last = seed_range(text)
    with watching("seeds") as watch:
        found = search_runs(first, last, simulate, limits, watch)
    path = None
    if found.failed is not None:
        name = save or str(Path(f"broker-seed-{found.failed.plan.seed}.jsonl"))
        path = save_trace(name, found.failed.events)
    click.echo(_found_json(found, path) if as_json else _found_text(found, path))
    return {VIOLATED: 1, LIMIT: 2}.get(found.verdict, 0)


def _found_text(found: SeedsFound[SimulatedRun], path: str | None) -> str:
    lines: list[str] = []
    if found.failed is not None:
        lines.append(_text(found.failed, path, found.changes))
    lines.append(
        f"{found.verdict}: {found.tried:,} of the seeds {found.first}..{found.last}, "
        f"{found.events:,} events in {found.seconds:.1f} s"
    )
    lines.append(f"simulated: {_hours(found):.2f} hours in {found.tried:,} seeds")
    if found.limit:
        lines.append(f"stopped by the limit: {found.limit}")
    return "\n".join(lines)


def _hours(found: SeedsFound[SimulatedRun]) -> float:
    return found.virtual_s / 3600


def _found_json(found: SeedsFound[SimulatedRun], path: str | None) -> str:
    facts: dict[str, Any] = {
        "schema": "holdfast-lab-broker-seeds/1",
        "seeds": [found.first, found.last],
        "tried": found.tried,
        "events": found.events,
        "simulated_hours": round(_hours(found), 4),
        "verdict": found.verdict,
        "limit": found.limit,
        "failed": None if found.failed is None else _facts(found.failed, path, found.changes),
        "seconds": round(found.seconds, 3),
    }
    return json.dumps(facts, ensure_ascii=False, indent=2)
