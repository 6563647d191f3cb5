"""Which flush of a log directory begins next."""

from __future__ import annotations

from typing import cast

from holdfast.broker.replication.flushes import _Queue
from holdfast.broker.replication.partition import Partition

A, B, C = (cast("Partition", name) for name in "abc")


def test_records_are_flushed_before_checkpoints() -> None:
    queue = _Queue()
    queue.add(A, has_records=False)
    queue.add(B, has_records=False)
    queue.add(C, has_records=True)
    queue.add(B, has_records=True)
    queue.add(C, has_records=False)  # a flush of records writes the checkpoint, too
    assert [queue.take() for _ in range(3)] == [(C, True), (B, True), (A, False)]
    assert queue.is_empty
