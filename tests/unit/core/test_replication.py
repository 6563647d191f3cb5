"""Replication without faults, step by step (scenarios.md, section A)."""

from __future__ import annotations

from holdfast.core import Acknowledge, Fetch, FetchAnswer, HighWatermarkMoved, WakeFetch
from holdfast.model import BrokerEpoch, Offset
from tests.unit.core.support import A, B, batch, following, leading, only, produce, role_of, state

PAIR = state(isr=(A, B), replicas=(A, B))


class Pair:
    """A leads, B follows and has fetched once, so that A has its position."""

    def __init__(self) -> None:
        self.a = leading(PAIR)
        self.b = following(PAIR)
        self.b_asks()

    def b_asks(self, now_ms: int = 0) -> FetchAnswer:
        asked = self.b.next_fetch()
        assert asked
        fetch = Fetch(
            B,
            asked.fetch_offset,
            asked.last_fetched_epoch,
            asked.current_leader_epoch,
            BrokerEpoch(1),
        )
        return self.a.fetched(fetch, now_ms)

    def b_receives(self, answer: FetchAnswer) -> None:
        headers = [batch(offset) for offset in range(answer.fetch_offset, answer.end_offset)]
        self.b.append_as_follower(headers, answer.high_watermark, 0)

    def row(self) -> tuple[int, int, int, int, int]:
        """A.LEO, A.remote[B], A.HW, B.LEO, B.HW."""
        remote = role_of(self.a).insync.followers[B].log_end_offset
        a, b = self.a.log, self.b.log
        return (a.log_end_offset, remote, a.high_watermark, b.log_end_offset, b.high_watermark)


def test_sync_fetch_after_produce_row_by_row() -> None:
    pair = Pair()
    assert pair.row() == (0, 0, 0, 0, 0)

    effects = produce(pair.a, "m0")
    assert pair.row() == (1, 0, 0, 0, 0)
    assert only(Acknowledge, effects) == []

    answer = pair.b_asks()
    assert pair.row() == (1, 0, 0, 0, 0)
    assert (answer.fetch_offset, answer.end_offset, answer.high_watermark) == (0, 1, 0)

    pair.b_receives(answer)
    assert pair.row() == (1, 0, 0, 1, 0)

    answer = pair.b_asks()
    assert pair.row() == (1, 1, 1, 1, 0)
    moved = HighWatermarkMoved(Offset(0), Offset(1))
    assert answer.effects == (moved, Acknowledge("m0", Offset(0)))
    assert (answer.fetch_offset, answer.end_offset, answer.high_watermark) == (1, 1, 1)

    pair.b_receives(answer)
    assert pair.row() == (1, 1, 1, 1, 1)


def test_a_parked_fetch_is_woken_by_the_append_and_ends_in_the_same_row() -> None:
    pair = Pair()
    assert pair.a.park_fetch("B's fetch", 500, at_end=True)

    assert only(WakeFetch, produce(pair.a, "m0")) == [("B's fetch",)]
    woken = pair.b_asks()
    pair.b_receives(woken)
    assert pair.row() == (1, 0, 0, 1, 0)

    answer = pair.b_asks()
    assert only(Acknowledge, answer.effects) == [("m0", 0)]
    pair.b_receives(answer)
    assert pair.row() == (1, 1, 1, 1, 1)


def test_a_parked_fetch_is_woken_once() -> None:
    pair = Pair()
    pair.a.park_fetch("B's fetch", 500, at_end=True)
    produce(pair.a)
    assert only(WakeFetch, produce(pair.a)) == []


def test_a_parked_fetch_expires_at_its_deadline_and_not_before() -> None:
    pair = Pair()
    pair.a.park_fetch("B's fetch", 500, at_end=True)
    assert pair.a.tick(499) == ()
    assert pair.a.tick(500) == (WakeFetch("B's fetch"),)
    assert pair.a.tick(501) == ()


def test_a_consumer_waits_for_the_high_watermark_and_not_for_the_end() -> None:
    pair = Pair()
    pair.a.park_fetch("consumer", 500, at_end=False)
    assert only(WakeFetch, produce(pair.a)) == []
    pair.b_receives(pair.b_asks())
    assert only(WakeFetch, pair.b_asks().effects) == [("consumer",)]


def test_a_parked_consumer_expires_too() -> None:
    pair = Pair()
    pair.a.park_fetch("consumer", 500, at_end=False)
    assert pair.a.tick(500) == (WakeFetch("consumer"),)


def test_the_same_handle_parked_again_replaces_the_older_request() -> None:
    pair = Pair()
    pair.a.park_fetch("B's fetch", 500, at_end=True)
    pair.a.park_fetch("B's fetch", 900, at_end=True)
    assert pair.a.tick(500) == ()
    assert pair.a.tick(900) == (WakeFetch("B's fetch"),)


def test_a_parked_fetch_can_be_forgotten() -> None:
    pair = Pair()
    pair.a.park_fetch("follower", 500, at_end=True)
    pair.a.park_fetch("consumer", 500, at_end=False)
    assert pair.a.unpark_fetch("follower")
    assert pair.a.unpark_fetch("consumer")
    assert not pair.a.unpark_fetch("consumer")
    assert pair.a.tick(500) == ()


def test_only_a_leader_lets_requests_wait() -> None:
    follower = following(PAIR)
    assert not follower.park_fetch("consumer", 500, at_end=True)
    assert not follower.unpark_fetch("consumer")


def test_a_followers_high_watermark_is_never_beyond_its_own_end() -> None:
    follower = following(PAIR)
    effects = follower.append_as_follower([batch(0)], Offset(5), 0)
    assert effects == (HighWatermarkMoved(Offset(0), Offset(1)),)
    assert follower.log.high_watermark == 1


def test_a_followers_high_watermark_does_not_fall_with_its_leaders() -> None:
    follower = following(PAIR)
    follower.append_as_follower([batch(0), batch(1)], Offset(2), 0)
    assert follower.append_as_follower([], Offset(1), 0) == ()
    assert follower.log.high_watermark == 2
