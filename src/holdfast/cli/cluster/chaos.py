"""`holdfast chaos`: real clients and brokers under random faults, then a check."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from pathlib import Path

import click

from holdfast.cli.cluster.up import Stopper
from holdfast.cli.errors import BadInput
from holdfast.cli.extras import needs
from holdfast.cli.options import Renamed, json_option

CODES = (
    "Exit codes: 0 nothing is wrong; 1 nothing acknowledged is gone, but something else is wrong; "
    "2 acknowledged records are lost; 3 duplicates or order only; 4 cannot decide; 64 bad input; "
    "70 a bug in Holdfast; 130 interrupted."
)
MOST_SEED = 2**31


@click.command(epilog=CODES)
@click.option(
    "--minutes",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, 24 * 60, min_open=True),
    help="How long new faults begin; recovery and checks come after that.",
)
@click.option("--seed", type=click.IntRange(0), help="Decides the faults.  [default: random]")
@click.option(
    "--unsafe", is_flag=True, help="acks=1, unclean elections, power loss of all: records are lost."
)
@click.option(
    *("--data-dir", "--folder", "folder"),
    cls=Renamed,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to keep all files.  [default: kept only if something is wrong]",
)
@json_option
@click.pass_context
@needs("ledger")
def chaos(
    ctx: click.Context,
    /,
    minutes: float,
    seed: int | None,
    unsafe: bool,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Inject random faults under load, end them, and check every acknowledged record.

    Three brokers, producers with acks=all (idempotent and not) and a consumer group. One seed gives
    one schedule of faults; what the clients and brokers do in between differs from run to run.
    """
    from holdfast.cli.cluster.chaos_output import as_data, show
    from holdfast.cluster.chaos import KINDS, UNSAFE_KINDS, Plan, play
    from holdfast.cluster.timeline import write_timeline
    from holdfast.pipeline.chaos_check import check

    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty", hint="name a new one with --data-dir")
    Stopper()  # SIGTERM and SIGHUP end it like an interrupt, and leave nothing behind
    seed = random.randrange(MOST_SEED) if seed is None else seed  # noqa: S311  # no secret
    home = Path(tempfile.mkdtemp(prefix="holdfast-chaos-")) if folder is None else folder.absolute()
    click.echo(f"seed {seed}: holdfast chaos {_again(minutes, seed, unsafe=unsafe)}", err=True)
    is_kept = folder is not None
    try:
        kinds = UNSAFE_KINDS if unsafe else tuple(KINDS)
        plan = Plan(folder=home, seed=seed, seconds=minutes * 60, is_safe=not unsafe, kinds=kinds)
        happened = play(plan, lambda words: click.echo(words, err=True))
        checked = check(happened)
        is_kept = is_kept or checked.exit_code != 0
    finally:
        if not is_kept:
            shutil.rmtree(home, ignore_errors=True)
    if as_json:
        click.echo(json.dumps(as_data(checked), ensure_ascii=False))
    else:
        show(checked)
    if is_kept:
        click.echo(f"everything is in {home}", err=True)
    if checked.exit_code != 0:
        timeline = write_timeline(home / "cluster")
        click.echo(f"what happened: holdfast lab replay {timeline}", err=True)
    ctx.exit(int(checked.exit_code))


def _again(minutes: float, seed: int, *, unsafe: bool) -> str:
    return f"--minutes {minutes:g} --seed {seed}{' --unsafe' if unsafe else ''}"
