"""Loads a partition of an internal topic: everything in the log when we became its leader.

It reads to the end of the log, not to the high watermark: a new leader's high watermark may trail
its predecessor's, so acknowledged records may lie above it (KIP-101). Kafka does the same. Records
above the true high watermark count once they are committed; a `CoordinatorShard` waits for that.

It loads in slices, because the same event loop serves clients. It skips and reports a record that
it cannot use. A damaged batch means a failing disk and lost records: the broker takes the log
offline, so that a replica with an intact log can lead.

Records of a transaction (Kafka wrote such, Holdfast does not yet) count when its marker commits.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from typing import Any, Final

from holdfast.broker.log_lines import LogLines
from holdfast.protocol import Payload
from holdfast.protocol.coordinator_records import Skipped
from holdfast.protocol.records import (
    Batch,
    MalformedBatchError,
    batches,
    check_batch,
    read_end_marker,
    read_records,
)
from holdfast.storage import Log, LogOfflineError, OffsetOutOfRangeError, read

CHUNK_BYTES: Final = 256 * 1024
SLICE_RECORDS: Final = 200
"""Some milliseconds of work."""

Decode = Callable[[Payload | None, Payload | None], Any]
"""From a key and a value to a record, or to a `Skipped`."""


class LogLoader:
    """Passes the records of a log to `replay`, one slice at a time."""

    def __init__(
        self,
        log: Log,
        end_offset: int,
        kind: str,
        decode: Decode,
        replay: Callable[[Any], str | None],
    ) -> None:
        self.end_offset = end_offset
        """Where to stop; later records are the new leader's own."""
        self.records = 0
        self.skipped = 0
        self.first_skipped = ""
        self._log = log
        self._kind = kind
        self._decode = decode
        self._replay = replay
        self._open: dict[int, list[Any]] = {}
        """Records of transactions that have not ended, by producer."""
        self._left_in_slice = SLICE_RECORDS
        self._slices = self._run()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return self._log.log_start_offset >= self.end_offset

    def step(self) -> bool:
        """Load one slice; False when none is left. LogOfflineError if the log has failed."""
        return next(self._slices, False)

    def _run(self) -> Iterator[bool]:
        offset: int = self._log.log_start_offset
        # Each round continues after the last batch of the previous one.
        while offset < self.end_offset:
            try:
                chunk = read(self._log, offset, CHUNK_BYTES, self.end_offset)
            except OffsetOutOfRangeError as error:
                # Records were deleted while we read. Deleted records do not count.
                if error.log_start_offset <= offset:
                    break
                offset = error.log_start_offset
                continue
            if not chunk:
                break
            for batch in self._batches(chunk):
                yield from self._load(batch)
                offset = batch.header.end_offset
        for left_open in self._open.values():
            self._skip(f"{len(left_open)} records of a transaction without an end")

    def _batches(self, chunk: bytes) -> Iterator[Batch]:
        try:
            for batch in batches(chunk):
                check_batch(batch)
                yield batch
        except MalformedBatchError as error:
            cause = OSError(errno.EIO, f"{self._kind} cannot be loaded: {error}")
            raise LogOfflineError(self._log.directory, cause) from error

    def _load(self, batch: Batch) -> Iterator[bool]:
        header = batch.header
        try:
            for record in read_records(batch):
                if header.is_control:
                    marker = read_end_marker(record, header.producer_id, header.producer_epoch)
                    if marker is not None:
                        self._end_transaction(header.producer_id, is_commit=marker.is_commit)
                    continue
                decoded = self._decode(record.key, record.value)
                if isinstance(decoded, Skipped):
                    self._skip(decoded.reason)
                elif header.is_transactional:
                    self._open.setdefault(header.producer_id, []).append(decoded)
                else:
                    self._count(decoded)
                self._left_in_slice -= 1
                if not self._left_in_slice:
                    self._left_in_slice = SLICE_RECORDS
                    yield True
        except MalformedBatchError as error:
            self._skip(str(error))

    def _end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        ended = self._open.pop(producer_id, [])
        if is_commit:
            for record in ended:
                self._count(record)

    def _count(self, record: object) -> None:
        self.records += 1
        fault = self._replay(record)
        if fault is not None:
            self._skip(fault)

    def _skip(self, reason: str) -> None:
        self.skipped += 1
        self.first_skipped = self.first_skipped or reason

    def report(self, log: LogLines) -> None:
        """Log what was loaded and what was left out."""
        kind, name = self._kind, self._log.directory
        if self.skipped:
            log.warning(
                f"records of {kind} left out",
                partition=name,
                count=self.skipped,
                first=self.first_skipped,
            )
        if self.records:
            log.info(f"{kind} loaded", partition=name, records=self.records)
