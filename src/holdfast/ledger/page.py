"""The block that one thread fills for one topic, and the callables that bring its answers home.

librdkafka gives a callable back with each answer and nothing else of ours, so each record needs a
callable that knows its row. Made for each record, such objects keep Python's garbage collector
busy as long as their records are under way; with a hundred thousand of them that cost more than
all else here. So they are made once, a method bound to each row's number, and used for one block
after the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import MethodType
from typing import Any, Final

import numpy as np
from confluent_kafka import KafkaError, Message

from holdfast.ledger.blocks import Cells
from holdfast.ledger.book import Writer
from holdfast.ledger.columns import DONE, NONE, OPEN, REFUSED, UNUSED

Told = Callable[[KafkaError | None, Message], None]

_MAYBE: Final = (KafkaError.REQUEST_TIMED_OUT,)
"""Errors of a broker that has appended the record and does not know more."""

now_ns: Final = time.time_ns


class Page:
    """A row is written to its columns, `result` last; `used` rows are taken."""

    __slots__ = (
        "_carriers",
        "_promises",
        "_writer",
        "answers",
        "cells",
        "key_crc",
        "key_len",
        "partition_asked",
        "result",
        "rows",
        "sent_ns",
        "told",
        "used",
        "value_crc",
        "value_len",
    )

    def __init__(self, writer: Writer, *, promises: bool) -> None:
        self._writer = writer
        self._promises = promises
        self._carriers: list[Carrier] = []
        self.turn()

    def turn(self) -> None:
        """Begin a new block; rows of the old one stay mapped until they are answered."""
        self.rows, cells = self._writer.next_block()
        self.used = 0
        self.cells = cells
        self.value_crc = cells["value_crc"]
        self.value_len = cells["value_len"]
        self.key_crc = cells["key_crc"]
        self.key_len = cells["key_len"]
        self.partition_asked = cells["partition_asked"]
        self.sent_ns = cells["sent_ns"]
        self.result = cells["result"]
        carrier = self._free_carrier()
        carrier.attach(cells)
        self.answers, self.told = carrier.answers, carrier.told

    def refuse(self, row: int, code: int) -> None:
        """produce() itself said no."""
        self.cells["error"][row] = code
        self.cells["answered_ns"][row] = now_ns()
        self.result[row] = REFUSED
        self.told[row] = None

    def give_back(self, row: int) -> None:
        """There was no send: the row is unused again, as it was made."""
        self.result[row] = UNUSED
        for name in ("value_crc", "key_crc", "sent_ns"):
            self.cells[name][row] = 0
        for name in ("value_len", "key_len", "partition_asked"):
            self.cells[name][row] = NONE
        self.told[row] = None
        if self.used == row + 1:
            self.used = row

    def _free_carrier(self) -> Carrier:
        self._carriers = [one for one in self._carriers if one.rows == self.rows or not one.done]
        for one in self._carriers:
            if one.rows == self.rows and one.done:
                return one
        made = Carrier(self.rows, promises=self._promises)
        self._carriers.append(made)
        return made


class Carrier:
    """Callables, one a row, that write an answer into the block that is attached."""

    __slots__ = ("_answered_ns", "_attach", "answers", "rows", "told")

    def __init__(self, rows: int, *, promises: bool) -> None:
        self.rows = rows
        self.told: list[Told | None] = [None] * rows
        """The application's callbacks, until they are called."""
        self._answered_ns: Any = None
        answer, self._attach = _answering(self.told, promises)
        self.answers = [MethodType(answer, row) for row in range(rows)]

    def attach(self, cells: Cells) -> None:
        """From now on answers are for this block."""
        self._answered_ns = np.frombuffer(cells["answered_ns"], np.int64)
        self._attach(cells)

    @property
    def done(self) -> bool:
        """Whether every row of the block has its answer, so that none can come any more."""
        return bool(self._answered_ns.all())


def _answering(
    tolds: list[Told | None], promises: bool
) -> tuple[Callable[[int, KafkaError | None, Message], None], Callable[[Cells], None]]:
    """How a row takes its answer, and how the block is changed. Plain variables of an enclosing
    function are the quickest way to the columns.
    """
    partitions: Any = None
    offsets = errors = answered_ns = results = partitions

    def attach(cells: Cells) -> None:
        nonlocal partitions, offsets, errors, answered_ns, results
        partitions, offsets, errors = cells["partition"], cells["offset"], cells["error"]
        answered_ns, results = cells["answered_ns"], cells["result"]

    def answer(row: int, error: KafkaError | None, message: Message) -> None:
        if error is None and promises:
            partitions[row] = message.partition()
            offset = message.offset()
            if offset is not None:  # None: a retry found its record stored; nobody says where.
                offsets[row] = offset
            answered_ns[row] = now_ns()
            results[row] = DONE
        else:
            partition = message.partition()
            if partition is not None:  # None: it never came so far as to have one.
                partitions[row] = partition
            code = 0 if error is None else error.code()
            errors[row] = code
            answered_ns[row] = now_ns()
            results[row] = REFUSED if code > 0 and code not in _MAYBE else OPEN
        told = tolds[row]
        if told is not None:
            tolds[row] = None
            told(error, message)

    return answer, attach
