"""The one geometry of the picture: where everything is, the same for all frames of a story.

From top to bottom: the store, the offsets, a lane per replica, the promises, the readers, the
verdict. The same offset stands in the same column in every lane, so that logs that differ can be
seen to differ. What no frame of the story needs gets no room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.lab.frames import Frame
from holdfast.lab.telling.views import Snapshot
from holdfast.web.chips import Chip, promise_chips, reader_chips

HEAD = 176
"""Left of the logs: a replica's name and badges, and room for a mark at offset 0."""
SIDE = 148
"""Right of the logs: what a leader knows of the others."""
GUTTER = 34
"""At the right edge: the arrow of a message."""
CELL_HEIGHT = 36
LANE = 90
GAP = 22
STORE = 40
CHIP = 38
MOST_COLUMNS = 30
WIDEST = 50
NARROWEST = 26
ROOM = 850
"""The logs get no wider than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Sizes in the picture's own units, about CSS pixels at full size."""

    columns: int
    cell: float
    lanes: tuple[int, ...]
    promise_rows: int
    reader_rows: int
    has_verdict: bool

    @property
    def width(self) -> float:
        return HEAD + self.columns * self.cell + SIDE + GUTTER

    @property
    def lanes_top(self) -> float:
        return STORE + GAP

    def lane_top(self, broker: int) -> float:
        return self.lanes_top + self.lanes.index(broker) * (LANE + GAP)

    @property
    def promises_top(self) -> float:
        return self.lanes_top + len(self.lanes) * (LANE + GAP)

    @property
    def readers_top(self) -> float:
        return self.promises_top + _card_height(self.promise_rows)

    @property
    def verdict_top(self) -> float:
        return self.readers_top + _card_height(self.reader_rows)

    @property
    def height(self) -> float:
        return self.verdict_top + (34 if self.has_verdict else -10)

    @property
    def card_width(self) -> float:
        return self.width - GUTTER

    @property
    def chip_room(self) -> float:
        """How wide a row of chips may be, right of its title."""
        return chip_room(self.columns, self.cell)

    def first_column(self, snapshot: Snapshot) -> int:
        """The offset in the first column: the newest records are always in view."""
        return max(0, _columns_of(snapshot) - self.columns)

    def column(self, place: float) -> float:
        """The left edge of a column. Marks of what is out of view stay at the edge."""
        return HEAD + min(max(place, 0), self.columns) * self.cell


def layout_of(frames: Sequence[Frame]) -> Layout:
    """A geometry with room for every frame."""
    most = max((_columns_of(frame.snapshot) for frame in frames), default=0)
    most = max([most] + [cell.offset + 1 for frame in frames for cell in frame.removed])
    columns = min(max(most, 7), MOST_COLUMNS)
    cell = max(NARROWEST, min(WIDEST, ROOM / columns))
    lanes = {view.id: None for frame in frames for view in frame.snapshot.replicas}
    room = chip_room(columns, cell)
    return Layout(
        columns=columns,
        cell=cell,
        lanes=tuple(sorted(lanes)),
        promise_rows=_most_rows([promise_chips(frame.snapshot) for frame in frames], room),
        reader_rows=_most_rows([reader_chips(frame.snapshot) for frame in frames], room),
        has_verdict=any(frame.snapshot.verdict is not None for frame in frames),
    )


def chip_rows(chips: Sequence[Chip], room: float) -> list[list[Chip]]:
    """Chips in rows, as words in lines."""
    rows: list[list[Chip]] = []
    used = 0.0
    for chip in chips:
        used += chip.width + 8
        if not rows or used > room:
            rows.append([])
            used = chip.width + 8
        rows[-1].append(chip)
    return rows


def chip_room(columns: int, cell: float) -> float:
    return HEAD + columns * cell + SIDE - CHIPS_LEFT - 8


CHIPS_LEFT = 96


def _columns_of(snapshot: Snapshot) -> int:
    """One more than the longest log has: the slot that the next record will take."""
    return max((view.log_end_offset for view in snapshot.replicas), default=0) + 1


def _most_rows(chips: Sequence[Sequence[Chip]], room: float) -> int:
    return max((len(chip_rows(row, room)) for row in chips), default=0)


def _card_height(rows: int) -> float:
    return 0 if rows == 0 else 16 + rows * (CHIP + 6) + 10
