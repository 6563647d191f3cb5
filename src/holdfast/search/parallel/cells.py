"""Cells: sets of states that have used up the same part of each bound.

No step reduces what is used up, so a step stays in its cell or leads to a later one, and no path
returns. Cells share no states, so processes can visit them independently. A process needs all
states through which a cell is entered; they are complete once every earlier cell has been visited.

The used bounds alone would give few cells, one after the other. The version of the partition state
(leader and ISR) never falls either, and no version has two states. No path leads between cells that
have different states at the same version, so these can be visited at the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from typing import NamedTuple

from holdfast.search.states.space import State
from holdfast.search.walk import Walk


class Cell(NamedTuple):
    """What the states of a cell have in common."""

    used: tuple[int, ...]
    """The used part of every bound."""
    version: int
    """The version of the partition state in the store."""
    agreed: tuple[int, ...]
    """The leader and the ISR of that version; only the ISR's size where broker names do not count.
    """


def precedes(one: Cell, other: Cell) -> bool:
    """Whether the other cell may be reachable from this one."""
    if one.version > other.version or (one.version == other.version and one.agreed != other.agreed):
        return False
    return all(before <= after for before, after in zip(one.used, other.used, strict=True))


def first_of(cells: Iterable[Cell], unfinished: Collection[Cell] = ()) -> list[Cell]:
    """Cells that can be visited now: no other cell and no unfinished one leads to them."""
    first: list[Cell] = []
    for cell in sorted(cells, key=lambda one: (sum(one.used), one.version)):
        # A cell that leads there comes earlier, and so does one of the first cells.
        if not any(precedes(one, cell) for one in chain(unfinished, first)):
            first.append(cell)
    return first


class Cells:
    """The cells of a space."""

    def __init__(self, walk: Walk) -> None:
        self._space = walk.space
        self._names_count = not walk.renames
        self._known: dict[tuple[int, int], Cell] = {}
        self._cells: dict[Cell, Cell] = {}

    def of(self, state: State) -> Cell:
        """The cell of a state; equal cells are the same object."""
        control, _, _, budget = state[self._space.count :]
        key = (control, budget)
        cell = self._known.get(key)
        if cell is None:
            space = self._space
            view = space.parts.control_views[control]
            agreed = (view.leader, *view.isr) if self._names_count else (len(view.isr),)
            cell = self.same(Cell(space.budgets[budget][:-2], view.partition_epoch, agreed))
            self._known[key] = cell
        return cell

    def same(self, cell: Cell) -> Cell:
        """The one object for equal cells."""
        return self._cells.setdefault(cell, cell)
