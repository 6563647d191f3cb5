"""DeleteRecords: how far a leader may delete, and when the records are deleted everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.core.replica.leader import Leader
from holdfast.core.replica.replica import Replica
from holdfast.model import NO_OFFSET, BrokerId, ErrorCode, Offset

UP_TO_HIGH_WATERMARK: Final = -1


def deletion_target(replica: Replica, asked: int) -> tuple[ErrorCode, Offset]:
    """The new log start offset, or the error. Records that are not committed are never deleted."""
    if not replica.presumes_leadership:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_OFFSET
    high_watermark = replica.log.high_watermark
    target = high_watermark if asked == UP_TO_HIGH_WATERMARK else asked
    if not 0 <= target <= high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE, NO_OFFSET
    return ErrorCode.NONE, Offset(target)


def low_watermark(leader: Leader, starts: Mapping[BrokerId, int]) -> int:
    """The smallest log start offset of the ISR; -1 while one is unknown.

    `starts` has our own and those that followers named in their fetches. An in-sync follower that
    has not fetched from us may still have the deleted records, and could serve them as leader.
    """
    return min(starts.get(one, NO_OFFSET) for one in leader.insync.isr)
