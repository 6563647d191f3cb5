"""Draws a partition's replicas around a loss: one lane for each replica, one offset axis.

Reading a lane: the colour is the leader epoch that wrote the records; the red band marks the lost
offsets; the bar below ends where the flushed part certainly ends; the events of this log are
written under it. The picture has the same width for one offset and for thousands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from holdfast.pipeline.audit import PartitionFacts, ReplicaFacts
from holdfast.pipeline.audit.findings.findings import Step
from holdfast.web.drawing import (
    box,
    card,
    embedded,
    group,
    line,
    number,
    path,
    pill,
    pill_width,
    shortened,
    text,
    text_width,
    wrapped,
)
from holdfast.web.theme import EPOCH_COLOURS

GAP: Final = 10
TOP: Final = 42
CELL_HEIGHT: Final = 30
LEAST_LABEL: Final = 26
_SIGNS: Final = {
    "became-leader": ("★", "began to lead at {0}"),
    "truncated": ("✂", "truncated its log to {0}"),
    "power-lost": ("⚡", "power failed: only offsets below {0} were on disk"),
    "disk-lost": ("⚡", "disk came back empty"),
    "crashed": ("✖", "was killed"),
    "stopped": ("■", "shut down"),
    "restarted": ("↻", "came back, log ends at {0}"),
}


class Shape(NamedTuple):
    """Sizes for a wide or a narrow screen."""

    width: float
    head: float
    """Left of the logs."""
    cells: float
    """From the top of a lane to its cells; the broker's name is above or beside them."""
    most_cells: int
    """More offsets than this are drawn as bars."""
    most_marks: int
    """Numbers on the axis."""
    event_lines: int
    """The most lines for the events of a log."""

    @property
    def room(self) -> float:
        """The largest width of a log."""
        return self.width - self.head - 34

    @property
    def is_wide(self) -> bool:
        return self.head > self.cells

    @property
    def lane(self) -> float:
        return self.cells + CELL_HEIGHT + 30 + 14 * self.event_lines


WIDE: Final = Shape(960, 150, 14, 24, 10, 1)
NARROW: Final = Shape(360, 12, 44, 9, 5, 2)


@dataclass(frozen=True, slots=True)
class Window:
    """The offsets that the picture shows, and those that were lost."""

    start: int
    end: int
    lost_start: int
    lost_end: int
    shape: Shape

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def has_cells(self) -> bool:
        """Whether each offset gets a cell of its own."""
        return self.size <= self.shape.most_cells

    def x(self, offset: float) -> float:
        """The left edge of an offset; offsets outside the window are at its edge."""
        inside = min(max(offset, self.start), self.end)
        return self.shape.head + (inside - self.start) * self.shape.room / self.size


