"""The reports of `holdfast audit run --html` in one folder, newest first."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any, Final

MOST_REPORTS: Final = 200
_HEAD_BYTES: Final = 4096
_TITLE: Final = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_LOSS: Final = re.compile(r"\d acknowledged records? (is|are) lost")
_DOUBTS: Final = ("Cannot decide", "contradict", "doubled")


def reports_in(folder: Path | None) -> list[dict[str, Any]]:
    """Name, title and time of each; empty without a folder."""
    if folder is None or not folder.is_dir():
        return []
    pages = [path for path in folder.glob("*.html") if path.is_file()]
    pages.sort(key=lambda path: -path.stat().st_mtime)
    return [_report(path) for path in pages[:MOST_REPORTS]]


def find_report(folder: Path | None, name: str) -> Path | None:
    """The file of a listed report; None for every other name."""
    listed = {one["name"] for one in reports_in(folder)}
    return folder / name if folder is not None and name in listed else None


def _report(path: Path) -> dict[str, Any]:
    with path.open("rb") as source:
        head = source.read(_HEAD_BYTES).decode("utf-8", errors="replace")
    found = _TITLE.search(head)
    title = unescape(found[1]).strip() if found else path.stem
    look = "warn" if any(words in title for words in _DOUBTS) else "good"
    if _LOSS.search(title):
        look = "bad"
    return {
        "name": path.name,
        "title": title,
        "look": look,
        "at": round(path.stat().st_mtime * 1000),
        "bytes": path.stat().st_size,
    }
