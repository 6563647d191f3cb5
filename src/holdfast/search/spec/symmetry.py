"""Replica symmetry: one state represents all states that differ only in replica names.

The representative is the smallest packing under all permutations. The permutations are visited by
swapping two neighbours at a time (plain changes), so one set of tables per swap suffices. A table
covers a few adjacent fields of a word and maps them to their new values and places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holdfast.search.spec.layout import WORD, Column, Field, Layout, States

TABLE_BITS = 12
"""Small enough for a table to stay in the cache."""


@dataclass(frozen=True, slots=True)
class _Table:
    source: Field
    target: int
    values: States


@dataclass(frozen=True, slots=True)
class _Swap:
    fixed: list[np.uint64]
    """For each word, the bits that the swap does not change."""
    tables: list[_Table]

    def __call__(self, states: States) -> States:
        swapped = np.empty_like(states)
        for word, mask in enumerate(self.fixed):
            np.bitwise_and(states[word], mask, out=swapped[word])
        for table in self.tables:
            swapped[table.target] |= table.values[table.source.get(states)]
        return swapped


class Symmetry:
    def __init__(self, layout: Layout) -> None:
        swaps = [_swap(layout, first) for first in range(layout.bounds.replicas - 1)]
        self._path = [swaps[first] for first in plain_changes(layout.bounds.replicas)]

    def representative(self, states: States) -> States:
        """The smallest packing of each state under all permutations of the replicas."""
        best, current = states, states
        for swap in self._path:
            current = swap(current)
            best = _smaller(best, current)
        return best


def plain_changes(count: int) -> Iterator[int]:
    """The swaps (index of the first of two neighbours) that visit all permutations of `count`."""
    if count < 2:
        return
    down, up = range(count - 2, -1, -1), range(count - 1)
    yield from down
    for number, place in enumerate(plain_changes(count - 1)):
        # The last one moves through the others; while it is at the front, they have moved by one.
        yield place + 1 if number % 2 == 0 else place
        yield from up if number % 2 == 0 else down


def _smaller(ones: States, others: States) -> States:
    if len(ones) == 1:
        return np.minimum(ones, others)
    less = np.zeros(ones.shape[1], np.bool_)
    equal = ~less
    for one, other in zip(ones, others, strict=True):
        less |= equal & (other < one)
        equal &= one == other
    return np.where(less, others, ones)


def _swap(layout: Layout, first: int) -> _Swap:
    fixed = [0] * layout.words
    tables: list[_Table] = []
    for source in _sources(layout):
        states = np.zeros((layout.words, 2**source.width), np.uint64)
        source.put(states, np.arange(2**source.width))
        swapped = _swapped(layout, states, first)
        if np.array_equal(states, swapped):
            fixed[source.word] |= source.mask << source.shift
            continue
        tables += [
            _Table(source, target, values) for target, values in enumerate(swapped) if values.any()
        ]
    return _Swap([np.uint64(mask) for mask in fixed], tables)


def _sources(layout: Layout) -> Iterator[Field]:
    """Adjacent fields, as many as a table can cover; a very wide field has its own table."""
    first, *others = layout.fields
    word, shift, width = first.word, first.shift, first.width
    for field in others:
        if field.word == word and width + field.width <= TABLE_BITS:
            width += field.width
            continue
        yield Field(word, shift, width)
        word, shift, width = field.word, field.shift, field.width
    yield Field(word, shift, width)


def _swapped(layout: Layout, states: States, first: int) -> States:
    """Swap the names of two neighbouring replicas, field by field (slow)."""
    swapped = states.copy()
    own = [[*log] for log in layout.log]
    for replica, fields in enumerate(own):
        fields += [layout.high_watermark[replica], layout.epoch[replica], layout.isr[replica]]
    for one, other in zip(own[first], own[first + 1], strict=True):
        one.put(swapped, other.get(states))
        other.put(swapped, one.get(states))
    for isr in (*layout.isr, *layout.request_isr, layout.agreed_isr):
        isr.put(swapped, _swapped_isr(isr.get(swapped), first))
    for leader in layout.request_leader:
        leader.put(swapped, _swapped_leader(leader.get(states), first))
    return swapped


def _swapped_isr(isr: Column, first: int) -> Column:
    one, other = (
        (isr >> np.uint64(first)) & np.uint64(1),
        (isr >> np.uint64(first + 1)) & np.uint64(1),
    )
    rest = isr & np.uint64(2**WORD - 1 - (3 << first))
    swapped: Column = rest | (one << np.uint64(first + 1)) | (other << np.uint64(first))
    return swapped


def _swapped_leader(leader: Column, first: int) -> Column:
    one, other = first + 1, first + 2
    swapped = np.where(leader == one, other, leader)
    return np.where(leader == other, one, swapped)
