"""What the parts of the tour share."""

from __future__ import annotations

from rich.console import Console

WIDTH = 100


def heading(console: Console, text: str) -> None:
    """A new part begins."""
    console.print()
    console.rule(f"[bold]{text}")
