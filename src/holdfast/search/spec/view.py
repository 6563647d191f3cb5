"""The fields of many states as columns, and values derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from holdfast.search.spec.layout import Column, Field, Flags, Layout, States


class View:
    """Columns of many states. Replicas, epochs and offsets count from 0; codes as in `Layout`."""

    def __init__(self, layout: Layout, states: States) -> None:
        def columns(fields: Sequence[Field]) -> list[Column]:
            return [field.get(states).astype(layout.small) for field in fields]

        self.layout = layout
        self.bounds = layout.bounds
        self.states = states
        self.log = [columns(slots) for slots in layout.log]
        self.high_watermark = columns(layout.high_watermark)
        self.epoch = columns(layout.epoch)
        self.isr = columns(layout.isr)
        self.request_leader = columns(layout.request_leader)
        self.request_isr = columns(layout.request_isr)
        self.agreed_isr, self.next_epoch, self.next_record = columns(
            [layout.agreed_isr, layout.next_epoch, layout.next_record]
        )

    @cached_property
    def end(self) -> list[Column]:
        """Each replica's log end offset."""
        small = self.layout.small
        return [sum((slot != 0 for slot in log), np.zeros((), small)) for log in self.log]

    @cached_property
    def leader(self) -> list[Column]:
        """The leader in each replica's view."""
        return [pick(self.request_leader, epoch, first=1) for epoch in self.epoch]

    @cached_property
    def agreed_leader(self) -> Column:
        return pick(self.request_leader, self.next_epoch, first=1)

    @cached_property
    def presumes(self) -> list[Flags]:
        """Whether each replica presumes leadership."""
        return [self.follows(replica, replica) for replica in range(self.bounds.replicas)]

    @cached_property
    def record_epoch(self) -> list[list[Column]]:
        """The epoch codes of all records; 0 where there is no record."""
        epochs = self.bounds.epochs
        codes = np.arange(2 ** self.layout.log[0][0].width)
        table = np.where(codes == 0, 0, (codes - 1) % epochs + 1).astype(self.layout.small)
        return [[table[slot] for slot in log] for log in self.log]

    def follows(self, follower: int, leader: int) -> Flags:
        found: Flags = self.leader[follower] == leader + 1
        return found

    def true_leader(self, leader: int) -> Flags:
        """Whether it presumes leadership, in the current epoch, and is the controller's leader."""
        found: Flags = (
            (self.agreed_leader == leader + 1)
            & self.presumes[leader]
            & (self.epoch[leader] == self.next_epoch)
        )
        return found


def pick(columns: Sequence[Column], index: Column, *, first: int = 0) -> Column:
    """From each state the column with number `index`, counted from `first`; 0 if there is none."""
    found = np.zeros_like(columns[0])
    for number, column in enumerate(columns, start=first):
        found += (index == number) * column
    return found


def has(isr: Column, replica: int) -> Flags:
    found: Flags = (isr & (1 << replica)) != 0
    return found


def without(isr: Column, replica: int, replicas: int) -> Column:
    found: Column = isr & ((1 << replicas) - 1 - (1 << replica))
    return found
