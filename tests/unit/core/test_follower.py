"""The follower: what it fetches, which responses it accepts, where it truncates."""

from __future__ import annotations

import pytest

from holdfast.core import (
    Fetch,
    Flush,
    FlushRule,
    Guards,
    NextFetch,
    Replica,
    Rules,
    Settings,
    TruncateTo,
    Truncation,
)
from holdfast.model import UNKNOWN_EPOCH_END, BrokerEpoch, LeaderEpoch, Offset
from tests.unit.core.support import (
    A,
    B,
    C,
    batch,
    end_at,
    following,
    leading,
    log,
    state,
    without,
)

FLUSH = Settings(flush_rule=FlushRule.EVERY_APPEND)


def asked(replica: Replica) -> NextFetch:
    request = replica.next_fetch()
    assert request
    return request


# What it asks.


def test_it_asks_from_its_end_and_names_the_epoch_before_it() -> None:
    follower = following(state(A, 3), log(6, epochs=[(0, 0), (2, 4)]))
    request = NextFetch(A, Offset(6), LeaderEpoch(2), LeaderEpoch(3), LeaderEpoch(3))
    assert follower.next_fetch() == request


def test_an_empty_log_names_no_epoch() -> None:
    assert asked(following()).last_fetched_epoch == -1


def test_without_a_leader_there_is_nothing_to_ask() -> None:
    assert following(state(-1, 1)).next_fetch() is None


def test_a_leader_fetches_nothing() -> None:
    assert leading().next_fetch() is None


def test_flush_every_append_flushes_before_the_next_fetch() -> None:
    # A fetch from offset N claims that everything below N is safe here.
    follower = following(held=log(settings=FLUSH))
    assert follower.append_as_follower([batch(0)], Offset(0), 0) == (Flush(Offset(1)),)
    assert follower.next_fetch() is None
    assert follower.flushed(Offset(1), 0) == ()
    assert asked(follower).fetch_offset == 1


def test_before_leader_epochs_no_epoch_was_named() -> None:
    rules = Rules(truncation=Truncation.HIGH_WATERMARK)
    follower = following(state(A, 3), log(6, high_watermark=6, epochs=[(0, 0)]), rules)
    request = NextFetch(A, Offset(6), LeaderEpoch(-1), LeaderEpoch(-1), LeaderEpoch(3))
    assert follower.next_fetch() == request


# Which answers it takes.


def test_it_takes_the_answer_to_its_present_question() -> None:
    follower = following(held=log(6, epochs=[(0, 0)]))
    assert follower.accepts_answer(asked(follower))


def test_it_drops_an_answer_for_another_offset() -> None:
    follower = following()
    request = asked(follower)
    follower.append_as_follower([batch(0)], Offset(0), 0)
    assert not follower.accepts_answer(request)


def test_without_that_guard_it_takes_the_same_records_twice() -> None:
    follower = following(rules=without("stale-answer-by-offset"))
    request = asked(follower)
    follower.append_as_follower([batch(0)], Offset(0), 0)
    assert follower.accepts_answer(request)


def test_it_drops_an_answer_from_another_leader_epoch() -> None:
    follower = following()
    request = asked(follower)
    follower.become_follower(state(C, 1))
    assert not follower.accepts_answer(request)


def test_without_that_guard_it_takes_records_of_an_old_leader_epoch() -> None:
    follower = following(rules=without("stale-answer-by-epoch"))
    request = asked(follower)
    follower.become_follower(state(C, 1))
    assert follower.accepts_answer(request)


def test_it_drops_a_late_diverging_epoch_once_its_log_has_grown_back() -> None:
    # The log ends at 2 again, but these are other records, and the leader counts on them.
    follower = following(state(A, 2), log(2, epochs=[(0, 0), (1, 1)]))
    request = asked(follower)
    follower.diverged(end_at(0, 1))
    follower.append_as_follower([batch(1, epoch=2)], Offset(0), 0)
    assert asked(follower).fetch_offset == request.fetch_offset
    assert not follower.accepts_answer(request)


