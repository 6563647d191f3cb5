"""`holdfast status`: the brokers and partitions of a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from holdfast.cli.cluster.up import refused
from holdfast.cli.options import data_dir_option, json_option
from holdfast.cluster import ClusterError
from holdfast.cluster.status import status_of

WIDTH: Final = 120
STYLES: Final = {"running": "green", "died": "red", "silent": "yellow", "paused": "yellow"}


@click.command(epilog="Exit codes: 0 running, 1 not running, 64 no cluster there.")
@data_dir_option
@json_option
@click.pass_context
def status(ctx: click.Context, /, data_dir: Path, as_json: bool) -> None:
    """Show brokers, leaders, and the offsets of every replica."""
    try:
        report = status_of(data_dir.absolute())
    except ClusterError as error:
        raise refused(error) from None
    if as_json:
        click.echo(json.dumps({"schema": "holdfast-status/1", **report}, indent=2))
    else:
        _show(report)
    ctx.exit(0 if report["is_running"] else 1)


def _show(report: dict[str, Any]) -> None:
    console = Console(width=WIDTH, highlight=False)
    running = "running" if report["is_running"] else "not running"
    console.print(f"{report['data_dir']}: {running}, store {report['store']}", soft_wrap=True)
    console.print(f"bootstrap {report['bootstrap']}\n", soft_wrap=True)
    console.print(_brokers(report["brokers"]))
    if report["partitions"]:
        console.print()
        console.print(_partitions(report["partitions"]))


def _brokers(rows: list[dict[str, Any]]) -> Table:
    table = _table("broker", "address", "pid", "state", "epoch", "faults")
    for row in rows:
        style = STYLES.get(row["state"], "")
        state = f"[{style}]{row['state']}[/]" if style else row["state"]
        table.add_row(
            f"{row['id']}{' *' if row['is_controller'] else ''}",
            row["address"],
            _or_dash(row["pid"]),
            state,
            _or_dash(row["epoch"]),
            ", ".join(row["faults"]),
        )
    table.caption = "* the controller"
    table.caption_justify = "left"
    return table


def _partitions(rows: list[dict[str, Any]]) -> Table:
    table = _table(
        "partition", "leader", "epoch", "isr", "replica", "start", "hw", "leo", "flushed"
    )
    for row in rows:
        first = True
        for broker, one in row["replicas"].items():
            shown = (
                row["partition"],
                "none" if row["leader"] < 0 else str(row["leader"]),
                str(row["leader_epoch"]),
                ",".join(map(str, row["isr"])),
            )
            numbers = (one["log_start"], one["hw"], one["leo"], one["flushed_offset"])
            table.add_row(
                *(shown if first else ("", "", "", "")),
                f"{broker} {one['role']}{', cannot copy' if one.get('copy_problem') else ''}",
                *map(str, numbers),
            )
            first = False
    return table


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title)
    return table


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)
