"""Cells: states that have used up the same. What a step leads to is never used up less.

So a step stays in its cell or goes to a later one, and nobody comes back. Cells have no state in
common: each can be visited apart, by whoever has all states through which it is entered. They are
known once every cell before it has been visited.

What was used up alone would make few cells, and one after the other. The version of the agreed
state only grows, too, and no version has two states: between cells that differ in who leads at one
version no way leads, so they can be visited at the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from typing import NamedTuple

from holdfast.search.states.space import State
from holdfast.search.walk import Walk


class Cell(NamedTuple):
    """What its states have in common."""

    used: tuple[int, ...]
    """Of every bound."""
    version: int
    """Of the agreed state."""
    agreed: tuple[int, ...]
    """The leader and the ISR of that version; only its size where names do not count."""


def precedes(one: Cell, other: Cell) -> bool:
    """Whether the other can perhaps be reached from this one."""
    if one.version > other.version or (one.version == other.version and one.agreed != other.agreed):
        return False
    return all(before <= after for before, after in zip(one.used, other.used, strict=True))


def first_of(cells: Iterable[Cell], unfinished: Collection[Cell] = ()) -> list[Cell]:
    """Cells that can be visited: none of the others, and none that is under way, leads there."""
    first: list[Cell] = []
    for cell in sorted(cells, key=lambda one: (sum(one.used), one.version)):
        # Whatever leads there comes earlier, and so does something among the first.
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
        """The cell of a state; equal ones are the same object."""
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
        """The object that stands for a cell here."""
        return self._cells.setdefault(cell, cell)