def test_a_leader_takes_no_answers() -> None:
    request = NextFetch(A, Offset(0), LeaderEpoch(-1), LeaderEpoch(0), LeaderEpoch(0))
    assert not leading().accepts_answer(request)


# Where it truncates.


def test_it_truncates_where_its_leader_says_the_logs_diverge() -> None:
    follower = following(state(A, 2), log(6, high_watermark=3, epochs=[(0, 0), (1, 4)]))
    assert follower.diverged(end_at(0, 5)) == (TruncateTo(Offset(4), Offset(6)),)
    assert follower.log.log_end_offset == 4
    assert follower.log.epochs.latest_epoch == 0


def test_a_leader_that_cannot_say_is_not_asked_for_ever() -> None:
    # Only with a guard out: what is left above the high watermark counts as a prefix.
    follower = following(state(A, 2), log(6, high_watermark=3, epochs=[(0, 0)]))
    assert follower.diverged(UNKNOWN_EPOCH_END) == (TruncateTo(Offset(3), Offset(6)),)
    assert asked(follower).last_fetched_epoch == -1


def test_a_truncation_below_the_high_watermark_lowers_it() -> None:
    follower = following(state(A, 2), log(6, high_watermark=5, epochs=[(0, 0)]))
    follower.diverged(end_at(0, 2))
    assert follower.log.high_watermark == 2
    follower.check_invariants()


def test_its_own_epoch_without_records_is_dropped_though_the_log_is_not_truncated() -> None:
    # It led in epoch 1 at offset 5 and wrote nothing; the leader of epoch 2 never heard of 1.
    old_leader = leading(state(B, 1, (A, B)), log(5, epochs=[(0, 0)]))
    old_leader.become_follower(state(A, 2, (A, B)))
    assert asked(old_leader).last_fetched_epoch == 1
    assert old_leader.diverged(end_at(0, 7)) == ()
    assert asked(old_leader).last_fetched_epoch == 0


def test_such_a_follower_comes_to_an_end_of_asking() -> None:
    old_leader = leading(state(B, 1, (A, B)), log(5, epochs=[(0, 0)]))
    old_leader.become_follower(state(A, 2, (A, B)))
    leader = leading(state(A, 2, (A, B)), log(7, epochs=[(0, 0)]))
    for _ in range(2):
        request = asked(old_leader)
        fetch = Fetch(
            B,
            request.fetch_offset,
            request.last_fetched_epoch,
            request.current_leader_epoch,
            BrokerEpoch(1),
        )
        answer = leader.fetched(fetch, 0)
        if answer.diverging:
            old_leader.diverged(answer.diverging)
    assert answer.diverging is None
    assert (answer.fetch_offset, answer.end_offset) == (5, 7)


def test_a_leader_truncates_nothing() -> None:
    leader = leading(held=log(5, epochs=[(0, 0)]))
    assert leader.diverged(end_at(0, 0)) == ()
    assert leader.out_of_range(Offset(0), Offset(0)) == ()


# Out of the leader's range.


def test_below_the_leaders_start_it_restarts_there() -> None:
    follower = following(held=log(6, high_watermark=6, epochs=[(0, 0)]))
    assert follower.out_of_range(Offset(8), Offset(20)) == (TruncateTo(Offset(8), Offset(6)),)
    follower.check_invariants()
    assert asked(follower)[1:3] == (8, -1)


def test_beyond_the_leaders_end_it_truncates_to_it() -> None:
    follower = following(held=log(6, epochs=[(0, 0)]))
    assert follower.out_of_range(Offset(0), Offset(4)) == (TruncateTo(Offset(4), Offset(6)),)