def window_of(
    replicas: Sequence[ReplicaFacts], lost_start: int, lost_end: int, shape: Shape = WIDE
) -> Window:
    """A window with the lost offsets, a margin on both sides, and near ends of logs and epochs."""
    size = lost_end - lost_start
    reach = max(3, size)
    near = [lost_start - max(2, size // 3), lost_end + max(2, size // 3)]
    for replica in replicas:
        ends = [replica.log_end_offset, *(one.start_offset for one in replica.epochs)]
        near += [end for end in ends if lost_start - reach <= end <= lost_end + reach]
    return Window(max(0, min(near)), max(near) + 1, lost_start, lost_end, shape)


def lanes(
    partition: PartitionFacts,
    window: Window,
    steps: Sequence[Step],
    has: Sequence[str],
    label: str,
) -> str:
    """One picture; the page sets its size. `label`: the meaning of the marked offsets."""
    rows = sorted(partition.replicas, key=lambda one: one.broker)
    shape = window.shape
    height = TOP + len(rows) * (shape.lane + GAP)
    drawn = [_axis(window)]
    for place, replica in enumerate(rows):
        top = TOP + place * (shape.lane + GAP)
        own = [step for step in steps if step.broker == replica.broker]
        drawn.append(_lane(replica, window, top, own, _state(replica, has, window)))
    drawn.append(_band_label(window, label))
    title = f"The copies of {partition.topic}-{partition.partition}"
    return embedded(shape.width, height, title, "".join(drawn))


def _axis(window: Window) -> str:
    """A few numbers, at round offsets."""
    step = 1
    while window.size / step > window.shape.most_marks:  # Ends: each round makes the step larger.
        step = step * 2 if str(step)[0] in "15" else step * 5 // 2
    first = -(-window.start // step) * step
    middle = window.shape.room / window.size / 2 if window.has_cells else 0
    marks = [
        text(window.x(offset) + middle, 33, f"{offset:,}", "t10 m soft")
        for offset in range(first, window.end, step)
    ]
    title = text(16, 33 if window.shape.is_wide else 14, "OFFSET", "cap")
    return group("", title, *marks)


def _band(window: Window, top: float) -> str:
    x, end = window.x(window.lost_start), window.x(window.lost_end)
    shape = window.shape
    start = 1 if shape.is_wide else shape.cells - 6
    height = shape.cells + CELL_HEIGHT + 22 - start
    return box(x, top + start, max(3, end - x), height, "lostband", radius=0)


def _band_label(window: Window, label: str) -> str:
    middle = (window.x(window.lost_start) + window.x(window.lost_end)) / 2
    drawn, width = pill(0, 2, label, "lost")
    shape = window.shape
    x = min(max(middle - width / 2, shape.head), shape.head + shape.room - width)
    return f'<g transform="translate({number(x)},0)">{drawn}</g>'


def _state(replica: ReplicaFacts, has: Sequence[str], window: Window) -> tuple[str, str]:
    if replica.broker in has:
        return "has the records", "good"
    is_short = replica.log_end_offset <= window.lost_start
    return ("log ends before" if is_short else "has other records"), "bad"


def _lane(
    replica: ReplicaFacts, window: Window, top: float, steps: Sequence[Step], state: tuple[str, str]
) -> str:
    shape = window.shape
    cells = top + shape.cells
    parts = [
        card(0, top, shape.width - 8, shape.lane, "lane"),
        _band(window, top),
        *_name(replica.broker, state, top, shape),
        *_spans(replica, window, cells),
        _gone(replica, window, cells),
        _disk(replica, window, cells + CELL_HEIGHT + 6),
        _marks(replica, window, cells),
        *_events(steps, cells + CELL_HEIGHT + 34, shape),
    ]
    return group("", *parts, title=_described(replica))


def _name(broker: str, state: tuple[str, str], top: float, shape: Shape) -> tuple[str, str]:
    """The broker's name, and its state below or beside it."""
    room = shape.head - 26 if shape.is_wide else shape.room / 2
    size = 15 if text_width(broker, 15) <= room else 11
    name = text(16, top + 27, shortened(broker, room, size), f"t{size} b")
    if shape.is_wide:
        return name, pill(14, top + 38, *state)[0]
    x = shape.width - 22 - pill_width(state[0])
    return name, pill(x, top + 13, *state)[0]


def _described(replica: ReplicaFacts) -> str:
    return (
        f"{replica.broker}: offsets {replica.log_start_offset} to {replica.log_end_offset - 1}, "
        f"in {replica.path}"
    )


def _spans(replica: ReplicaFacts, window: Window, top: float) -> list[str]:
    """The log within the window: one cell per offset, or one bar for each epoch."""
    starts = [one.start_offset for one in replica.epochs]
    drawn = []
    for place, entry in enumerate(replica.epochs):
        ends = starts[place + 1] if place + 1 < len(starts) else replica.log_end_offset
        start = max(entry.start_offset, replica.log_start_offset, window.start)
        end = min(ends, replica.log_end_offset, window.end)
        if start >= end:
            continue
        classes = f"c e{entry.epoch % EPOCH_COLOURS}"
        if window.has_cells:
            drawn += [_cell(window, one, top, classes, entry.epoch) for one in range(start, end)]
        else:
            drawn.append(_bar(window, start, end, top, classes, entry.epoch))
    return drawn


def _cell(window: Window, offset: int, top: float, classes: str, epoch: int) -> str:
    x, width = window.x(offset), window.shape.room / window.size
    return group(
        classes,
        box(x + 1.5, top, width - 3, CELL_HEIGHT, radius=4),
        text(x + width / 2, top + 13.5, shortened(str(offset), width - 4, 11), "t11 b m"),
        text(x + width / 2, top + 25, f"e{epoch}", "t10 m"),
    )


def _bar(window: Window, start: int, end: int, top: float, classes: str, epoch: int) -> str:
    x, width = window.x(start), window.x(end) - window.x(start)
    words = f"epoch {epoch}" if width >= 54 else f"e{epoch}" if width >= LEAST_LABEL else ""
    label = text(x + width / 2, top + 19, words, "t11 b m") if words else ""
    body = box(x + 1, top, max(1, width - 2), CELL_HEIGHT, radius=4)
    return group(classes, body, label)


def _gone(replica: ReplicaFacts, window: Window, top: float) -> str:
    """The place of the lost records in a log that ends before them."""
    start = max(window.lost_start, replica.log_end_offset)
    if start >= window.lost_end:
        return ""
    x, end = window.x(start), window.x(window.lost_end)
    body = box(x + 1.5, top, max(2, end - x - 3), CELL_HEIGHT, radius=4)
    words = text((x + end) / 2, top + 19, "✖", "t11 b m") if end - x >= 16 else ""
    return group("gone", body, words)


def _disk(replica: ReplicaFacts, window: Window, y: float) -> str:
    if replica.flushed is None:
        return ""
    start, flushed = window.x(replica.log_start_offset), window.x(replica.flushed)
    end = window.x(replica.log_end_offset)
    drawn = []
    if flushed > start:
        width = max(1, min(flushed, end) - start - 3)
        drawn.append(box(start + 1.5, y - 2, width, 4, "disk", radius=2))
    if end > flushed:
        drawn.append(line(max(start, flushed) + 3, y, end - 3, y, "mem"))
    return group("", *drawn, title=f"flushed below offset {replica.flushed}")


def _marks(replica: ReplicaFacts, window: Window, cells: float) -> str:
    """The log end, and the end of the committed part as last checkpointed, if they are near."""
    drawn = []
    end, committed = replica.log_end_offset, replica.high_watermark
    bottom = cells + CELL_HEIGHT
    if window.start <= end <= window.end:
        x = window.x(end)
        drawn.append(line(x, cells - 6, x, bottom + 16, "leo"))
        right = window.shape.head + window.shape.room
        place, side = (x + 4, "") if x < right - 60 else (x - 4, " r")
        drawn.append(text(place, bottom + 16, f"end {end:,}", f"t10 soft{side}"))
    if committed is not None and window.start <= committed <= window.end:
        x = window.x(committed)
        drawn.append(line(x, cells - 8, x, bottom + 3, "hw"))
        tip = f"M{number(x - 4)} {number(cells - 10)}h8l-4 6z"
        drawn.append(path(tip, "hwf"))
    return group("", *drawn)


def _events(steps: Sequence[Step], y: float, shape: Shape) -> list[str]:
    """The events of this log, oldest first, as many as fit."""
    events = []
    for step in steps:
        if step.kind in _SIGNS:
            sign, words = _SIGNS[step.kind]
            place = "?" if step.offset is None else f"{step.offset:,}"
            events.append(f"{sign} {words.format(place)}")
    lines = wrapped(" · ".join(dict.fromkeys(events)), shape.room, 11)
    if len(lines) > shape.event_lines:
        lines[shape.event_lines - 1] += " …"
    x = max(16.0, shape.head + 1.5)
    return [
        text(x, y + 14 * place, words, "t11 soft")
        for place, words in enumerate(lines[: shape.event_lines])
    ]
