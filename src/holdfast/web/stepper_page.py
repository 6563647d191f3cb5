"""Renders the stepper as one self-contained page: no server, no network, no other file.

The page has the drawn parts of all frames, each different part once, and a script that shows the
parts of the selected frame. The script draws nothing itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from holdfast.lab.render.frames import Frame
from holdfast.web.layout import NARROW, WIDE, Shape, layout_of
from holdfast.web.svg import parts
from holdfast.web.theme import asset, filled


def html_page(frames: Sequence[Frame], title: str, *, at_end: bool = False) -> str:
    """A page with one scenario; `at_end`: it opens with the last frame."""
    return html_tabs([(title, frames)], title, at_end=at_end)


def html_tabs(
    scenarios: Sequence[tuple[str, Sequence[Frame]]], title: str, *, at_end: bool = False
) -> str:
    """A page with several scenarios, one tab each: before and after, for example."""
    data = [scenario_data(name, frames, at_end=at_end) for name, frames in scenarios]
    contents = {
        "/*STEPPER_CSS*/": asset("stepper.css"),
        "<!--STEPPER-->": asset("stepper_section.html"),
        "/*STEPPER_JS*/": asset("stepper.js"),
        "<!--WORDS-->": "".join(_in_words(name, frames) for name, frames in scenarios),
        "<!--DATA-->": safe_json(data),
    }
    return filled("stepper.html", title, contents)


def scenario_data(name: str, frames: Sequence[Frame], *, at_end: bool = False) -> dict[str, Any]:
    """What the script needs to show one scenario."""
    texts = _Once()
    rows = [
        {
            "line": frame.line,
            "sentence": texts.place(frame.sentence),
            "said": texts.place(frame.narration),
            "step": frame.step,
            "text": texts.place(frame.step_text),
            "t": frame.time_ms,
        }
        for frame in frames
    ]
    return {
        "name": name,
        "sign": _sign(frames),
        "narrated": any(frame.narration for frame in frames),
        "opens": max(0, len(frames) - 1) if at_end else _opening(frames),
        "rules": [list(rule) for rule in frames[-1].snapshot.rules] if frames else [],
        "texts": texts.items(),
        "frames": rows,
        "wide": _drawn(frames, WIDE),
        "narrow": _drawn(frames, NARROW),
    }


def _drawn(frames: Sequence[Frame], shape: Shape) -> dict[str, Any]:
    """The pictures of all frames in one shape; the page shows the shape that fits the screen."""
    layout = layout_of(frames, shape)
    pieces = _Once()
    rows = [[pieces.place(part) for part in parts(frame, layout)] for frame in frames]
    size = {"width": round(layout.width), "height": round(layout.height)}
    return {**size, "pieces": pieces.items(), "parts": rows}


def _opening(frames: Sequence[Frame]) -> int:
    """The frame to show first: the end of the first step after which a log holds a record."""
    for place, frame in enumerate(frames):
        is_last = place + 1 == len(frames) or frames[place + 1].step != frame.step
        if is_last and any(view.cells for view in frame.snapshot.replicas):
            return place if place + 1 < len(frames) else 0
    return 0


def _in_words(name: str, frames: Sequence[Frame]) -> str:
    """The scenario as text, for readers without JavaScript."""
    lines = "".join(f"<li>{escape(frame.sentence)}</li>" for frame in frames if frame.sentence)
    return f"<h2>{escape(name)} {_sign(frames)}</h2><ol>{lines}</ol>"


def _sign(frames: Sequence[Frame]) -> str:
    """The scenario's outcome, as a sign for its tab."""
    verdict = frames[-1].snapshot.verdict if frames else None
    if verdict is None:
        return ""
    return "✖" if verdict.harm else "✓"


class _Once:
    """Stores each different text once, and returns its index."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        return self._places.setdefault(text, len(self._places))

    def items(self) -> list[str]:
        return list(self._places)


def safe_json(data: object) -> str:
    """JSON that cannot end its script element, whatever the name of a record."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for letter in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
