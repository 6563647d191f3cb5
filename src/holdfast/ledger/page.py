"""The block that one thread fills for one topic, and the delivery callbacks that write its answers.

librdkafka returns only a callable with each answer, so each record needs a callable bound to its
row. If such objects were created per record, Python's garbage collector would traverse them while
their records are in flight; with a hundred thousand of them that cost more than everything else
here. So they are created once, a method bound to each row number, and reused for block after block.
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

DeliveryCallback = Callable[[KafkaError | None, Message], None]

_MAYBE: Final = (KafkaError.REQUEST_TIMED_OUT,)
"""Errors of a broker that appended the record and cannot say whether it was replicated."""

now_ns: Final = time.time_ns


class Page:
    """The current block of one thread and topic. `result` is the last cell written of a row."""

    __slots__ = (
        "_acknowledged",
        "_carriers",
        "_writer",
        "answers",
        "callbacks",
        "cells",
        "key_crc",
        "key_len",
        "partition_asked",
        "result",
        "rows",
        "sent_ns",
        "used",
        "value_crc",
        "value_len",
    )

    def __init__(self, writer: Writer, *, acknowledged: bool) -> None:
        self._writer = writer
        self._acknowledged = acknowledged
        self._carriers: list[Carrier] = []
        self.next_block()

    def next_block(self) -> None:
        """Begin a new block; the old one stays mapped until all its rows are answered."""
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
        self.answers, self.callbacks = carrier.answers, carrier.callbacks

    def refuse(self, row: int, code: int) -> None:
        """Record that produce() itself raised an error."""
        self.cells["error"][row] = code
        self.cells["answered_ns"][row] = now_ns()
        self.result[row] = REFUSED
        self.callbacks[row] = None

    def give_back(self, row: int) -> None:
        """Nothing was sent: make the row unused again."""
        self.result[row] = UNUSED
        for name in ("value_crc", "key_crc", "sent_ns"):
            self.cells[name][row] = 0
        for name in ("value_len", "key_len", "partition_asked"):
            self.cells[name][row] = NONE
        self.callbacks[row] = None
        if self.used == row + 1:
            self.used = row

    def _free_carrier(self) -> Carrier:
        self._carriers = [one for one in self._carriers if one.rows == self.rows or not one.done]
        for one in self._carriers:
            if one.rows == self.rows and one.done:
                return one
        made = Carrier(self.rows, acknowledged=self._acknowledged)
        self._carriers.append(made)
        return made


class Carrier:
    """Delivery callbacks, one per row, that write answers into the attached block."""

    __slots__ = ("_answered_ns", "_attach", "answers", "callbacks", "rows")

    def __init__(self, rows: int, *, acknowledged: bool) -> None:
        self.rows = rows
        self.callbacks: list[DeliveryCallback | None] = [None] * rows
        """The application's callbacks, until they are called."""
        self._answered_ns: Any = None
        answer, self._attach = _answering(self.callbacks, acknowledged)
        self.answers = [MethodType(answer, row) for row in range(rows)]

    def attach(self, cells: Cells) -> None:
        """Write answers into this block from now on."""
        self._answered_ns = np.frombuffer(cells["answered_ns"], np.int64)
        self._attach(cells)

    @property
    def done(self) -> bool:
        """Whether every row of the block has its answer, so that none can follow."""
        return bool(self._answered_ns.all())


def _answering(
    callbacks: list[DeliveryCallback | None], acknowledged: bool
) -> tuple[Callable[[int, KafkaError | None, Message], None], Callable[[Cells], None]]:
    """A function that writes an answer into its row, and one that changes the block.

    Variables of an enclosing function are the fastest access to the columns.
    """
    partitions: Any = None
    offsets = errors = answered_ns = results = partitions

    def attach(cells: Cells) -> None:
        nonlocal partitions, offsets, errors, answered_ns, results
        partitions, offsets, errors = cells["partition"], cells["offset"], cells["error"]
        answered_ns, results = cells["answered_ns"], cells["result"]

    def answer(row: int, error: KafkaError | None, message: Message) -> None:
        if error is None and acknowledged:
            partitions[row] = message.partition()
            offset = message.offset()
            if offset is not None:  # None: a retry found its record stored, at an unknown offset.
                offsets[row] = offset
            answered_ns[row] = now_ns()
            results[row] = DONE
        else:
            partition = message.partition()
            if partition is not None:  # None: it never got a partition.
                partitions[row] = partition
            code = 0 if error is None else error.code()
            errors[row] = code
            answered_ns[row] = now_ns()
            results[row] = REFUSED if code > 0 and code not in _MAYBE else OPEN
        callback = callbacks[row]
        if callback is not None:
            callbacks[row] = None
            callback(error, message)

    return answer, attach
