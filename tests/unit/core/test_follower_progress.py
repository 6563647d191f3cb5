"""Follower progress: which follower is caught up, lags, or may join the ISR."""

from __future__ import annotations

import pytest

from holdfast.core import Guards, IsrLagRule, Settings
from holdfast.core.replica.follower_progress import (
    UNKNOWN_END,
    CommittedIsr,
    FollowerProgress,
    PendingExpand,
    PendingShrink,
)
from holdfast.model import BrokerEpoch, Offset
from tests.unit.core.support import A, B, C

SETTINGS = Settings(replica_lag_time_max_ms=100, replica_lag_max_messages=10)


def seen(*fetches: tuple[int, int, int], since_ms: int = 0) -> FollowerProgress:
    """A follower after fetches of (time, its offset, the leader's end)."""
    progress = FollowerProgress(B, since_ms)
    for now_ms, offset, leader_end in fetches:
        progress.fetched(Offset(offset), BrokerEpoch(1), Offset(leader_end), now_ms)
    return progress


def lags(
    progress: FollowerProgress, leader_end: int, now_ms: int, rule: IsrLagRule = IsrLagRule.TIME
) -> bool:
    return progress.lags(Offset(leader_end), SETTINGS, rule, now_ms)


# Caught up.


def test_a_joiner_below_the_end_has_its_own_time_to_catch_up() -> None:
    progress = seen((500, 5, 10))
    assert lags(progress, 10, 510)
    progress.joined()
    assert not lags(progress, 10, 600)
    assert lags(progress, 10, 601)


def test_a_fetch_at_the_leaders_end_is_caught_up_now() -> None:
    assert seen((50, 10, 10)).last_caught_up_ms == 50


def test_a_fetch_behind_the_end_does_not_move_the_time() -> None:
    assert seen((50, 5, 10)).last_caught_up_ms == 0


def test_reaching_the_end_of_the_last_fetch_counts_from_that_fetch() -> None:
    # A busy leader's end is always ahead; a healthy follower reaches where it was a moment ago.
    assert seen((50, 5, 10), (60, 10, 20)).last_caught_up_ms == 50


def test_not_reaching_the_end_of_the_last_fetch_counts_for_nothing() -> None:
    assert seen((50, 5, 10), (60, 9, 20)).last_caught_up_ms == 0


def test_the_time_does_not_go_back_to_an_earlier_fetch() -> None:
    progress = seen((50, 10, 10), (50, 10, 20))
    assert progress.last_caught_up_ms == 50


def test_a_fetch_records_position_broker_epoch_and_time() -> None:
    progress = FollowerProgress(B, 0)
    progress.fetched(Offset(5), BrokerEpoch(8), Offset(10), 50)
    assert progress.log_end_offset == 5
    assert progress.as_member() == (B, 8)
    assert progress.last_fetch_ms == 50


def test_a_follower_that_never_fetched_is_a_member_without_a_broker_epoch() -> None:
    assert FollowerProgress(B, 0).as_member() == (B, -1)


# Lagging: slow, stuck, bootstrapping.


def test_a_slow_follower_lags_after_the_limit_and_not_before() -> None:
    slow = seen((10, 10, 10), (60, 12, 30), (110, 14, 50))
    assert not lags(slow, 50, 110)
    assert lags(slow, 50, 111)


def test_a_stuck_follower_lags() -> None:
    assert lags(seen((10, 10, 10)), 11, 111)


def test_a_follower_at_the_leaders_end_never_lags_however_silent() -> None:
    assert not lags(seen((10, 10, 10)), 10, 99_999)


def test_a_bootstrapping_follower_lags_from_the_start_of_the_leader_epoch() -> None:
    assert not lags(FollowerProgress(B, 0), 5, 100)
    assert lags(FollowerProgress(B, 0), 5, 101)


def test_under_the_silence_rule_only_silence_lags() -> None:
    busy = seen((10, 5, 10), (200, 6, 99))
    assert not lags(busy, 99, 300, IsrLagRule.SILENCE)
    assert lags(busy, 99, 301, IsrLagRule.SILENCE)
    assert lags(busy, 99, 300)


def test_under_the_messages_rule_a_burst_lags() -> None:
    healthy = seen((10, 10, 10))
    assert not lags(healthy, 20, 11, IsrLagRule.MESSAGES)
    assert lags(healthy, 21, 11, IsrLagRule.MESSAGES)
    assert not lags(healthy, 21, 11)


def test_under_the_messages_rule_silence_lags_too() -> None:
    assert lags(seen((10, 10, 10)), 10, 111, IsrLagRule.MESSAGES)


def test_under_the_messages_rule_an_unknown_position_counts_as_the_start() -> None:
    assert not lags(FollowerProgress(B, 0), 10, 1, IsrLagRule.MESSAGES)
    assert lags(FollowerProgress(B, 0), 11, 1, IsrLagRule.MESSAGES)


# Joining.


def may_join(offset: int, watermark: int, epoch_start: int, *guards_out: str) -> bool:
    guards = Guards().without(*guards_out)
    progress = FollowerProgress(C, 0)
    if offset >= 0:
        progress.fetched(Offset(offset), BrokerEpoch(1), Offset(99), 0)
    return progress.may_join(Offset(watermark), Offset(epoch_start), guards)


@pytest.mark.parametrize(
    ("offset", "watermark", "epoch_start", "joins"),
    [
        (10, 10, 10, True),
        (9, 10, 0, False),  # Has not reached the high watermark.
        (5, 0, 10, False),  # The watermark trails the predecessor's (KAFKA-7128).
        (10, 0, 10, True),
        (10, 10, 11, False),
    ],
)
def test_a_joiner_has_the_high_watermark_and_the_start_of_the_epoch(
    offset: int, watermark: int, epoch_start: int, joins: bool
) -> None:
    assert may_join(offset, watermark, epoch_start) is joins


def test_a_joiner_has_fetched_in_this_leader_epoch() -> None:
    assert not may_join(UNKNOWN_END, 0, 0)
    assert may_join(UNKNOWN_END, 0, 0, "joiner-position-known")


def test_without_the_watermark_guard_a_joiner_may_lack_committed_records() -> None:
    assert may_join(3, 10, 0, "joiner-reached-high-watermark")


def test_without_the_epoch_start_guard_a_joiner_may_lack_what_a_predecessor_committed() -> None:
    assert may_join(5, 0, 10, "joiner-reached-epoch-start")


# The states of an ISR.


def test_the_maximal_isr_while_a_change_is_in_flight() -> None:
    assert CommittedIsr((A, B)).maximal == (A, B)
    assert PendingExpand((A, B), (A, B, C)).maximal == (A, B, C)
    assert PendingShrink((A, B), (A,)).maximal == (A, B)
