"""Batches before their append: one by one, and together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from holdfast.model import ErrorCode
from holdfast.protocol.records import RecordBatchHeader
from holdfast.storage import Log


class ProduceWaiter(Protocol):
    """The request that waits for a batch to be acknowledged."""

    def finished(self, error: ErrorCode, base_offset: int) -> None:
        """The batch is replicated as acks asks for, or failed with an error."""


def append_all(
    log: Log, batches: list[memoryview], headers: list[RecordBatchHeader], wall_ms: int
) -> None:
    """One write, or several if the batches do not fit into one segment."""
    for part in fitting(batches, log.settings.segment_bytes):
        log.append(batches[part], wall_ms, headers[part])


def fitting(batches: Sequence[memoryview], largest: int) -> Iterator[slice]:
    """Groups of consecutive batches that fit into one segment; mostly one group."""
    first, size = 0, 0
    for place, batch in enumerate(batches):
        if size and size + len(batch) > largest:
            yield slice(first, place)
            first, size = place, 0
        size += len(batch)
    yield slice(first, len(batches))


def split(records: memoryview, headers: Sequence[RecordBatchHeader]) -> list[memoryview]:
    """The batches of one buffer, one by one."""
    batches: list[memoryview] = []
    position = 0
    for header in headers:
        batches.append(records[position : position + header.size])
        position += header.size
    return batches
