"""Draws a comparison: one small panel per question, with one bar for each contender."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from holdfast.search.compare import Comparison, Figures
from holdfast.web.drawing import box, card, group, standalone, text, wrapped

PANEL_WIDTH: Final = 330
PANEL_HEIGHT: Final = 132
GAP: Final = 14
MARGIN: Final = 18
TOP: Final = 92
COLUMNS: Final = 3
BAR: Final = 15
BARS_LEFT: Final = 14
BARS_WIDTH: Final = 240


class Panel(NamedTuple):
    """One question."""

    title: str
    note: str
    value: Callable[[Figures], float]
    written: Callable[[Figures], str]


PANELS: Final = (
    Panel(
        "Acknowledged records lost",
        "under the same faults",
        lambda one: one.lost,
        lambda one: f"{one.lost:,} in {one.runs_with_loss} runs" if one.lost else "none",
    ),
    Panel(
        "Time without writes",
        "of the time under faults",
        lambda one: one.unavailable_percent,
        lambda one: f"{one.unavailable_percent:.1f} %",
    ),
    Panel(
        "Copies when acknowledged",
        "on average (and the fewest)",
        lambda one: one.copies_mean,
        lambda one: f"{one.copies_mean:.2f} (≥ {one.copies_least})",
    ),
    Panel(
        "Wait for an acknowledgement",
        "99th percentile, some messages slow, no faults",
        lambda one: one.wait_p99_ms,
        lambda one: f"{one.wait_p99_ms:.0f} ms",
    ),
    Panel(
        "Crashes that writes survive",
        "at the same time, whichever brokers",
        lambda one: one.writes_survive,
        lambda one: f"{one.writes_survive}",
    ),
    Panel(
        "Power failures that data survives",
        "together: all in sync (and with the fewest copies)",
        lambda one: one.data_survives,
        lambda one: f"{one.data_survives} ({one.data_survives_least})",
    ),
)


def comparison_svg(comparison: Comparison) -> str:
    """One standalone picture."""
    rows = -(-len(PANELS) // COLUMNS)
    width = 2 * MARGIN + COLUMNS * PANEL_WIDTH + (COLUMNS - 1) * GAP
    height = TOP + rows * (PANEL_HEIGHT + GAP) - GAP + MARGIN
    parts = [_panel(one, place, comparison) for place, one in enumerate(PANELS)]
    body = "".join((_head(comparison), *parts))
    return standalone(width, height, "In-sync replicas or a majority", body)


def _head(comparison: Comparison) -> str:
    seconds = comparison.duration_ms // 1000
    said = (
        f"{comparison.replicas} replicas, acks=all; {comparison.schedules} schedules of faults, "
        f"{seconds} s each, the same for all."
    )
    legend, x = [], float(MARGIN)
    for place, one in enumerate(comparison.figures):
        legend.append(group(f"c e{place}", box(x, 63, 12, 12, radius=3)))
        legend.append(text(x + 18, 73, one.name, "t13"))
        x += 18 + len(one.name) * 7.4 + 26
    return (
        text(MARGIN, 30, "In-sync replicas or a majority?", "t22 b")
        + text(MARGIN, 51, said, "t13 soft")
        + "".join(legend)
    )


def _panel(panel: Panel, place: int, comparison: Comparison) -> str:
    x = MARGIN + place % COLUMNS * (PANEL_WIDTH + GAP)
    y = TOP + place // COLUMNS * (PANEL_HEIGHT + GAP)
    most = max(panel.value(one) for one in comparison.figures) or 1
    parts = [
        card(x, y, PANEL_WIDTH, PANEL_HEIGHT),
        text(x + BARS_LEFT, y + 23, panel.title, "t13 b"),
        text(x + BARS_LEFT, y + 40, wrapped(panel.note, PANEL_WIDTH, 11)[0], "t11 soft"),
    ]
    for row, one in enumerate(comparison.figures):
        top = y + 54 + row * (BAR + 9)
        length = max(2.0, BARS_WIDTH * 0.72 * panel.value(one) / most)
        bar = box(x + BARS_LEFT, top, length, BAR, radius=3)
        parts.append(group(f"c e{row}", bar, title=f"{one.name}: {panel.written(one)}"))
        parts.append(text(x + BARS_LEFT + length + 8, top + 12, panel.written(one), "t13"))
    return "".join(parts)
