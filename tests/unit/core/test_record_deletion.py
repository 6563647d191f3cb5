"""DeleteRecords: what a leader may delete, and when nobody can serve it any more."""

from __future__ import annotations

import pytest

from holdfast.core import deletion_target, low_watermark
from holdfast.model import NO_OFFSET, ErrorCode
from tests.unit.core.support import A, B, C, following, leading, log, role_of, state


@pytest.mark.parametrize(
    ("asked", "error", "target"),
    [
        (0, ErrorCode.NONE, 0),
        (4, ErrorCode.NONE, 4),
        (-1, ErrorCode.NONE, 4),
        (5, ErrorCode.OFFSET_OUT_OF_RANGE, NO_OFFSET),
        (-2, ErrorCode.OFFSET_OUT_OF_RANGE, NO_OFFSET),
    ],
)
def test_only_committed_records_are_deleted(asked: int, error: ErrorCode, target: int) -> None:
    leader = leading(held=log(9, high_watermark=4))
    assert deletion_target(leader, asked) == (error, target)


def test_only_a_leader_deletes() -> None:
    refused = (ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_OFFSET)
    assert deletion_target(following(held=log(9, high_watermark=4)), 2) == refused


def test_the_in_sync_replica_with_the_smallest_start_decides() -> None:
    leader = role_of(leading(state(isr=(A, B))))
    assert low_watermark(leader, {A: 4, B: 3, C: 0}) == 3, "C could not lead"


def test_a_follower_that_has_not_fetched_may_still_have_everything() -> None:
    leader = role_of(leading(state(isr=(A, B))))
    assert low_watermark(leader, {A: 4, C: 4}) == -1
