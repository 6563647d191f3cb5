"""flush.messages=N: what a replica may claim while a flush is in progress.

Kafka flushes inside the append that brings the unflushed records to N, before it answers. Here the
flush runs on another thread, so the claim waits: of the records that a replica counted towards an
acknowledgement, at most N-1 are not on its disk.
"""

from __future__ import annotations

import pytest

from holdfast.core import (
    ACKS_ALL,
    ACKS_LEADER,
    Acknowledge,
    Effects,
    Flush,
    FlushRule,
    HighWatermarkMoved,
    Replica,
    Settings,
)
from holdfast.model import ErrorCode, Offset
from tests.unit.core.support import (
    A,
    B,
    batch,
    fetches,
    following,
    leading,
    log,
    only,
    produce,
    state,
)

COUNTS = (1, 2, 3, 5)


def every(messages: int, minimum: int = 1) -> Settings:
    rule = FlushRule.EVERY_APPEND if messages == 1 else FlushRule.EVERY_N_MESSAGES
    return Settings(
        flush_rule=rule, log_flush_interval_messages=messages, min_insync_replicas=minimum
    )


def alone(messages: int) -> Replica:
    return leading(state(isr=(A,)), log(settings=every(messages)))


def claims(effects: Effects) -> list[object]:
    return [one for one in effects if isinstance(one, Acknowledge | HighWatermarkMoved)]


@pytest.mark.parametrize("messages", COUNTS)
@pytest.mark.parametrize("acks", [ACKS_ALL, ACKS_LEADER])
def test_the_batch_that_reaches_n_waits_for_its_flush(messages: int, acks: int) -> None:
    leader = alone(messages)
    for number in range(messages - 1):
        assert only(Acknowledge, produce(leader, number, acks)) == [(number, number)]
    effects = produce(leader, "last", acks)
    assert only(Flush, effects) == [(messages,)]
    assert claims(effects) == []
    answered = leader.flushed(Offset(messages), 0)
    assert only(Acknowledge, answered) == [("last", messages - 1)]
    assert only(HighWatermarkMoved, answered) == [(messages - 1, messages)]


@pytest.mark.parametrize("messages", COUNTS)
def test_a_batch_larger_than_n_waits_whole(messages: int) -> None:
    leader = alone(messages)
    assert claims(produce(leader, records=messages + 3)) == []
    assert leader.log.high_watermark == 0
    assert only(Acknowledge, leader.flushed(Offset(messages + 3), 0)) == [("producer", 0)]


def test_what_comes_during_a_flush_waits_for_the_next_one() -> None:
    leader = alone(2)
    produce(leader, "first", records=2)
    assert claims(produce(leader, "second", records=2)) == []
    effects = leader.flushed(Offset(2), 0)
    assert only(Acknowledge, effects) == [("first", 0)]
    # The core asks for it: nothing else would.
    assert only(Flush, effects) == [(4,)]
    assert only(Acknowledge, leader.flushed(Offset(4), 0)) == [("second", 2)]


def test_less_than_n_that_came_during_a_flush_needs_none() -> None:
    leader = alone(3)
    produce(leader, "first", records=3)
    produce(leader, "second", records=2)
    effects = leader.flushed(Offset(3), 0)
    assert only(Acknowledge, effects) == [("first", 0), ("second", 3)]
    assert only(Flush, effects) == []


@pytest.mark.parametrize("messages", COUNTS)
def test_a_follower_does_not_ask_beyond_what_it_may_claim(messages: int) -> None:
    follower = following(held=log(settings=every(messages)))
    for offset in range(messages - 1):
        assert follower.append_as_follower([batch(offset)], Offset(0), 0) == ()
        asked = follower.next_fetch()
        assert asked is not None
        assert asked.fetch_offset == offset + 1
    effects = follower.append_as_follower([batch(messages - 1)], Offset(0), 0)
    assert effects == (Flush(Offset(messages)),)
    assert follower.next_fetch() is None
    assert follower.flushed(Offset(messages), 0) == ()
    asked = follower.next_fetch()
    assert asked is not None
    assert asked.fetch_offset == messages


