"""Batches before their append: one by one, and together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from holdfast.model import BatchHeader, ErrorCode
from holdfast.protocol.records import RecordBatchHeader
from holdfast.storage import Log, span_of


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


def copy_all(
    log: Log, records: memoryview, headers: list[RecordBatchHeader], wall_ms: int
) -> list[BatchHeader]:
    """The same for batches in one buffer, as a leader sent them: all or none are refused.

    Returns their headers for the core.
    """
    models = [header.to_model() for header in headers]
    if len(records) > log.settings.segment_bytes:
        span_of(headers, log.log_end_offset)
        append_all(log, split(records, headers), headers, wall_ms)
    elif headers:
        log.append([records], wall_ms, headers)
    return models


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
