"""Turns the records of a `Persist` into batches in the log, and their results into one verdict.

Records that do not fit into one batch become several consecutive batches. All are appended in one
tick, in which the partition does not change: if it accepts the first, it accepts all. A record that
is too large for a batch fails them all before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from holdfast.broker.replication.partition import Partition
from holdfast.core import ACKS_ALL
from holdfast.model import NO_OFFSET, ErrorCode, Offset
from holdfast.protocol.records import BatchBuilder, BatchOptions, parse_header

RECORD_OVERHEAD: Final = 32
"""An upper bound of a record's overhead beyond its key and value, without headers."""

Pair = tuple[bytes, bytes | None]
"""A record's key and value."""
Encode = Callable[[Any], Pair]
Settled = Callable[["Write", ErrorCode], None]


class Write:
    """The write of the records of one token. Settled once."""

    __slots__ = ("_is_settled", "_open", "_settled", "end_offset", "token")

    end_offset: Offset
    """The offset after the last record; set when `append` has returned."""

    def __init__(self, token: int, settled: Settled) -> None:
        self.token = token
        self.end_offset = NO_OFFSET
        self._settled = settled
        self._open = 0
        self._is_settled = False

    def append(
        self, partition: Partition, records: Iterable[Pair], deadline_ms: int, wall_ms: int
    ) -> None:
        """Append as acks=all; `settled` is called with the result, perhaps immediately."""
        rules = partition.rules
        limit = min(rules.max_message_bytes, partition.log.settings.segment_bytes)
        append_time_ms = wall_ms if rules.is_append_time else None
        batches = split(records, wall_ms, limit, BatchOptions(append_time_ms=append_time_ms))
        if batches is None:
            self._settle(ErrorCode.MESSAGE_TOO_LARGE)
            return
        self._open = len(batches)
        for batch in batches:
            header = parse_header(batch)
            partition.append_checked(memoryview(batch), header, ACKS_ALL, self, deadline_ms)
            if self._is_settled:
                return
        self.end_offset = partition.replica.log.next_offset

    def finished(self, error: ErrorCode, base_offset: int) -> None:  # noqa: ARG002
        """One of the batches was committed, or failed."""
        self._open -= 1
        if error or not self._open:
            self._settle(error)

    def _settle(self, error: ErrorCode) -> None:
        if not self._is_settled:
            self._is_settled = True
            self._settled(self, error)


def split(
    records: Iterable[Pair], timestamp: int, limit: int, options: BatchOptions
) -> list[bytearray] | None:
    """As few batches as the limit allows, in order; None if a record is too large for a batch."""
    batches: list[bytearray] = []
    builder = BatchBuilder(options)
    for key, value in records:
        size = RECORD_OVERHEAD + len(key) + len(value or b"")
        if builder.count and builder.size + size > limit:
            batches.append(builder.build())
            builder = BatchBuilder(options)
        if builder.size + size > limit:
            return None
        builder.append(value, key, timestamp)
    batches.append(builder.build())
    return batches
