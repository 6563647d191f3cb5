"""`holdfast lab compare`: in-sync replicas or a majority, under the same faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from holdfast.cli.lab.options import json_option, overrides_of, seed_range
from holdfast.cli.lab.output import progress
from holdfast.search.compare import Comparison, Figures, compare, contenders

ROWS: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("acknowledged records", lambda one: f"{one.acknowledged:,}"),
    ("of them lost", lambda one: f"{one.lost:,}"),
    ("schedules with a loss", lambda one: f"{one.runs_with_loss:,}"),
    ("time without writes", lambda one: f"{one.unavailable_percent:.1f} %"),
    ("copies when acknowledged, fewest", lambda one: f"{one.copies_least}"),
    ("copies when acknowledged, mean", lambda one: f"{one.copies_mean:.2f}"),
    ("round trips to an acknowledgement", lambda one: f"{one.round_trips:.1f}"),
    ("wait, median", lambda one: f"{one.wait_median_ms:.0f} ms"),
    ("wait, 99th percentile", lambda one: f"{one.wait_p99_ms:.0f} ms"),
    ("simultaneous crashes writes survive", lambda one: f"{one.writes_survive}"),
    ("power failures that records survive", lambda one: f"{one.data_survives}"),
    ("the same with the fewest copies", lambda one: f"{one.data_survives_least}"),
)
MOST_REPLICAS = 7


@click.command("compare", epilog="Exit codes: 0 compared, 64 bad input, 70 a bug in Holdfast.")
@click.option(
    "--replicas", default=3, show_default=True, type=click.IntRange(2, MOST_REPLICAS), metavar="N"
)
@click.option("--seeds", default="0..11", show_default=True, metavar="A..B", help="The schedules.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="E.g. flush=every-append."
)
@click.option("--svg", "svg_file", type=click.Path(dir_okay=False), help="Write the picture.")
@json_option
def compare_command(
    replicas: int, seeds: str, settings: Sequence[str], svg_file: str | None, as_json: bool
) -> None:
    """Compare the ISR rule with a majority rule under the same faults at the same times.

    Waits are measured without faults; survivors by trying every group of brokers.
    """
    first, last = seed_range(seeds)
    chosen = range(first, last + 1)
    rivals = contenders(replicas, overrides_of(settings, ()))
    with progress(len(chosen) * len(rivals)) as advance:
        comparison = compare(rivals, replicas, chosen, advance)
    if svg_file:
        from holdfast.web.comparison import comparison_svg

        Path(svg_file).write_text(comparison_svg(comparison), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(comparison.to_dict(), ensure_ascii=False, indent=2))
    else:
        click.echo(_table(comparison))


def _table(comparison: Comparison) -> str:
    names = [one.name for one in comparison.figures]
    left = max(len(title) for title, _ in ROWS)
    seconds = comparison.duration_ms // 1000
    lines = [
        f"{comparison.replicas} replicas, {comparison.schedules} schedules of {seconds} s",
        "",
        "  ".join(("".ljust(left), *names)).rstrip(),
    ]
    for title, written in ROWS:
        cells = (
            written(one).rjust(len(name))
            for one, name in zip(comparison.figures, names, strict=True)
        )
        lines.append("  ".join((title.ljust(left), *cells)))
    return "\n".join(lines)
