"""Draws a frame, for the page and for picture files alike.

A picture consists of parts (the store, a head, a cell, …), each a string that depends on few
things, so that a page can store every different part once, however many frames show it.
"""

from __future__ import annotations

from holdfast.lab.render.frames import Frame
from holdfast.lab.render.views import Snapshot
from holdfast.web.arrows import arrow
from holdfast.web.chips import Chip, produced_chips, reader_chips, store_chips
from holdfast.web.drawing import box, card, group, number, pill, standalone, text, wrapped
from holdfast.web.lanes import lane
from holdfast.web.layout import (
    CHIP,
    PILL,
    Layout,
    chip_rows,
    layout_of,
    verdict_lines,
    verdict_look,
)

MARGIN = 18


def svg(frame: Frame, layout: Layout | None = None) -> str:
    """One standalone picture, with its sentence above it.

    Pass the layout of the whole scenario (`layout_of`) to give all its pictures one size.
    """
    # A picture of a series always has two lines for its sentence, so that all have one size.
    least = 1 if layout is None else 2
    layout = layout or layout_of([frame])
    width = layout.width + 2 * MARGIN
    caption, top = _caption(frame, layout.width, least)
    height = top + layout.height + MARGIN
    return standalone(
        width,
        height,
        frame.sentence,
        f'<g transform="translate({MARGIN},{MARGIN})">{caption}</g>'
        f'<g transform="translate({MARGIN},{number(top)})">{"".join(parts(frame, layout))}</g>',
    )


def parts(frame: Frame, layout: Layout) -> list[str]:
    """The picture's parts, in order, without frame and caption."""
    snapshot = frame.snapshot
    return [
        _store(snapshot, layout),
        _ruler(layout.first_column(snapshot), layout),
        *(part for view in snapshot.replicas for part in lane(view, frame, layout)),
        _chips(
            "PRODUCED", produced_chips(snapshot), layout.produced_top, layout.produced_rows, layout
        ),
        _chips("CONSUMERS", reader_chips(snapshot), layout.readers_top, layout.reader_rows, layout),
        _verdict(snapshot, layout),
        arrow(frame, layout),
    ]


def _caption(frame: Frame, width: float, least: int) -> tuple[str, float]:
    """The command and the sentence, and the top of the picture below them."""
    lines = wrapped(frame.sentence, width, 15)
    command = text(0, 10, f"{frame.step}  {frame.step_text}", "mono soft")
    said = "".join(text(0, 34 + 21 * place, words, "t15 b") for place, words in enumerate(lines))
    return command + said, MARGIN + 34 + 21 * max(least, len(lines))


def _store(snapshot: Snapshot, layout: Layout) -> str:
    shape = layout.shape
    drawn = [card(0, 0, layout.card_width, layout.store_height), text(16, 25, "STORE", "cap")]
    for place, row in enumerate(chip_rows(store_chips(snapshot), layout.chip_room)):
        x, y = shape.chips_left, 11.5 + shape.title + place * (PILL + 7)
        for chip in row:
            drawing, width = pill(x, y, chip.title, chip.classes)
            drawn.append(drawing)
            x += width + 8
    return group("", *drawn)


def _ruler(first: int, layout: Layout) -> str:
    """The offsets, once for all lanes."""
    y = layout.lanes_top - 7
    offsets = [
        text(layout.column(place + 0.5), y, str(first + place), "t10 m soft")
        for place in range(layout.columns)
    ]
    return group(
        "",
        text(layout.column(0) - (12 if layout.shape.is_wide else 4), y, "offset", "t10 r soft"),
        *offsets,
    )


def _chips(title: str, chips: list[Chip], top: float, rows: int, layout: Layout) -> str:
    if rows == 0 or not chips:
        return ""
    shape = layout.shape
    drawn = [
        card(0, top, layout.card_width, 10 + shape.title + rows * (CHIP + 6) + 4),
        text(16, top + (31 if shape.is_wide else 20), title, "cap"),
    ]
    for place, row in enumerate(chip_rows(chips, layout.chip_room)):
        x, y = shape.chips_left, top + 10 + shape.title + place * (CHIP + 6)
        for chip in row:
            drawn.append(_chip(chip, x, y))
            x += chip.width + 8
    return group("", *drawn)


def _chip(chip: Chip, x: float, y: float) -> str:
    middle = x + chip.width / 2
    return group(
        f"chip {chip.classes}",
        box(x, y, chip.width, CHIP, radius=7),
        text(middle, y + 16.5, chip.title, "t13 b m"),
        text(middle, y + 30.5, chip.word, "t10 m"),
        title=chip.hint,
    )


def _verdict(snapshot: Snapshot, layout: Layout) -> str:
    verdict = snapshot.verdict
    if verdict is None:
        return ""
    top = layout.verdict_top
    lines = verdict_lines(snapshot, layout)
    return group(
        f"chip {verdict_look(verdict)[1]}",
        box(0, top, layout.card_width, layout.verdict_height, radius=9),
        *(text(16, top + 21 + 18 * place, words, "t13 b") for place, words in enumerate(lines)),
        title=verdict.headline,
    )
