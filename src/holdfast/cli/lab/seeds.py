"""`holdfast lab search --seeds`: random search, and the smallest failing run it finds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.errors import BadInput
from holdfast.cli.lab.options import plan_words
from holdfast.cli.lab.output import seed_text
from holdfast.cli.lab.progress import watching
from holdfast.lab import SeededRun
from holdfast.model import TraceEvent
from holdfast.search import LIMIT, VIOLATED, SeedsFound, search_seeds, spread_seeds
from holdfast.search.limits import Limits

if TYPE_CHECKING:
    from holdfast.pipeline.spark.pool import SparkPool


def run_seeds(
    first_and_last: tuple[int, int],
    options: Mapping[str, str],
    limits: Limits,
    save: str | None,
    pool: SparkPool | None,
    *,
    as_json: bool,
) -> int:
    """Search, print the result, and return the exit code."""
    first, last = first_and_last
    with watching("seeds") as watch:
        if pool is None:
            found = search_seeds(first, last, options, limits, watch)
        else:
            found = spread_seeds(first, last, options, limits, pool, pool.processes, watch)
    path = None
    if found.failed:
        path = save_trace(save or f"seed-{found.failed.plan.seed}.jsonl", found.failed.events)
    click.echo(_json(found, options, path) if as_json else _text(found, options, path))
    return {VIOLATED: 1, LIMIT: 2}.get(found.verdict, 0)


def save_trace(name: str, events: Sequence[TraceEvent]) -> str:
    """Write a trace and return its name. BadInput if it cannot be written."""
    trace = "".join(f"{event.to_json()}\n" for event in events)
    try:
        Path(name).write_text(trace, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {name}: {error.strerror}", hint="try --save FILE") from None
    return name


def _command(found: SeedsFound[SeededRun], options: Mapping[str, str]) -> str:
    assert found.failed is not None
    words = "".join(f" --set {quote(f'{key}={value}')}" for key, value in options.items())
    return f"holdfast lab replay {found.failed.plan.seed}{words}{plan_words(found.changes)}"


def _text(found: SeedsFound[SeededRun], options: Mapping[str, str], path: str | None) -> str:
    lines: list[str] = []
    if found.failed is not None:
        lines += [seed_text(found.failed, options, found.changes)]
        lines.append(f"saved: {path} (step through it: holdfast lab replay {quote(path or '')})")
    lines.append(
        f"{found.verdict}: {found.tried:,} of the seeds {found.first}..{found.last}, "
        f"{found.events:,} events in {found.seconds:.1f} s"
    )
    if found.limit:
        lines.append(f"stopped by the limit: {found.limit}")
    return "\n".join(lines)


def _json(found: SeedsFound[SeededRun], options: Mapping[str, str], path: str | None) -> str:
    small = found.failed
    without = options.get("without", "").strip("()")
    facts: dict[str, Any] = {
        "schema": "holdfast-lab-seeds/1",
        "seeds": [found.first, found.last],
        "without": [one for one in without.split(",") if one],
        "options": {key: text for key, text in options.items() if key != "without"},
        "tried": found.tried,
        "events": found.events,
        "verdict": found.verdict,
        "seed": small.plan.seed if small else None,
        "outcome": small.verdict.outcome if small else None,
        "failures": list(small.failures) if small else None,
        "faults": list(small.plan.faults) if small else None,
        "steps": len(small.events) if small else None,
        "trace": path,
        "replay": _command(found, options) if small else None,
        "seconds": round(found.seconds, 3),
    }
    return json.dumps(facts, ensure_ascii=False, indent=2)
