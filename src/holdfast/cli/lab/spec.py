"""`holdfast lab spec`: the published specification, explored by Holdfast's own engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast.cli.errors import BadInput
from holdfast.cli.lab.options import json_option, limit_option
from holdfast.cli.lab.progress import watching
from holdfast.search.limits import LimitError, parse_limits

if TYPE_CHECKING:  # they need numpy, which `holdfast lab list` must not load
    from holdfast.search.spec import Coverage, Exploration, Question

VARIANTS: Final = ("hw", "kip101", "kip279", "kip320-first", "kip320")
FENCES: Final = ("fence-fetch", "fence-truncation", "fence-high-watermark", "fence-isr-expand")
INVARIANTS: Final = ("weak-isr", "strong-isr", "none")
VIOLATED, LIMIT = 1, 2
CODES = "Exit codes: 0 holds, 1 violated, 2 limit, 64 bad input, 130 interrupted."


@click.command(epilog=CODES)
@click.argument("variant", type=click.Choice(VARIANTS), metavar="VARIANT")
@click.option("--replicas", default=3, show_default=True, help="Replicas of the partition.")
@click.option("--log-size", default=2, show_default=True, help="Records that fit into a log.")
@click.option("--records", default=2, show_default=True, help="Records that are written in all.")
@click.option("--max-epoch", default=2, show_default=True, help="The last epoch; 0 is the first.")
@click.option(
    "--symmetry/--no-symmetry",
    default=True,
    show_default=True,
    help="Count states that differ only in the names of replicas once.",
)
@click.option(
    "--invariant",
    type=click.Choice(INVARIANTS),
    default="strong-isr",
    show_default=True,
    help="What must hold: all that a presumed leader has committed is held by its own ISR (weak) "
    "or by the controller's ISR (strong).",
)
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(FENCES),
    metavar="FENCE",
    help=f"Take out a fence of kip320; may be repeated: {', '.join(FENCES)}.",
)
@limit_option
@json_option
@click.pass_context
def spec(
    ctx: click.Context,
    /,
    limits: Sequence[str],
    as_json: bool,
    **asked: Any,
) -> None:
    """Explore the published specification of Kafka's replication under VARIANT's rules.

    hw truncates to the high watermark; kip101, kip279, kip320-first and kip320 are the rules that
    followed. Every state within the bounds is visited; a violation is shown as a shortest trace.
    """
    try:
        stop_at = parse_limits(limits)
    except LimitError as error:
        hint = "try --limit 1000000, --limit 60s or --limit 2GiB"
        raise BadInput(str(error), hint=hint) from None
    question = _question(**asked)
    from holdfast.search.spec import explore

    with watching() as watch:
        result = explore(question, stop_at, watch)
    click.echo(_json(question, result) if as_json else _text(question, result))
    ctx.exit(VIOLATED if result.trace is not None else LIMIT if result.limit is not None else 0)


def _question(
    *,
    variant: str,
    replicas: int,
    log_size: int,
    records: int,
    max_epoch: int,
    symmetry: bool,
    invariant: str,
    without: Sequence[str],
) -> Question:
    from holdfast.search.spec import Bounds, Question

    try:
        return Question(
            variant=variant,
            bounds=Bounds(
                replicas=replicas, log_size=log_size, records=records, max_epoch=max_epoch
            ),
            symmetry=symmetry,
            invariant=None if invariant == "none" else invariant,
            without=tuple(dict.fromkeys(without)),
        )
    except ValueError as error:
        hint = "holdfast lab spec kip320 --without FENCE" if without else "try 3/2/2/2"
        raise BadInput(str(error), hint=hint) from None


def _verdict(result: Exploration) -> str:
    if result.trace is not None:
        return "violated"
    return "holds" if result.limit is None else "limit"


def _json(question: Question, result: Exploration) -> str:
    from holdfast.search.spec import step_dict

    coverage, trace = result.coverage, result.trace
    steps = None
    if trace is not None:
        steps = [step_dict(before.state, step) for before, step in pairwise(trace)]
    facts = {
        "schema": "holdfast-lab-spec/1",
        "variant": question.variant,
        "without": list(question.without),
        **asdict(question.bounds),
        "symmetry": question.symmetry,
        "checked": question.invariant,
        "verdict": _verdict(result),
        "distinct": coverage.distinct,
        "generated": coverage.generated,
        "depth": coverage.depth,
        "invariant": question.invariant if trace is not None else None,
        "steps": None if steps is None else len(steps),
        "seconds": round(coverage.seconds, 3),
        "trace": steps,
    }
    return json.dumps(facts, ensure_ascii=False, indent=2)


def _text(question: Question, result: Exploration) -> str:
    from holdfast.search.spec import FENCES, INVARIANTS, VARIANTS, render_trace

    bounds, coverage, checked = question.bounds, result.coverage, question.invariant
    world = (
        f"{_number(bounds.replicas, 'replica')}, logs of {_number(bounds.log_size, 'record')}, "
        f"{_number(bounds.records, 'record')} written, epochs 0 to {bounds.max_epoch}"
    )
    lines = [f"{question.variant}: {VARIANTS[question.variant].rules}"]
    lines += [f"without {fence}: {FENCES[fence].rule}" for fence in question.without]
    lines.append(world)
    if checked is not None:
        lines.append(f"{checked}: {INVARIANTS[checked]}")
    covered = _covered(coverage, symmetry=question.symmetry)
    match _verdict(result):
        case "violated":
            assert result.trace is not None
            assert checked is not None
            steps = _number(len(result.trace) - 1, "step")
            lines += ["", *render_trace(result.trace, checked), ""]
            lines.append(f"violated after {steps}; no shorter way exists. Visited {covered}.")
        case "limit":
            holds = "" if checked is None else f" {checked} holds in them."
            lines += ["", f"limit: {result.limit}. Visited {covered}.{holds}"]
        case _:
            what = "explored" if checked is None else "holds"
            lines += ["", f"{what}: all {covered}."]
    return "\n".join(lines)


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _covered(coverage: Coverage, *, symmetry: bool) -> str:
    alike = " up to the names of replicas" if symmetry else ""
    return (
        f"{_number(coverage.distinct, 'distinct state')}{alike} "
        f"({coverage.generated:,} generated, depth {coverage.depth}) in {coverage.seconds:.1f} s"
    )
