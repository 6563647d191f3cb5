"""The packing of a state of the specification into 64-bit words.

Many states are one array: one row per word, one column per state. The bounds give the widths. A
field never spans two words. Values that follow from other fields are omitted:

- a log's end is the number of its records;
- every epoch was announced by exactly one LeaderAndIsr request, so a request needs no epoch. The
  leader of a replica is that of its epoch's request, and the controller's leader is that of the
  last request. ISRs are kept: the leader changes its own and the controller's in between.

Codes: a record is 0 for none, else 1 + id * epochs + epoch; an epoch or a replica number is 0 for
none, else one more; an ISR has one bit for each replica.
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
        """Change the field in place; a number is written into all states."""
        word = states[self.word]
        word &= np.uint64(~(self.mask << self.shift) & (2**WORD - 1))
        word |= np.asarray(values).astype(np.uint64) << np.uint64(self.shift)


class Layout:
    """The place of every field. Replicas, epochs and offsets count from 0."""

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
        """The smallest type that holds any field: its columns compare fast."""

    def _field(self, greatest: int) -> Field:
        width = greatest.bit_length()
        last = self._places[-1] if self._places else Field(0, 0, 0)
        end = last.shift + last.width
        fits = end + width <= WORD
        field = Field(last.word, end, width) if fits else Field(last.word + 1, 0, width)
        self._places.append(field)
        return field

    def initial(self) -> States:
        """The initial state: no leader, no epoch, no records, all replicas in sync."""
        states = np.zeros((self.words, 1), np.uint64)
        self.agreed_isr.put(states, 2**self.bounds.replicas - 1)
        return states
