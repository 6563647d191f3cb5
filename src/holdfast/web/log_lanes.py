"""Draws the copies of a partition around the place of a loss: one lane a replica, one offset axis.

Reading a lane: colour is the leader epoch that wrote the records; the red band marks the offsets
that were lost; the bar below reaches as far as the disk surely has it; what happened to this very
log is written under it. From thousands of offsets to one, the picture has the same width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from holdfast.pipeline.audit import PartitionFacts, ReplicaFacts
from holdfast.pipeline.audit.findings import Step
from holdfast.web.drawing import (
    box,
    card,
    group,
    line,
    number,
    path,
    pill,
    shortened,
    text,
    text_width,
)
from holdfast.web.theme import EPOCH_COLOURS

WIDTH: Final = 960
HEAD: Final = 150
"""Left of the logs: a replica's name and what it has."""
ROOM: Final = WIDTH - HEAD - 34
LANE: Final = 88
GAP: Final = 10
TOP: Final = 42
CELLS: Final = 14
CELL_HEIGHT: Final = 30
MOST_CELLS: Final = 24
"""More offsets than this are drawn as bars."""
LEAST_LABEL: Final = 26
_SIGNS: Final = {
    "became-leader": ("★", "began to lead at {0}"),
    "truncated": ("✂", "cut its log off at {0}"),
    "power-lost": ("⚡", "power failed: on disk below {0} only"),
    "disk-lost": ("⚡", "disk came back empty"),
    "crashed": ("✖", "died"),
    "stopped": ("■", "shut down"),
    "restarted": ("↻", "came back, log ends at {0}"),
}


@dataclass(frozen=True, slots=True)
class Window:
    """The offsets that the picture shows, and those that were lost."""

    start: int
    end: int
    lost_start: int
    lost_end: int

    @property
    def size(self) -> int:
        return self.end - self.start

    def x(self, offset: float) -> float:
        """Where an offset begins; what lies outside is at the edge."""
        inside = min(max(offset, self.start), self.end)
        return HEAD + (inside - self.start) * ROOM / self.size


