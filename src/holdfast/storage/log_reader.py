"""Reads a log: by offset, by time, and for its aborted transactions.

Reads return whole batches, as slices of files: the broker sends them without parsing them. The
first batch may begin below the requested offset, because an offset inside a batch is served with
the batch; the reader skips the records before it.

A disk that cannot be read takes the log offline, like one that cannot be written.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.model import Offset
from holdfast.protocol.records import Batch, MalformedBatchError, read_records
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.errors import OffsetOutOfRangeError
from holdfast.storage.log import Log
from holdfast.storage.recovery.transaction_index_rebuild import rebuild_transactions
from holdfast.storage.segment.batch_scan import walk_headers
from holdfast.storage.segment.segment import Segment
from holdfast.storage.segment.segment_files import Slice
from holdfast.storage.segment.transaction_index import AbortedTransaction, overlapping


class TimedOffset(NamedTuple):
    """A record found by its timestamp."""

    offset: Offset
    timestamp: int
    leader_epoch: int


def locate(log: Log, offset: int, max_bytes: int, upto: int | None = None) -> Slice | None:
    """The slice with the batches from `offset` on: at most `max_bytes`, but at least one batch.

    None if there is nothing below `upto` (the high watermark or the last stable offset; by default
    the end of the log). A batch that contains `upto` is not included. Raises LogOfflineError if the
    disk fails, or failed before.
    """
    if log.offline is not None:
        raise log.offline
    end = log.log_end_offset if upto is None else min(upto, log.log_end_offset)
    if not log.log_start_offset <= offset <= log.log_end_offset:
        raise OffsetOutOfRangeError(offset, log.log_start_offset, log.log_end_offset)
    if offset >= end:
        return None
    try:
        return _locate(log, offset, max_bytes, end)
    except OSError as error:
        raise log.fail(error) from error


def _locate(log: Log, offset: int, max_bytes: int, end: int) -> Slice | None:
    for place in range(log.place_of(offset), len(log.segments)):
        segment = log.segments[place]
        found = segment.find(offset)
        if found is None:
            continue
        if found.header.base_offset + found.header.last_offset_delta >= end:
            return None
        limit = _limit(log, place, segment, end)
        return segment.slice_from(found.position, limit, max_bytes)
    return None


def _limit(log: Log, place: int, segment: Segment, end: int) -> int:
    """The position in the file at which the batches below `end` stop."""
    is_last = place + 1 == len(log.segments)
    next_base = log.log_end_offset if is_last else log.segments[place + 1].base_offset
    if next_base <= end:
        return segment.size
    beyond = segment.find(end)
    return beyond.position if beyond is not None else segment.size


def read(log: Log, offset: int, max_bytes: int, upto: int | None = None) -> bytes:
    """The bytes that `locate` finds; empty if there are none."""
    found = locate(log, offset, max_bytes, upto)
    try:
        return found.read() if found is not None else b""
    except OSError as error:
        raise log.fail(error) from error


def offset_for_timestamp(log: Log, timestamp: int) -> TimedOffset | None:
    """The first record whose timestamp is not before `timestamp`, for ListOffsets.

    Timestamps need not rise in a log. So this skips segments, then batches, by their highest
    timestamp, and searches the records of the first batch that may have one.
    """
    try:
        for segment in log.segments:
            if segment.highest_timestamp().timestamp < timestamp:
                continue
            found = _in_segment(segment, max(timestamp, 0), log.log_start_offset)
            if found is not None:
                return found
    except OSError as error:
        raise log.fail(error) from error
    return None


def _in_segment(segment: Segment, timestamp: int, start: int) -> TimedOffset | None:
    first = segment.find(max(segment.scan_from(timestamp), start))
    if first is None:
        return None
    for position, header in walk_headers(segment.file, first.position, segment.size):
        if header.max_timestamp < timestamp:
            continue
        try:
            for record in read_records(Batch(segment.file.read(position, header.size))):
                if record.timestamp >= timestamp and record.offset >= start:
                    return TimedOffset(Offset(record.offset), record.timestamp, header.leader_epoch)
        except MalformedBatchError:
            # The broker does not parse records on append, so the header has to suffice.
            offset = Offset(max(header.base_offset, start))
            return TimedOffset(offset, header.max_timestamp, header.leader_epoch)
    return None


def latest_timestamp(log: Log) -> TimedOffset | None:
    """The record with the highest timestamp in the log (ListOffsets -3)."""
    try:
        best = max(log.segments, key=lambda segment: segment.highest_timestamp().timestamp)
        highest = best.highest_timestamp().timestamp
        return _in_segment(best, highest, log.log_start_offset) if highest >= 0 else None
    except OSError as error:
        raise log.fail(error) from error


def aborted_transactions(log: Log, start: int, end: int) -> list[AbortedTransaction]:
    """Aborted transactions with records in [start, end), for a read_committed reader."""
    aborted: list[AbortedTransaction] = []
    for segment in log.segments[log.place_of(start) :]:
        try:
            entries = segment.transactions()
        except DamagedFileError:
            entries = _rebuilt(log, segment)
        except OSError as error:
            raise log.fail(error) from error
        found, is_all = overlapping(entries, start, end)
        aborted += found
        if is_all:
            break
    return aborted


def _rebuilt(log: Log, segment: Segment) -> list[AbortedTransaction]:
    try:
        return rebuild_transactions(log, segment)
    except OSError as error:
        raise log.fail(error) from error
