"""`holdfast demo`: a guided tour in a minute: a cluster that loses its leader, then the lab."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from holdfast.cli import demo_cluster, demo_lab
from holdfast.cli.demo_parts import WIDTH


@click.command(epilog="Exit codes: 0 all as expected, 1 not, 64 bad input.")
@click.option(
    "--pages",
    "folder",
    default="demo",
    show_default=True,
    type=click.Path(file_okay=False),
    help="Where the pages go.",
)
@click.option("--no-pause", is_flag=True, help="Do not wait between the pictures.")
@click.pass_context
def demo(ctx: click.Context, /, folder: str, no_pause: bool) -> None:
    """Watch a cluster lose its leader and no record; then see in the lab how others lost some."""
    console = Console(width=WIDTH, highlight=False)
    pause = 0.0 if no_pause or not sys.stdout.isatty() else 0.9
    good = demo_cluster.tell(console)
    good = demo_lab.tell(console, Path(folder), pause) and good
    console.print(
        "\nGo on: [bold]holdfast up[/] starts such a cluster for you, [bold]holdfast fault[/] "
        "breaks it; [bold]holdfast lab list[/], then [bold]holdfast lab step ID[/]."
    )
    ctx.exit(0 if good else 1)
