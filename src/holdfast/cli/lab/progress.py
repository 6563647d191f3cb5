"""Progress of a search: a bar on a terminal, otherwise a line now and then. All on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import click

LONGEST_GAP_S = 60.0


class Coverage(Protocol):
    """What a search has covered so far."""

    @property
    def distinct(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def seconds(self) -> float: ...


@contextmanager
def watching(
    noun: str = "states", *, by_level: bool = True
) -> Iterator[Callable[[Coverage], None]]:
    """Show the progress of a search: a bar on a terminal, otherwise a line now and then.

    `by_level`: states are visited in the order of their depth.
    """
    last: list[Coverage] = []
    with _bar(noun) if sys.stderr.isatty() else _lines(noun) as show:

        def watch(coverage: Coverage) -> None:
            last[:] = [coverage]
            show(coverage)

        try:
            yield watch
        except KeyboardInterrupt:
            if last:
                text = "no violation among them"
                if noun == "states" and by_level:
                    text = f"every state up to depth {last[0].depth} was visited, {text}"
                click.echo(f"{_progress(last[0], noun)}: {text}", err=True)
            raise


@contextmanager
def _bar(noun: str) -> Iterator[Callable[[Coverage], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda coverage: progress.update(task, description=_progress(coverage, noun))


@contextmanager
def _lines(noun: str) -> Iterator[Callable[[Coverage], None]]:
    gap = 1.0
    due = time.monotonic() + gap

    def show(coverage: Coverage) -> None:
        nonlocal gap, due
        if time.monotonic() >= due:
            gap = min(2 * gap, LONGEST_GAP_S)
            due = time.monotonic() + gap
            click.echo(_progress(coverage, noun), err=True)

    yield show


def _progress(coverage: Coverage, noun: str) -> str:
    rate = coverage.distinct / max(coverage.seconds, 0.001)
    depth = f", depth {coverage.depth}" if noun == "states" else ""
    return f"{coverage.distinct:,} {noun}{depth}, {rate:,.0f} {noun}/s"