def test_a_leader_that_ends_before_this_log_starts_makes_it_restart_below() -> None:
    # Only an unclean leader is that short; without this the two would ask each other for ever.
    follower = following(held=log(110, start=100, high_watermark=105, epochs=[(3, 100)]))
    assert follower.out_of_range(Offset(0), Offset(90)) == (TruncateTo(Offset(90), Offset(110)),)
    assert follower.log.log_start_offset == 90
    assert asked(follower).fetch_offset == 90
    follower.check_invariants()


def test_exactly_at_the_leaders_start_it_keeps_what_it_has() -> None:
    follower = following(held=log(6, epochs=[(0, 0)]))
    assert follower.out_of_range(Offset(6), Offset(9)) == ()
    assert follower.log.log_start_offset == 0


@pytest.mark.parametrize("leader_end", [6, 9])
def test_a_leader_that_grew_meanwhile_is_asked_again(leader_end: int) -> None:
    # KAFKA-2143: only an epoch check finds the common prefix.
    follower = following(held=log(6, epochs=[(0, 0)]))
    assert follower.out_of_range(Offset(0), Offset(leader_end)) == ()
    assert follower.log.log_end_offset == 6


def test_without_that_guard_it_throws_its_whole_log_away() -> None:
    follower = following(held=log(6, epochs=[(0, 0)]), rules=without("out-of-range-diverges"))
    assert follower.out_of_range(Offset(0), Offset(9)) == (TruncateTo(Offset(0), Offset(6)),)


# The rule before leader epochs.


def test_truncating_to_the_high_watermark_drops_what_may_be_committed() -> None:
    # loss-restart-truncation: B has record 2, but has not heard that it is committed.
    rules = Rules(truncation=Truncation.HIGH_WATERMARK)
    b = Replica(B, log(3, high_watermark=2, epochs=[(0, 0)]), rules)
    assert b.become_follower(state(A, 0)) == (TruncateTo(Offset(2), Offset(3)),)


def test_truncating_to_the_high_watermark_removes_only_what_is_above_it() -> None:
    rules = Rules(truncation=Truncation.HIGH_WATERMARK)
    b = Replica(B, log(3, high_watermark=3, epochs=[(0, 0)]), rules)
    assert b.become_follower(state(A, 0)) == ()


def test_before_leader_epochs_too_the_same_leader_may_pass_for_the_same_epoch() -> None:
    guards = Guards().without("truncate-on-missed-epoch")
    rules = Rules(truncation=Truncation.HIGH_WATERMARK, guards=guards)
    b = following(state(A, 0), log(3, high_watermark=3, epochs=[(0, 0)]), rules)
    b.append_as_follower([batch(3)], Offset(3), 0)
    assert b.become_follower(state(A, 2)) == ()
    assert b.log.log_end_offset == 4


def test_by_leader_epoch_nothing_is_truncated_before_the_leader_answers() -> None:
    b = Replica(B, log(3, high_watermark=2, epochs=[(0, 0)]))
    assert b.become_follower(state(A, 0)) == ()
    assert b.log.log_end_offset == 3


# Missed epochs (KAFKA-7164).


def test_every_new_epoch_has_the_log_checked_also_under_the_same_leader() -> None:
    follower = following(state(A, 0), log(1, epochs=[(0, 0)]))
    follower.become_follower(state(A, 2))
    assert asked(follower).last_fetched_epoch == 0


def test_without_that_guard_the_check_is_skipped_under_the_same_leader() -> None:
    rules = without("truncate-on-missed-epoch")
    follower = following(state(A, 0), log(1, epochs=[(0, 0)]), rules)
    follower.become_follower(state(A, 2))
    assert asked(follower).last_fetched_epoch == -1


def test_without_that_guard_another_leader_is_still_asked() -> None:
    rules = without("truncate-on-missed-epoch")
    follower = following(state(A, 0), log(1, epochs=[(0, 0)]), rules)
    follower.become_follower(state(C, 2))
    assert asked(follower).last_fetched_epoch == 0
