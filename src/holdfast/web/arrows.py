"""Draws the arrow of a frame's message along the right edge of the picture.

Its label is in the gap beside the sender, where nothing else is.
"""

from __future__ import annotations

from holdfast.lab.render.arrows import CONSUMER, PRODUCER, STORE, End
from holdfast.lab.render.frames import Frame
from holdfast.web.drawing import box, group, number, path, shortened, text, text_width
from holdfast.web.layout import GAP, Layout

_HALF = 10
"""An arrow starts above or below the middle of a lane, so that both directions are distinct."""


def arrow(frame: Frame, layout: Layout) -> str:
    message = frame.arrow
    if message is None:
        return ""
    source, target = _middle(message.source, layout), _middle(message.target, layout)
    if source is None or target is None or source == target:
        return ""
    down = target > source
    start = source + (_HALF if down else -_HALF)
    end = target - (_HALF if down else -_HALF)
    return group(
        "arrow" if message.arrives else "arrow no",
        _curve(start, end, layout, stops=not message.arrives),
        _label(message.text, source, layout, down=down, lost=not message.arrives),
    )


def _middle(end: End, layout: Layout) -> float | None:
    if isinstance(end, int):
        if end not in layout.lanes:
            return None
        return layout.lane_top(end) + layout.shape.lane / 2
    if end == STORE:
        return layout.store_height / 2
    if end == PRODUCER and layout.produced_rows:
        return layout.produced_top + 24
    if end == CONSUMER and layout.reader_rows:
        return layout.readers_top + 24
    return None


def _curve(start: float, end: float, layout: Layout, *, stops: bool) -> str:
    x = layout.card_width + 3
    bend = x + layout.shape.gutter - 6
    if stops:
        # The arrow of a lost message ends half way, with a cross instead of a tip.
        middle = (start + end) / 2
        cross = f"M{number(bend - 12)} {number(middle - 6)}l12 12m0 -12l-12 12"
        half = f"M{number(x)} {number(start)}C{number(bend)} {number(start)} "
        half += f"{number(bend - 6)} {number(middle)} {number(bend - 6)} {number(middle)}"
        return path(half) + path(cross)
    curve = f"M{number(x)} {number(start)}C{number(bend)} {number(start)} "
    curve += f"{number(bend)} {number(end)} {number(x + 6)} {number(end)}"
    tip = f"M{number(x)} {number(end)}l10 -5v10z"
    return path(curve) + path(tip, "tip")


def _label(words: str, source: float, layout: Layout, *, down: bool, lost: bool) -> str:
    words = shortened(
        f"{words} — lost" if lost else words,
        layout.width * (0.5 if layout.shape.is_wide else 0.85),
        11,
    )
    width = text_width(words, 11) + 16
    x = layout.card_width - width - 6
    y = _gap_beside(source, layout, down=down) - 9
    return box(x, y, width, 18, radius=9) + text(x + width / 2, y + 12.8, words, "t11 b m")


def _gap_beside(source: float, layout: Layout, *, down: bool) -> float:
    """The middle of the nearest gap between two cards, on the way to the target."""
    first = layout.lanes_top - GAP / 2
    gaps = [first + place * (layout.shape.lane + GAP) for place in range(len(layout.lanes) + 1)]
    beyond = [gap for gap in gaps if (gap > source if down else gap < source)]
    if not beyond:
        return gaps[-1]
    return beyond[0] if down else beyond[-1]
