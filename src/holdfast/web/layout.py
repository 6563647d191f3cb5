"""The geometry of the picture, the same for all frames of a scenario.

From top to bottom: the store, the offsets, one lane per replica, the produced records, the readers,
the verdict. An offset is in the same column in every lane, so that differences between logs are
visible. What no frame of the scenario needs takes no space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.lab.render.frames import Frame
from holdfast.lab.render.views import Snapshot, VerdictView
from holdfast.web.chips import Chip, produced_chips, reader_chips, store_chips
from holdfast.web.drawing import text_width, wrapped

CELL_HEIGHT = 36
GAP = 22
CHIP = 38
PILL = 17
NARROWEST = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes for a wide or a narrow screen."""

    head: float
    """Left of the logs: a replica's name and badges if `is_wide`, and a mark at offset 0."""
    side: float
    """Right of the logs: a leader's view of its followers if `is_wide`, and a mark at the end."""
    gutter: float
    """At the right edge: the arrow of a message."""
    lane: float
    cells: float
    """From the top of a lane to its cells."""
    room: float
    """The largest width of the logs."""
    most_columns: int
    widest: float
    """The widest cell."""
    chips_left: float
    title: float
    """The height of a card's title if it is above the chips."""

    @property
    def is_wide(self) -> bool:
        """Whether names and notes are beside the logs; otherwise they are above and below."""
        return self.title == 0


WIDE = Shape(
    head=176,
    side=148,
    gutter=34,
    lane=90,
    cells=28,
    room=850,
    most_columns=30,
    widest=50,
    chips_left=96,
    title=0,
)
NARROW = Shape(
    head=50,
    side=40,
    gutter=20,
    lane=140,
    cells=60,
    room=250,
    most_columns=7,
    widest=36,
    chips_left=12,
    title=20,
)
"""For a phone: 360 units, so that text keeps its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Sizes in the picture's own units, about CSS pixels at full size."""

    shape: Shape
    columns: int
    cell: float
    lanes: tuple[int, ...]
    store_rows: int
    produced_rows: int
    reader_rows: int
    verdict_lines: int

    @property
    def width(self) -> float:
        return self.card_width + self.shape.gutter

    @property
    def store_height(self) -> float:
        return 16 + self.shape.title + self.store_rows * (PILL + 7)

    @property
    def lanes_top(self) -> float:
        return self.store_height + GAP

    def lane_top(self, broker: int) -> float:
        return self.lanes_top + self.lanes.index(broker) * (self.shape.lane + GAP)

    @property
    def produced_top(self) -> float:
        return self.lanes_top + len(self.lanes) * (self.shape.lane + GAP)

    @property
    def readers_top(self) -> float:
        return self.produced_top + self._card_height(self.produced_rows)

    @property
    def verdict_top(self) -> float:
        return self.readers_top + self._card_height(self.reader_rows)

    @property
    def verdict_height(self) -> float:
        return 14 + 18 * self.verdict_lines

    @property
    def height(self) -> float:
        return self.verdict_top + (self.verdict_height + 2 if self.verdict_lines else -10)

    @property
    def card_width(self) -> float:
        return self.shape.head + self.columns * self.cell + self.shape.side

    def _card_height(self, rows: int) -> float:
        return 0 if rows == 0 else 16 + self.shape.title + rows * (CHIP + 6) + 10

    @property
    def chip_room(self) -> float:
        """The largest width of a row of chips."""
        return self.card_width - self.shape.chips_left - 8

    def first_column(self, snapshot: Snapshot) -> int:
        """The offset in the first column: the newest records are always visible."""
        return max(0, _columns_of(snapshot) - self.columns)

    def column(self, place: float) -> float:
        """The left edge of a column; columns out of view are at the edge of the picture."""
        return self.shape.head + min(max(place, 0), self.columns) * self.cell


def layout_of(frames: Sequence[Frame], shape: Shape = WIDE) -> Layout:
    """A geometry with room for every frame."""
    most = max((_columns_of(frame.snapshot) for frame in frames), default=0)
    most = max([most] + [cell.offset + 1 for frame in frames for cell in frame.removed])
    narrowest = max(NARROWEST, text_width(str(most), 10, wide=True) + 6)
    columns = min(max(most, 7), shape.most_columns, int(shape.room / narrowest))
    lanes = {view.id: None for frame in frames for view in frame.snapshot.replicas}
    bare = Layout(
        shape=shape,
        columns=columns,
        cell=max(narrowest, min(shape.widest, shape.room / columns)),
        lanes=tuple(sorted(lanes)),
        store_rows=1,
        produced_rows=0,
        reader_rows=0,
        verdict_lines=0,
    )
    snapshots = [frame.snapshot for frame in frames]
    return replace(
        bare,
        store_rows=_most_rows([store_chips(one) for one in snapshots], bare.chip_room),
        produced_rows=_most_rows([produced_chips(one) for one in snapshots], bare.chip_room),
        reader_rows=_most_rows([reader_chips(one) for one in snapshots], bare.chip_room),
        verdict_lines=max((len(verdict_lines(one, bare)) for one in snapshots), default=0),
    )


def verdict_lines(snapshot: Snapshot, layout: Layout) -> list[str]:
    """The scenario's verdict in lines that fit; none before its end."""
    verdict = snapshot.verdict
    if verdict is None:
        return []
    words = f"{verdict_look(verdict)[0]}  {verdict.verdict}: {verdict.headline}"
    return wrapped(words, layout.card_width - 32, 13)


def verdict_look(verdict: VerdictView) -> tuple[str, str]:
    """A sign and a class."""
    if verdict.harm:
        return "✖", "bad"
    return ("✓", "good") if verdict.verdict == "valid" else ("⚠", "warn")


def chip_rows(chips: Sequence[Chip], room: float) -> list[list[Chip]]:
    """The chips in rows, as words in lines."""
    rows: list[list[Chip]] = []
    used = 0.0
    for chip in chips:
        used += chip.width + 8
        if not rows or used > room:
            rows.append([])
            used = chip.width + 8
        rows[-1].append(chip)
    return rows


def _columns_of(snapshot: Snapshot) -> int:
    """One column more than the longest log has, for the next record."""
    return max((view.log_end_offset for view in snapshot.replicas), default=0) + 1


def _most_rows(chips: Sequence[Sequence[Chip]], room: float) -> int:
    return max((len(chip_rows(row, room)) for row in chips), default=0)
