"""`holdfast lab search`: every way to lose a record, up to a bound, in the real core."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.errors import BadInput
from holdfast.cli.lab.options import (
    json_option,
    limit_option,
    overrides_of,
    rule_options,
    seed_range,
)
from holdfast.cli.lab.progress import watching
from holdfast.cli.lab.seeds import run_seeds
from holdfast.cli.pipeline.spark_options import conf_option, spark_pool
from holdfast.search import (
    HOLDS,
    LIMIT,
    VIOLATED,
    Bounds,
    Found,
    Question,
    Rung,
    Watch,
    WrittenScenario,
    bound_meaning,
    bound_names,
    explore,
    is_symmetric,
    ladder,
    spread,
    spread_many,
    write_scenario,
)
from holdfast.search.limits import LimitError, Limits, parse_limits

if TYPE_CHECKING:
    from holdfast.pipeline.spark.pool import SparkPool

CODES = "Exit codes: 0 holds, 1 violated, 2 limit, 64 bad input, 130 interrupted."


def _bound_options(command: click.decorators.FC) -> click.decorators.FC:
    """One option per bound."""
    for name in reversed(bound_names()):
        meaning, default, most = bound_meaning(name)
        command = click.option(
            f"--{name.replace('_', '-')}",
            name,
            type=click.IntRange(1 if name == "replicas" else 0, most),
            metavar="N",
            help=f"{meaning[0].upper()}{meaning[1:]} [{default}].",
        )(command)
    return command


@click.command(epilog=CODES)
@_bound_options
@rule_options
@limit_option
@click.option(
    "--seeds",
    metavar="A..B",
    help="Random search instead: whole runs, each seed with its own swarm of faults.",
)
@click.option(
    "--rests",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    metavar="N",
    help="From how many visited states the cluster must converge without faults.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Also count a loss that the settings do not rule out.",
)
@click.option(
    "--symmetry/--no-symmetry",
    default=True,
    show_default=True,
    help="Count states that differ only in brokers' names once, where their order means nothing.",
)
@click.option(
    "--spark",
    "master",
    metavar="MASTER",
    help="Spread the search over Spark's executors: local[*], spark://HOST:PORT, yarn, k8s://…",
)
@conf_option
@click.option(
    "--save", type=click.Path(dir_okay=False), metavar="FILE", help="Where a violation is saved."
)
@json_option
@click.pass_context
def search(
    ctx: click.Context,
    /,
    settings: Sequence[str],
    without: Sequence[str],
    limits: Sequence[str],
    seeds: str | None,
    save: str | None,
    as_json: bool,
    **more: Any,
) -> None:
    """Visit every state of a small cluster within bounds, and look for a lost record.

    The bounds limit what may happen; without any, small bounds are widened step by step. The real
    core runs in every step. A violation is minimised, shown as a scenario and saved as a scenario
    file that 'holdfast lab run' runs again.
    """
    options = overrides_of(settings, without)
    stop_at = _limits(limits)
    given = {name: more[name] for name in bound_names() if more[name] is not None}
    if seeds is not None and given:
        raise BadInput("bounds do not go with --seeds", hint="a seed decides what happens")
    how = {name: more[name] for name in ("symmetry", "strict")}
    questions = _questions(given, options, **how)
    first_and_last = None if seeds is None else seed_range(seeds)
    with spark_pool("holdfast lab search", more["master"], more["conf"]) as pool:
        if first_and_last is not None:
            ctx.exit(run_seeds(first_and_last, options, stop_at, save, pool, as_json=as_json))
        found = _search(questions, stop_at, more["rests"], pool, quiet=as_json)
        scenario = _scenario(found, pool) if found.verdict == VIOLATED else None
    path = _save(save or _file_name(found), scenario) if scenario else None
    click.echo(_json(found, scenario, path) if as_json else _text(found, scenario, path))
    ctx.exit({VIOLATED: 1, LIMIT: 2}.get(found.verdict, 0))


def _questions(given: dict[str, int], options: dict[str, str], **how: bool) -> list[Question]:
    return [
        Question(bounds=rung.bounds, options={**rung.options, **options}, **how)
        for rung in (_given(given) if given else ladder(options))
    ]


def _given(given: dict[str, int]) -> list[Rung]:
    bounds = Bounds(**given)
    if bounds.in_sync > bounds.replicas:
        raise BadInput("--in-sync is more than --replicas", hint="try --in-sync 2")
    return [Rung(bounds)]


def _limits(texts: Sequence[str]) -> Limits:
    try:
        return parse_limits(texts)
    except LimitError as error:
        hint = "try --limit 1000000, --limit 60s or --limit 2GiB"
        raise BadInput(str(error), hint=hint) from None


def _search(
    questions: Sequence[Question],
    limits: Limits,
    rests: int,
    pool: SparkPool | None,
    *,
    quiet: bool,
) -> Found:
    """Search within each of the bounds until one finds something."""
    found: Found | None = None
    with watching(by_level=pool is None) as watch:
        for one in _answers(questions, limits, rests, pool, watch):
            if found is not None and not quiet:
                click.echo(_covered(found), err=True)
            found = one
            if found.verdict != HOLDS:
                break
    assert found is not None, "there is always something to try"
    return found


def _answers(
    questions: Sequence[Question], limits: Limits, rests: int, pool: SparkPool | None, watch: Watch
) -> Iterator[Found]:
    """One after the other; in a pool, small searches at the same time, or a large one in parts."""
    if pool is None:
        for question in questions:
            yield explore(question, limits, watch, rests=rests)
    elif len(questions) == 1:
        yield spread(questions[0], pool, pool.processes, limits, watch, rests=rests)
    else:
        yield from spread_many(questions, pool, limits, rests=rests)


def _scenario(found: Found, pool: SparkPool | None) -> WrittenScenario:
    command = found.question.command
    if pool is None:
        return write_scenario(found, command)
    return pool.submit(write_scenario, found, command).result()


def _file_name(found: Found) -> str:
    options = found.question.options
    changed = [one for one in options.get("without", "").strip("()").split(",") if one]
    changed += [f"{key}-{value}" for key, value in options.items() if key != "without"]
    return "_".join(("without", *changed) if changed else ("violation",)) + ".scenario"


def _save(name: str, scenario: WrittenScenario) -> str:
    try:
        Path(name).write_text(scenario.text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {name}: {error.strerror}", hint="try --save FILE") from None
    return name


def _covered(found: Found) -> str:
    coverage = found.coverage
    bounds = found.question.bounds.describe()
    return (
        f"{found.verdict}: {bounds}: {coverage.distinct:,} distinct states "
        f"({coverage.generated:,} generated, depth {coverage.depth}) in {coverage.seconds:.1f} s"
    )


def _text(found: Found, scenario: WrittenScenario | None, path: str | None) -> str:
    lines = []
    if scenario is not None and found.violation is not None:
        lines += [scenario.text, f"{found.violation.outcome}: {found.violation.text}"]
        lines.append(f"outcome: {scenario.outcome}, after {len(found.path)} steps")
    lines.append(_covered(found))
    if found.rested:
        lines.append(f"without faults it converges from {found.rested} of these states")
    if found.limit:
        lines.append(f"stopped by the limit: {found.limit}")
    if path is not None:
        lines.append(f"saved: {path}")
        lines.append(f"see it again: holdfast lab run {quote(path)}")
    return "\n".join(lines)


def _json(found: Found, scenario: WrittenScenario | None, path: str | None) -> str:
    question, coverage = found.question, found.coverage
    without = question.options.get("without", "").strip("()")
    facts: dict[str, Any] = {
        "schema": "holdfast-lab-search/1",
        "bounds": question.bounds.to_dict(),
        "without": [one for one in without.split(",") if one],
        "options": {key: text for key, text in question.options.items() if key != "without"},
        "symmetry": question.symmetry and is_symmetric(question.bounds),
        "distinct": coverage.distinct,
        "generated": coverage.generated,
        "depth": coverage.depth,
        "verdict": found.verdict,
        "invariant": found.violation.outcome if found.violation else None,
        "outcome": scenario.outcome if scenario else None,
        "steps": len(found.path) if scenario else None,
        "trace": _trace(scenario) if scenario else None,
        "file": path,
        "rested": found.rested,
        "seconds": round(coverage.seconds, 3),
    }
    return json.dumps(facts, ensure_ascii=False, indent=2)


def _trace(scenario: WrittenScenario) -> list[dict[str, Any]]:
    return [{"words": one.words or None, "commands": one.commands} for one in scenario.lines]
