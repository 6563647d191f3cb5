"""Tables on stdout: columns by their contents, as wide as they need to be in a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import click

UNLIMITED: Final = 10_000
Row = Sequence[object]


def show_json(schema: str, content: Mapping[str, Any]) -> None:
    """One document."""
    click.echo(json.dumps({"schema": schema, **content}, ensure_ascii=False))


def show(titles: Sequence[str], rows: Iterable[Row], *, numbers: Iterable[str] = ()) -> None:
    """Print rows; columns of numbers are aligned to the right. None becomes a dash."""
    from rich.console import Console
    from rich.table import Table

    right = set(numbers)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        is_number = title in right
        table.add_column(title, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(cell, row))
    # A reader such as `awk` wants one line per row; a person can scroll a terminal only down.
    width = None if sys.stdout.isatty() else UNLIMITED
    console = Console(width=width, highlight=False, markup=False)
    with console.capture() as printed:
        console.print(table)
    for line in printed.get().splitlines():
        click.echo(line.rstrip())


def cell(value: object) -> str:
    """The text of one value."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ",".join(map(str, value))
        case _:
            return str(value)


def size(count: int | None) -> str:
    """Bytes as people read them."""
    if count is None or count < 0:
        return "-"
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
