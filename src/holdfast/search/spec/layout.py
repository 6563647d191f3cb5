"""How a state of the specification is packed into 64-bit words.

Many states are one array: a row a word, a column a state. Widths follow from the bounds; a field
never crosses a word, so there are as many words as needed. What other fields tell is left out:

- a log's end is the number of its records;
- every epoch was announced by exactly one LeaderAndIsr request, so a request needs no epoch, whom a
  replica takes for the leader is what the request of its epoch says, and the agreed leader is what
  the last request says. ISRs are kept: the leader changes its own and the agreed one in between.

Codes: a record is 0 for none, else 1 + id * epochs + epoch; an epoch, or the number of a replica,
is 0 for none, else one more; an ISR is a bit a replica.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.search.spec.bounds import Bounds

WORD = 64

States = npt.NDArray[np.uint64]
"""Shape (words, states)."""
Column = npt.NDArray[Any]
"""One field of many states, in the layout's small type."""
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Field:
    word: int
    shift: int
    width: int

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1

    def get(self, states: States) -> States:
        found: States = (states[self.word] >> np.uint64(self.shift)) & np.uint64(self.mask)
        return found

    def put(self, states: States, values: Column | int) -> None:
        """Change the field in place; a number is put into all states."""
        word = states[self.word]
        word &= np.uint64(~(self.mask << self.shift) & (2**WORD - 1))
        word |= np.asarray(values).astype(np.uint64) << np.uint64(self.shift)


class Layout:
    """Where everything is. Replicas, epochs and offsets count from 0."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._places: list[Field] = []
        replicas, epochs = range(bounds.replicas), range(bounds.epochs)
        isr = 2**bounds.replicas - 1
        self.log: list[list[Field]] = []
        self.high_watermark: list[Field] = []
        self.epoch: list[Field] = []
        for _ in replicas:
            records = bounds.records * bounds.epochs
            self.log.append([self._field(records) for _ in range(bounds.log_size)])
            self.high_watermark.append(self._field(bounds.log_size))
            self.epoch.append(self._field(bounds.epochs))
        self.isr = [self._field(isr) for _ in replicas]
        self.request_leader: list[Field] = []
        self.request_isr: list[Field] = []
        for _ in epochs:
            self.request_leader.append(self._field(bounds.replicas))
            self.request_isr.append(self._field(isr))
        self.agreed_isr = self._field(isr)
        self.next_epoch = self._field(bounds.epochs)
        self.next_record = self._field(bounds.records)
        self.fields = tuple(self._places)
        self.words = self.fields[-1].word + 1
        self.small = np.min_scalar_type(max(field.mask for field in self.fields))
        """The smallest type that holds any field: columns of it are quick to compare."""

    def _field(self, greatest: int) -> Field:
        width = greatest.bit_length()
        last = self._places[-1] if self._places else Field(0, 0, 0)
        end = last.shift + last.width
        fits = end + width <= WORD
        field = Field(last.word, end, width) if fits else Field(last.word + 1, 0, width)
        self._places.append(field)
        return field

    def initial(self) -> States:
        """The one initial state: nobody leads, nobody knows anything, all replicas are in sync."""
        states = np.zeros((self.words, 1), np.uint64)
        self.agreed_isr.put(states, 2**self.bounds.replicas - 1)
        return states