def test_a_followers_fetch_commits_only_what_the_leader_has_flushed() -> None:
    leader = leading(state(isr=(A, B)), log(settings=every(2)))
    produce(leader, records=2)
    assert claims(fetches(leader, B, 2).effects) == []
    assert only(Acknowledge, leader.flushed(Offset(2), 0)) == [("producer", 0)]


def test_a_change_of_the_isr_during_a_flush_commits_only_what_is_flushed() -> None:
    leader = leading(state(isr=(A, B)), log(settings=every(2)))
    produce(leader, records=2)
    effects = leader.isr_answer(ErrorCode.NONE, None)
    shrunk = leader.become_leader(state(isr=(A,), version=2), 0)
    assert claims((*effects, *shrunk)) == []
    assert only(Acknowledge, leader.flushed(Offset(2), 0)) == [("producer", 0)]


def test_re_elected_during_a_flush_the_producers_still_wait_for_it() -> None:
    leader = leading(state(isr=(A,)), log(settings=every(2)))
    produce(leader, "all", records=2)
    produce(leader, "one", ACKS_LEADER)
    effects = leader.become_leader(state(isr=(A,), epoch=1, version=2), 0)
    assert claims(effects) == []
    answered = only(Acknowledge, leader.flushed(Offset(3), 0))
    assert sorted(str(one.waiter) for one in answered) == ["all", "one"]


def test_a_flush_that_a_truncation_overtook_claims_nothing_and_is_asked_for_again() -> None:
    follower = following(held=log(6, flushed=2, settings=every(2)))
    follower.log.truncate_to(Offset(4))
    # The driver's flush began before; it says how far the disk is now, and no further.
    assert follower.flushed(Offset(2), 0) == (Flush(Offset(4)),)
    assert follower.next_fetch() is None
    follower.flushed(Offset(4), 0)
    assert follower.next_fetch() is not None


def test_a_role_begins_with_the_flush_it_may_not_go_on_without() -> None:
    """A killed process left more in the page cache than may be claimed: flush without a tick."""
    unflushed = log(5, flushed=1, settings=every(3))
    assert only(Flush, Replica(A, unflushed).become_leader(state(isr=(A,)), 0)) == [(5,)]
    assert Replica(B, unflushed).become_follower(state()) == (Flush(Offset(5)),)
    few = log(5, flushed=3, settings=every(3))
    assert only(Flush, Replica(A, few).become_leader(state(isr=(A,)), 0)) == []


def test_a_smaller_n_asks_for_the_flush_that_it_makes_necessary() -> None:
    leader = alone(5)
    produce(leader, records=3)
    assert only(Flush, leader.settings_changed(every(2))) == [(3,)]
    follower = following(held=log(3, settings=every(5)))
    assert follower.settings_changed(every(2)) == (Flush(Offset(3)),)
    assert follower.next_fetch() is None


def test_a_larger_n_answers_the_waiters() -> None:
    leader = alone(2)
    produce(leader, "all", records=2)
    produce(leader, "one", ACKS_LEADER)
    answered = only(Acknowledge, leader.settings_changed(every(9)))
    assert sorted(str(one.waiter) for one in answered) == ["all", "one"]


def test_flush_ms_holds_nothing_back() -> None:
    settings = Settings(flush_rule=FlushRule.EVERY_T_MS, log_flush_interval_ms=100)
    leader = leading(state(isr=(A,)), log(settings=settings))
    effects = produce(leader, records=7, now_ms=500)
    assert only(Flush, effects) == [(7,)]
    assert only(Acknowledge, effects) == [("producer", 0)]
    follower = following(held=log(7, settings=settings))
    assert follower.next_fetch() is not None
