"""Throttled copying."""

from typing import Any, cast

from holdfast.broker.quota import Quota


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
    assert quota.wait_s() == 3.0
    clock.ms = 2000
    assert quota.wait_s() == 1.0
    clock.ms = 3000
    assert quota.wait_s() == 0


def test_it_never_saves_up_more_than_a_second() -> None:
    clock = StandingClock()
    quota = Quota(cast("Any", clock), lambda: 1000)
    clock.ms = 60_000
    assert quota.wait_s() == 0
    quota.spend(3000)
    assert quota.wait_s() == 2.0


def test_a_rate_of_zero_is_asked_again() -> None:
    quota = Quota(cast("Any", StandingClock()), lambda: 0)
    quota.spend(1)
    assert quota.wait_s() > 0
