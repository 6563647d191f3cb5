"""Retention: drops old segments, by age, by the size of the log, or below the log start.

It drops only whole segments, oldest first, and never above the high watermark: the next leader may
still need uncommitted records. A segment's age is that of its latest record.

The same pass expires producers that were silent for producer.id.expiration.ms.

It runs on the thread that owns the log and changes only memory: the log start moves. The segments
below it leave the log when the log-start checkpoint has been written (`LogDirectory.dropping`), and
their bytes are freed later (`LogDirectory.take_due`).
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.model import Offset
from holdfast.storage.log import Log, no_swap


def apply_retention(log: Log, high_watermark: int, now_ms: int) -> Offset:
    """Move the log start as the settings require, and return it."""
    if log.settings.is_deleted:
        kept = _first_young(log, high_watermark, now_ms)
        kept = _first_that_fits(log, kept, high_watermark)
        if kept == len(log.segments):
            log.roll(now_ms)
        log.advance_start_to(_base_at(log, kept))
    # This drops ended transactions whose markers are committed now.
    log.producers.last_stable_offset(high_watermark)
    log.producers.expire(now_ms, log.settings.producer_id_expiration_ms)
    return log.log_start_offset


def dropped_below(log: Log, offset: int, now_ms: int) -> Iterator[None]:
    """Drop the segments that end at or below `offset`, one per step.

    The caller has a log-start checkpoint of `offset` or more on the disk. So nothing is flushed
    here: opening the log drops again what a power failure brings back.
    Without such a checkpoint the caller flushes the directory after each step.
    """
    while log.finish_swap is no_swap:  # Each round takes a segment.
        # The log may have restarted at a lower offset since the last step.
        if not log.place_of(min(offset, log.log_start_offset)):
            return
        log.drop_oldest(now_ms)
        yield


def _first_young(log: Log, high_watermark: int, now_ms: int) -> int:
    """The index of the first segment that is not too old; past the end if all are."""
    kept, limit = log.place_of(log.log_start_offset), log.settings.retention_ms
    for segment in log.segments[kept:] if limit >= 0 else ():
        newest = segment.highest_timestamp().timestamp
        # A segment without timestamps has no known age, and is kept.
        is_old = segment.size > 0 and newest >= 0 and now_ms - newest > limit
        if not is_old or _base_at(log, kept + 1) > high_watermark:
            break
        kept += 1
    return kept


def _first_that_fits(log: Log, kept: int, high_watermark: int) -> int:
    """The index of the first segment, from `kept` on, at which the log is small enough."""
    limit = log.settings.retention_bytes
    surplus = sum(segment.size for segment in log.segments[kept:]) - limit if limit >= 0 else 0
    for segment in log.segments[kept:-1]:
        if surplus <= 0 or surplus < segment.size or _base_at(log, kept + 1) > high_watermark:
            break
        surplus -= segment.size
        kept += 1
    return kept


def _base_at(log: Log, place: int) -> Offset:
    return log.segments[place].base_offset if place < len(log.segments) else log.log_end_offset
