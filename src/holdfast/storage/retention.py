"""Which old segments may go: too old, too much, or wholly below the log's start.

Only whole segments, oldest first, and never above the high watermark: what is not committed yet
may still be what the next leader has. A segment's age is that of its latest record.

The same pass forgets producers that have been silent for producer.id.expiration.ms, here and
through `Log.producers_expired` in the core.

On the thread that owns the log. A segment that goes costs a rename and a flush of the directory;
its bytes are freed later, by `LogDirectory.take_due`.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.storage.log import Log


def apply_retention(log: Log, high_watermark: int, now_ms: int) -> int:
    """Let segments go as the log's settings ask; how many went."""
    log.guarded(log.finish_swap)
    gone = _drop_while(log, high_watermark, now_ms, _is_below_start)
    if log.settings.is_deleted:
        gone += _drop_while(log, high_watermark, now_ms, _is_too_old)
        gone += _drop_by_size(log, high_watermark, now_ms)
    # Ended transactions are remembered until their markers are committed, which this takes note of.
    log.producers.last_stable_offset(high_watermark)
    silent = log.producers.expire(now_ms, log.settings.producer_id_expiration_ms)
    if silent:
        log.producers_expired(silent)
    return gone


def _is_below_start(log: Log, now_ms: int) -> bool:
    del now_ms
    return len(log.segments) > 1 and log.segments[1].base_offset <= log.log_start_offset


def _is_too_old(log: Log, now_ms: int) -> bool:
    limit = log.settings.retention_ms
    first = log.segments[0]
    newest = first.highest_timestamp().timestamp
    # Without times there is no telling how old it is, and what cannot be told is kept.
    return limit >= 0 and first.size > 0 and newest >= 0 and now_ms - newest > limit


def _drop_while(
    log: Log, high_watermark: int, now_ms: int, condition: Callable[[Log, int], bool]
) -> int:
    gone = 0
    while condition(log, now_ms) and _end_of_first(log) <= high_watermark:  # Ends with the log.
        if len(log.segments) == 1:
            log.roll(now_ms)
        log.drop_oldest(now_ms)
        gone += 1
    return gone


def _drop_by_size(log: Log, high_watermark: int, now_ms: int) -> int:
    limit = log.settings.retention_bytes
    if limit < 0:
        return 0
    surplus = sum(segment.size for segment in log.segments) - limit
    gone = 0
    while len(log.segments) > 1 and _end_of_first(log) <= high_watermark:
        size = log.segments[0].size
        if surplus < size:
            break
        surplus -= size
        log.drop_oldest(now_ms)
        gone += 1
    return gone


def _end_of_first(log: Log) -> int:
    return log.segments[1].base_offset if len(log.segments) > 1 else log.log_end_offset
