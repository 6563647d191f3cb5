"""`holdfast table`: maintenance of a Delta table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from holdfast.cli.extras import needs
from holdfast.cli.options import json_option
from holdfast.cli.pipeline.ingest import absolute
from holdfast.cli.pipeline.spark_options import spark_options, spark_session
from holdfast.cli.tables import show_json

CODES = "Exit codes: 0 done, 1 Spark failed, 64 bad input, 70 a bug in Holdfast."


@click.group(epilog=CODES)
def table() -> None:
    """Maintain a Delta table: compact, history."""


@table.command(epilog=CODES)
@click.argument("path")
@json_option
@spark_options
@needs("spark")
def compact(path: str, master: str | None, conf: Sequence[str], as_json: bool) -> None:
    """Rewrite many small files as few large ones. Rows and running ingests are not affected."""
    with spark_session("holdfast table compact", master, conf) as spark:
        from holdfast.pipeline.ingest import compact as run

        done = run(spark, absolute(path))
    if as_json:
        show_json("holdfast-table-compact/1", done)
        return
    click.echo(
        f"{done['numFilesRemoved']:,} files became {done['numFilesAdded']:,} "
        f"({_mb(done['filesRemoved'])} MB became {_mb(done['filesAdded'])} MB)"
    )


def _mb(files: Mapping[str, Any]) -> str:
    return f"{(files['totalSize'] or 0) / 1e6:,.1f}"


@table.command(epilog=CODES)
@click.argument("path")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True)
@json_option
@spark_options
@needs("spark")
def history(path: str, limit: int, master: str | None, conf: Sequence[str], as_json: bool) -> None:
    """The newest versions: when, which operation, how many rows and files."""
    with spark_session("holdfast table history", master, conf) as spark:
        from holdfast.pipeline.ingest import history as run

        versions = run(spark, absolute(path), limit)
    if as_json:
        show_json("holdfast-table-history/1", {"versions": versions})
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    shown = Table(box=box.SIMPLE)
    for name in ("version", "time (UTC)", "operation", "rows", "files", "bytes"):
        shown.add_column(name, justify="left" if name in ("time (UTC)", "operation") else "right")
    for version in versions:
        shown.add_row(*_cells(version))
    Console().print(shown)


def _cells(version: Mapping[str, Any]) -> list[str]:
    metrics = version["operationMetrics"] or {}
    return [
        str(version["version"]),
        version["timestamp"],
        version["operation"].lower(),
        _number(metrics.get("numOutputRows")),
        _number(metrics.get("numFiles") or metrics.get("numAddedFiles")),
        _number(metrics.get("numOutputBytes") or metrics.get("numAddedBytes")),
    ]


def _number(text: str | None) -> str:
    return "" if text is None else f"{int(text):,}"
