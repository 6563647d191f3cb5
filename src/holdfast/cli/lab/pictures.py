"""The pictures of a scenario: the terminal stepper, one HTML page, an SVG for every frame."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from holdfast.cli.errors import BadInput
from holdfast.lab import Frame, table


def picture_options(command: click.decorators.FC) -> click.decorators.FC:
    """Options that say where to write the pictures."""
    command = click.option(
        "--svg", "svg_folder", type=click.Path(file_okay=False), help="Write a picture per frame."
    )(command)
    command = click.option(
        "--html",
        "html_file",
        type=click.Path(dir_okay=False),
        help="Write one page with all of it.",
    )(command)
    return click.option(
        "--all", "print_everything", is_flag=True, help="Print every frame instead of stepping."
    )(command)


def show(
    variants: list[tuple[str, list[Frame]]],
    title: str,
    *,
    as_json: bool,
    svg_folder: str | None = None,
    html_file: str | None = None,
    print_everything: bool = False,
) -> dict[str, Any] | None:
    """Show the variants as the options say. With `as_json`, only return the tables."""
    if html_file:
        _write_page(variants, title, html_file)
    if svg_folder:
        _write_svgs(variants, svg_folder)
    if as_json:
        return {
            "schema": "holdfast-lab-step/1",
            "title": title,
            "stories": [{"variant": name, "table": table(frames)} for name, frames in variants],
        }
    if not (html_file or svg_folder):
        _step(variants, title, print_everything=print_everything)
    return None


def _step(variants: list[tuple[str, list[Frame]]], title: str, *, print_everything: bool) -> None:
    from holdfast.cli.lab.stepper import print_all, run_stepper  # imports rich

    has_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if has_terminal and not print_everything and all(frames for _, frames in variants):
        run_stepper(variants, title)
        return
    click.echo(title)
    for name, frames in variants:
        if name != title:
            click.echo(f"=== variant {name} ===")
        print_all(frames, sys.stdout)


def _write_page(variants: list[tuple[str, list[Frame]]], title: str, name: str) -> None:
    from holdfast.web import html_page, html_tabs

    page = html_page(variants[0][1], title) if len(variants) == 1 else html_tabs(variants, title)
    _write(Path(name), page)
    click.echo(f"page: {name}", err=True)


def _write_svgs(variants: list[tuple[str, list[Frame]]], name: str) -> None:
    from holdfast.web import layout_of, svg

    folder = Path(name)
    count = 0
    for variant, frames in variants:
        layout = layout_of(frames)
        for place, frame in enumerate(frames):
            prefix = f"{variant}-" if len(variants) > 1 else ""
            _write(folder / f"{prefix}{place:03d}.svg", svg(frame, layout))
            count += 1
    click.echo(f"pictures: {count} in {folder}", err=True)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error}") from None
