"""Throttled copying."""

from typing import Any, cast

from holdfast.broker.fetch.replication_throttle import LOOK_AGAIN_S, Quota


class StandingClock:
    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return self.ms


def test_a_bucket_may_be_overdrawn_once_and_then_fills_with_the_rate() -> None:
    clock = StandingClock()
    quota = Quota(cast("Any", clock), lambda: 1000)
    assert quota.wait_s() == 0
    quota.spend(3000)
    clock.ms = 2500
    assert quota.wait_s() == 0.5
    clock.ms = 3000
    assert quota.wait_s() == 0


def test_it_never_saves_up_more_than_a_second() -> None:
    clock = StandingClock()
    quota = Quota(cast("Any", clock), lambda: 1000)
    clock.ms = 60_000
    assert quota.wait_s() == 0
    quota.spend(1500)
    assert quota.wait_s() == 0.5


def test_a_rate_of_zero_is_checked_again() -> None:
    quota = Quota(cast("Any", StandingClock()), lambda: 0)
    quota.spend(1)
    assert quota.wait_s() > 0


def test_a_waiter_soon_notices_a_raised_rate() -> None:
    rates = [1000]
    clock = StandingClock()
    quota = Quota(cast("Any", clock), lambda: rates[-1])
    quota.spend(1_000_000)
    assert quota.wait_s() == LOOK_AGAIN_S, "not the thousand seconds of the debt"
    rates.append(100_000_000)
    clock.ms = 1000
    assert quota.wait_s() == 0
