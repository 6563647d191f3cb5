"""The pid file of `holdfast up`, in the data directory."""

from __future__ import annotations

from pathlib import Path
from typing import Final

NAME: Final = "holdfast.pid"


def write(data_dir: Path, pid: int) -> None:
    """Replaces one that a killed process left."""
    (data_dir / NAME).write_text(f"{pid}\n", encoding="utf-8")


def read(data_dir: Path) -> int | None:
    """None if there is none, or no number in it."""
    try:
        text = (data_dir / NAME).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isdecimal() else None


def remove(data_dir: Path) -> None:
    """Also if it is gone already."""
    (data_dir / NAME).unlink(missing_ok=True)
