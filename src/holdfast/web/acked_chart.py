"""Draws acknowledged and found records by the time of sending; missing records are red."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from holdfast.pipeline.audit import TimelinePoint
from holdfast.pipeline.audit.findings.findings import Step
from holdfast.web.drawing import box, embedded, group, line, number, path, text
from holdfast.web.time_format import clock

RIGHT: Final = 16
TOP: Final = 42
PLOT: Final = 150
HEIGHT: Final = TOP + PLOT + 40
LEAST_RED: Final = 3
"""The smallest height of a loss, so that it is visible beside many kept records."""
CLOCK: Final = 52
"""The width of a time of day."""
CLOSE: Final = 30
"""Signs closer than this would overlap."""
_SIGNS: Final = {
    "elected": "★",
    "crashed": "✖",
    "power-lost": "⚡",
    "disk-lost": "⚡",
    "stopped": "■",
}


class Shape(NamedTuple):
    """Sizes for a wide or a narrow screen."""

    width: float
    left: float
    most_bars: int
    most_times: int

    @property
    def plot(self) -> float:
        """The width of all bars together."""
        return self.width - self.left - RIGHT


WIDE: Final = Shape(960, 62, 120, 8)
NARROW: Final = Shape(360, 48, 50, 4)


class Bar(NamedTuple):
    """A time span of some seconds, with all partitions together."""

    second: int
    seconds: int
    acked: int
    found: int

    @property
    def missing(self) -> int:
        return max(0, self.acked - self.found)


def bars_of(points: Sequence[TimelinePoint], most: int) -> list[Bar]:
    """At most so many bars of equal width, also where no record was sent."""
    if not points:
        return []
    first, last = min(one.second for one in points), max(one.second for one in points)
    seconds = -(-(last - first + 1) // most)
    count = (last - first) // seconds + 1
    acked, found = [0] * count, [0] * count
    for point in points:
        place = (point.second - first) // seconds
        acked[place] += point.acked
        found[place] += point.found
    return [
        Bar(first + place * seconds, seconds, acked[place], found[place]) for place in range(count)
    ]


def chart(points: Sequence[TimelinePoint], steps: Sequence[Step], shape: Shape = WIDE) -> str:
    """The chart; empty if no record was acknowledged."""
    bars = bars_of(points, shape.most_bars)
    most = round_above(max((bar.acked for bar in bars), default=0))
    if not most:
        return ""
    width, left = shape.plot / len(bars), shape.left
    drawn = [
        _scale(most, shape),
        *(_bar(bar, left + place * width, width, most) for place, bar in enumerate(bars)),
        _times(bars, shape),
        *_events(steps, bars, shape),
    ]
    title = "Acknowledged and found, by time of sending"
    return embedded(shape.width, HEIGHT, title, "".join(drawn))


def round_above(amount: int) -> int:
    """The smallest even number of one or two digits and zeros that is not below `amount`."""
    unit = int("1".ljust(len(str(amount)) - 1, "0"))
    return -(-amount // (2 * unit)) * 2 * unit


def _bar(bar: Bar, x: float, width: float, most: int) -> str:
    if not bar.acked:
        return ""
    whole = max(1.0, bar.acked / most * PLOT)
    red = max(LEAST_RED, bar.missing / most * PLOT) if bar.missing else 0
    red = min(red, whole)
    inset = min(1.5, width / 8)
    base, parts = TOP + PLOT, []
    if whole > red:
        top, height = base - whole + red, whole - red
        parts.append(box(x + inset, top, width - 2 * inset, height, "kept", radius=0))
    if red:
        parts.append(box(x + inset, base - whole, width - 2 * inset, red, "missing", radius=0))
        middle = x + width / 2
        parts.append(path(f"M{number(middle - 4)} {base + 7}h8l-4 -6z", "missing"))
    tooltip = f"{clock(bar.second)}: {bar.acked:,} acknowledged, {bar.found:,} found"
    return group(
        "", *parts, title=f"{tooltip}, {bar.missing:,} missing" if bar.missing else tooltip
    )


def _scale(most: int, shape: Shape) -> str:
    """Three lines: at zero, half and the maximum."""
    drawn = []
    for part in (0.0, 0.5, 1.0):
        y = TOP + PLOT * (1 - part)
        drawn.append(line(shape.left, y, shape.width - RIGHT, y, "grid"))
        drawn.append(text(shape.left - 8, y + 4, f"{most * part:,.0f}", "t11 r soft"))
    return group("", *drawn)


def _times(bars: Sequence[Bar], shape: Shape) -> str:
    """A few times of day, each under the bar that begins then."""
    every = -(-len(bars) // shape.most_times)
    places = [shape.left + place * shape.plot / len(bars) for place in range(len(bars))]
    drawn = [
        text(x, TOP + PLOT + 22, clock(bar.second), "t11 soft")
        for x, bar in list(zip(places, bars, strict=True))[::every]
        if x < shape.width - CLOCK
    ]
    per = "per second" if bars[0].seconds == 1 else f"per {bars[0].seconds} seconds"
    return group("", *drawn, text(shape.left, 12, f"records {per}, UTC", "t11 soft"))


def _events(steps: Sequence[Step], bars: Sequence[Bar], shape: Shape) -> list[str]:
    """Elections and faults; close ones share a sign."""
    first, seconds = bars[0].second, bars[0].seconds
    width = shape.plot / len(bars)
    together: dict[int, list[Step]] = {}
    for step in sorted(steps, key=lambda one: one.time_ms):
        place = (step.time_ms / 1000 - first) / seconds
        if step.kind in _SIGNS and 0 <= place <= len(bars) + 1:
            together.setdefault(int(place * width / CLOSE), []).append(step)
    drawn = []
    for near in together.values():
        place = (near[0].time_ms / 1000 - first) / seconds
        x = min(shape.left + place * width, shape.width - RIGHT)
        signs = "".join(dict.fromkeys(_SIGNS[step.kind] for step in near))
        sentences = dict.fromkeys(f"{clock(one.time_ms // 1000)} {one.sentence}" for one in near)
        drawn.append(
            group(
                "event",
                line(x, TOP - 6, x, TOP + PLOT, "eventline"),
                text(x, TOP - 9, signs, "t13 m"),
                title="\n".join(sentences),
            )
        )
    return drawn