def window_of(replicas: Sequence[ReplicaFacts], lost_start: int, lost_end: int) -> Window:
    """The lost offsets, room on both sides, and the ends of logs and reigns that are near."""
    size = lost_end - lost_start
    reach = max(3, size)
    near = [lost_start - max(2, size // 3), lost_end + max(2, size // 3)]
    for replica in replicas:
        ends = [replica.log_end_offset, *(one.start_offset for one in replica.epochs)]
        near += [end for end in ends if lost_start - reach <= end <= lost_end + reach]
    return Window(max(0, min(near)), max(near) + 1, lost_start, lost_end)


def lanes(
    partition: PartitionFacts,
    window: Window,
    steps: Sequence[Step],
    has: Sequence[str],
    label: str,
) -> str:
    """One picture; its size is set by the page. `label`: what the marked offsets are."""
    title = f"<title>{escape(f'The copies of {partition.topic}-{partition.partition}')}</title>"
    rows = sorted(partition.replicas, key=lambda one: one.broker)
    height = TOP + len(rows) * (LANE + GAP)
    drawn = [_axis(window)]
    for place, replica in enumerate(rows):
        top = TOP + place * (LANE + GAP)
        own = [step for step in steps if step.broker == replica.broker]
        drawn.append(_lane(replica, window, top, own, _state(replica, has, window)))
    drawn.append(_band_label(window, label))
    return (
        f'<svg class="hf" role="img" viewBox="0 0 {WIDTH} {height}" '
        f'xmlns="http://www.w3.org/2000/svg">{title}{"".join(drawn)}</svg>'
    )


def _axis(window: Window) -> str:
    """At most ten numbers, at round offsets."""
    step = 1
    while window.size / step > 10:  # Ends: each round makes the step larger.
        step = step * 2 if str(step)[0] in "15" else step * 5 // 2
    first = -(-window.start // step) * step
    middle = ROOM / window.size / 2 if window.size <= MOST_CELLS else 0
    marks = [
        text(window.x(offset) + middle, 33, f"{offset:,}", "t10 m soft")
        for offset in range(first, window.end, step)
    ]
    return group("", text(16, 33, "OFFSET", "cap"), *marks)


def _band(window: Window, top: float) -> str:
    x, end = window.x(window.lost_start), window.x(window.lost_end)
    body = box(x, top + 1, max(3, end - x), LANE - 22, radius=0)
    return body.replace("/>", ' class="lostband"/>')


def _band_label(window: Window, label: str) -> str:
    middle = (window.x(window.lost_start) + window.x(window.lost_end)) / 2
    drawn, width = pill(0, 2, label, "lost")
    x = min(max(middle - width / 2, HEAD), HEAD + ROOM - width)
    return f'<g transform="translate({number(x)},0)">{drawn}</g>'


def _state(replica: ReplicaFacts, has: Sequence[str], window: Window) -> tuple[str, str]:
    if replica.broker in has:
        return "has what was sent", "good"
    is_short = replica.log_end_offset <= window.lost_start
    return ("ends before" if is_short else "has others there"), "bad"


def _lane(
    replica: ReplicaFacts, window: Window, top: float, steps: Sequence[Step], state: tuple[str, str]
) -> str:
    parts = [
        card(0, top, WIDTH - 8, LANE, "lane"),
        _band(window, top),
        _name(replica.broker, top),
        pill(14, top + 38, *state)[0],
        *_spans(replica, window, top + CELLS),
        _gone(replica, window, top + CELLS),
        _disk(replica, window, top + CELLS + CELL_HEIGHT + 6),
        _marks(replica, window, top),
        _told(steps, top + LANE - 10),
    ]
    return group("", *parts, title=_described(replica))


def _name(broker: str, top: float) -> str:
    size = 15 if text_width(broker, 15) <= HEAD - 26 else 11
    return text(16, top + 27, shortened(broker, HEAD - 26, size), f"t{size} b")


def _described(replica: ReplicaFacts) -> str:
    return (
        f"{replica.broker}: offsets {replica.log_start_offset} to {replica.log_end_offset - 1}, "
        f"in {replica.path}"
    )


def _spans(replica: ReplicaFacts, window: Window, top: float) -> list[str]:
    """The log as far as the window shows it: a cell an offset, or a bar an epoch."""
    starts = [one.start_offset for one in replica.epochs]
    drawn = []
    for place, entry in enumerate(replica.epochs):
        ends = starts[place + 1] if place + 1 < len(starts) else replica.log_end_offset
        start = max(entry.start_offset, replica.log_start_offset, window.start)
        end = min(ends, replica.log_end_offset, window.end)
        if start >= end:
            continue
        classes = f"c e{entry.epoch % EPOCH_COLOURS}"
        if window.size <= MOST_CELLS:
            drawn += [_cell(window, one, top, classes, entry.epoch) for one in range(start, end)]
        else:
            drawn.append(_bar(window, start, end, top, classes, entry.epoch))
    return drawn


def _cell(window: Window, offset: int, top: float, classes: str, epoch: int) -> str:
    x, width = window.x(offset), ROOM / window.size
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
    """Where the lost records would be in a log that ends before them."""
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
        bar = box(start + 1.5, y - 2, max(1, min(flushed, end) - start - 3), 4, radius=2)
        drawn.append(bar.replace("/>", ' class="disk"/>'))
    if end > flushed:
        drawn.append(line(max(start, flushed) + 3, y, end - 3, y, "mem"))
    return group("", *drawn, title=f"flushed below offset {replica.flushed}")


def _marks(replica: ReplicaFacts, window: Window, top: float) -> str:
    """The end of the log, and of its committed part as last checkpointed; both if they are near."""
    drawn = []
    end, committed = replica.log_end_offset, replica.high_watermark
    if window.start <= end <= window.end:
        x = window.x(end)
        drawn.append(line(x, top + 8, x, top + CELLS + CELL_HEIGHT + 16, "leo"))
        place, side = (x + 4, "") if x < HEAD + ROOM - 60 else (x - 4, " r")
        words = f"end {end:,}"
        drawn.append(text(place, top + CELLS + CELL_HEIGHT + 16, words, f"t10 soft{side}"))
    if committed is not None and window.start <= committed <= window.end:
        x = window.x(committed)
        drawn.append(line(x, top + 6, x, top + CELLS + CELL_HEIGHT + 3, "hw"))
        tip = f"M{number(x - 4)} {number(top + 4)}h8l-4 6z"
        drawn.append(path(tip, "hwf"))
    return group("", *drawn)


def _told(steps: Sequence[Step], y: float) -> str:
    """What happened to this log, oldest first."""
    told = []
    for step in steps:
        if step.kind in _SIGNS:
            sign, words = _SIGNS[step.kind]
            place = "?" if step.offset is None else f"{step.offset:,}"
            told.append(f"{sign} {words.format(place)}")
    words = "    ".join(dict.fromkeys(told))
    return text(HEAD + 1.5, y, shortened(words, ROOM, 11), "t11 soft")
