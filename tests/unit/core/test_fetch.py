"""A follower's fetch at its leader: fences first, then divergence, then records."""

from __future__ import annotations

import pytest

from holdfast.core import ConsiderExpand, HighWatermarkMoved, Replica
from holdfast.core.replica.truncation import divergence, truncation_point
from holdfast.model import UNKNOWN_EPOCH_END, ErrorCode, LeaderEpoch, Offset
from tests.unit.core.support import (
    A,
    B,
    C,
    D,
    end_at,
    fetch,
    fetches,
    following,
    leading,
    log,
    only,
    role_of,
    state,
    without,
)

EPOCH_TWO = state(epoch=2, isr=(A, B))


def leader_of_two(*guards_out: str) -> Replica:
    """Leads in epoch 2 from offset 6; epoch 0 wrote 0..3, epoch 1 never reached it."""
    held = log(6, high_watermark=4, epochs=[(0, 0)])
    return leading(EPOCH_TWO, held, without(*guards_out))


def known_end(leader: Replica, follower: int) -> int:
    followers = role_of(leader).insync.followers
    return next(one.log_end_offset for one in followers.values() if one.broker == follower)


# Fences (KIP-320).


def test_a_fetch_of_an_older_epoch_is_fenced_and_teaches_nothing() -> None:
    leader = leader_of_two()
    answer = leader.fetched(fetch(B, 6, 0, epoch=1), 0)
    assert answer.error is ErrorCode.FENCED_LEADER_EPOCH
    assert answer.effects == ()
    assert known_end(leader, B) == -1


def test_a_fetch_of_a_newer_epoch_is_unknown_to_a_deposed_leader() -> None:
    answer = leader_of_two().fetched(fetch(B, 6, 0, epoch=3), 0)
    assert answer.error is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_fetch_that_names_no_epoch_is_served() -> None:
    answer = leader_of_two().fetched(fetch(B, 6, epoch=-1), 0)
    assert answer.error is ErrorCode.NONE
    assert answer.end_offset == 6


def test_without_the_fetch_fence_a_zombie_is_served_by_its_offset_alone() -> None:
    # KAFKA-6880: b2 keeps records of an old epoch and counts as holding ours.
    leader = leader_of_two("fence-fetch")
    answer = leader.fetched(fetch(B, 5, 1, epoch=1), 0)
    assert answer.error is ErrorCode.NONE
    assert (answer.fetch_offset, answer.end_offset) == (5, 6)
    assert leader.log.high_watermark == 5


def test_without_the_fetch_fence_a_zombie_at_the_very_end_is_served() -> None:
    answer = leader_of_two("fence-fetch").fetched(fetch(B, 6, 1, epoch=1), 0)
    assert answer.error is ErrorCode.NONE


def test_without_the_fetch_fence_a_fetch_beyond_the_end_is_still_refused() -> None:
    answer = leader_of_two("fence-fetch").fetched(fetch(B, 9, 1, epoch=1), 0)
    assert answer.error is ErrorCode.FENCED_LEADER_EPOCH


def test_a_follower_does_not_answer_where_logs_part() -> None:
    follower = following(state(C, 2), log(3, epochs=[(0, 0)]))
    answer = follower.fetched(fetch(A, 5, 0, epoch=2), 0)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.diverging is None


def test_without_the_truncation_fence_any_replica_answers_where_logs_diverge() -> None:
    # truncate-against-stale-leader: an empty replica truncates what a later leader has committed.
    stale = following(state(C, 2), log(3, epochs=[(0, 0)]), without("fence-truncation"))
    answer = stale.fetched(fetch(A, 5, 0, epoch=1), 0)
    assert answer.error is ErrorCode.NONE
    assert answer.diverging == end_at(0, 3)


def test_without_the_truncation_fence_the_answer_still_names_its_epoch() -> None:
    held = log(3, epochs=[(0, 0), (2, 2)])
    stale = following(state(C, 2), held, without("fence-truncation"))
    assert stale.fetched(fetch(A, 5, 1, epoch=1), 0).diverging == end_at(0, 2)


def test_without_the_truncation_fence_a_log_that_does_not_part_is_still_refused() -> None:
    stale = following(state(C, 2), log(3, epochs=[(0, 0)]), without("fence-truncation"))
    answer = stale.fetched(fetch(A, 3, 0, epoch=1), 0)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_refused_fetch_does_not_make_a_joiner() -> None:
    leader = leader_of_two()
    answer = leader.fetched(fetch(C, 6, 0, epoch=1), 0)
    assert only(ConsiderExpand, answer.effects) == []
    assert leader.expand_isr(C) == ()


def test_without_the_expand_fence_a_refused_fetch_makes_a_joiner() -> None:
    leader = leader_of_two("fence-isr-expand")
    answer = leader.fetched(fetch(C, 6, 0, epoch=1), 0)
    assert answer.error is ErrorCode.FENCED_LEADER_EPOCH
    assert answer.effects == (ConsiderExpand(C),)


def test_a_refused_fetch_of_a_stranger_teaches_nothing_even_then() -> None:
    leader = leader_of_two("fence-isr-expand", "fence-fetch")
    answer = leader.fetched(fetch(D, 6, 0, epoch=1), 0)
    assert answer.error is ErrorCode.FENCED_LEADER_EPOCH


def test_a_broker_without_a_replica_is_refused() -> None:
    answer = leader_of_two().fetched(fetch(D, 0, epoch=2), 0)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


# Where the logs part (KIP-101, KIP-279, KIP-595).


def test_a_log_that_is_a_prefix_gets_what_follows() -> None:
    answer = leader_of_two().fetched(fetch(B, 4, 0, epoch=2), 0)
    assert answer.diverging is None
    assert (answer.fetch_offset, answer.end_offset, answer.high_watermark) == (4, 6, 4)


def test_a_log_that_is_too_long_in_an_epoch_receives_the_end_of_that_epoch() -> None:
    answer = leader_of_two().fetched(fetch(B, 7, 0, epoch=2), 0)
    assert answer.diverging == end_at(0, 6)
    assert answer.fetch_offset == -1


def test_an_epoch_the_leader_never_saw_is_answered_with_the_largest_smaller_one() -> None:
    answer = leader_of_two().fetched(fetch(B, 5, 1, epoch=2), 0)
    assert answer.diverging == end_at(0, 6)


def test_a_diverging_log_teaches_no_position() -> None:
    leader = leader_of_two()
    leader.fetched(fetch(B, 5, 1, epoch=2), 0)
    assert known_end(leader, B) == -1


def test_without_kip_279_such_an_epoch_is_unknown_and_the_watermark_is_all_that_is_left() -> None:
    answer = leader_of_two("answer-names-epoch").fetched(fetch(B, 5, 1, epoch=2), 0)
    assert answer.diverging == UNKNOWN_EPOCH_END
    follower = following(state(A, 2), log(5, epochs=[(0, 0), (1, 4)]))
    assert answer.diverging
    follower.diverged(answer.diverging)
    assert follower.log.log_end_offset == 0


def test_a_leader_with_epochs_checks_also_at_its_start() -> None:
    held = log(6, high_watermark=4, start=2, epochs=[(0, 2)])
    answer = leading(EPOCH_TWO, held).fetched(fetch(B, 2, 1, epoch=2), 0)
    assert answer.diverging == end_at(0, 6)


def test_a_leader_without_epochs_serves_from_its_start() -> None:
    fresh = log(4, high_watermark=4, start=4)
    assert divergence(fresh, Offset(4), LeaderEpoch(0), exact=False) is None
    assert divergence(fresh, Offset(3), LeaderEpoch(0), exact=False) == UNKNOWN_EPOCH_END


@pytest.mark.parametrize(
    ("asked_end", "asked_epoch", "parts_at"),
    [
        (6, 0, None),  # Our own epoch has no records yet: epoch 0 ends at 6.
        (7, 0, (0, 6)),
        (6, 1, (0, 6)),
        (6, 2, None),
        (7, 2, (2, 6)),
    ],
)
def test_the_place_where_logs_part(
    asked_end: int, asked_epoch: int, parts_at: tuple[int, int] | None
) -> None:
    answer = leader_of_two().fetched(fetch(B, asked_end, asked_epoch, epoch=2), 0)
    assert answer.diverging == parts_at


# Out of range (KAFKA-2143).


def test_beyond_the_end_with_a_known_epoch_the_answer_is_the_diverging_epoch() -> None:
    answer = leader_of_two().fetched(fetch(B, 9, 0, epoch=2), 0)
    assert answer.error is ErrorCode.NONE
    assert answer.diverging == end_at(0, 6)


def test_without_that_guard_beyond_the_end_is_out_of_range() -> None:
    answer = leader_of_two("out-of-range-diverges").fetched(fetch(B, 9, 0, epoch=2), 0)
    assert answer.error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert answer.diverging is None


@pytest.mark.parametrize("offset", [4, 6])
def test_without_that_guard_up_to_the_end_is_still_in_range(offset: int) -> None:
    answer = leader_of_two("out-of-range-diverges").fetched(fetch(B, offset, 0, epoch=2), 0)
    assert (answer.error, answer.fetch_offset) == (ErrorCode.NONE, offset)


@pytest.mark.parametrize("offset", [1, 7])
def test_outside_the_log_and_without_an_epoch_is_out_of_range(offset: int) -> None:
    held = log(6, high_watermark=4, start=2, epochs=[(0, 2)])
    answer = leading(EPOCH_TWO, held).fetched(fetch(B, offset, epoch=2), 0)
    assert answer.error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert (answer.log_start_offset, answer.high_watermark) == (2, 4)


# Broker epochs (KIP-903).


def test_a_fetch_from_an_earlier_broker_epoch_is_answered_but_not_recorded() -> None:
    leader = leader_of_two()
    leader.fetched(fetch(B, 4, 0, epoch=2, broker_epoch=7), 0)
    answer = leader.fetched(fetch(B, 6, 0, epoch=2, broker_epoch=6), 0)
    assert answer.error is ErrorCode.NONE
    assert answer.effects == ()
    assert (known_end(leader, B), leader.log.high_watermark) == (4, 4)


def test_without_that_guard_a_ghost_commits_what_its_successor_does_not_have() -> None:
    leader = leader_of_two("joiner-broker-epoch")
    leader.fetched(fetch(B, 4, 0, epoch=2, broker_epoch=7), 0)
    answer = leader.fetched(fetch(B, 6, 0, epoch=2, broker_epoch=6), 0)
    assert only(HighWatermarkMoved, answer.effects) == [(4, 6)]


# The follower's side of it.


@pytest.mark.parametrize(
    ("answer", "truncated_to"),
    [
        ((0, 2), 2),  # We have epoch 0: the smaller of both ends.
        ((0, 9), 3),  # Our epoch 0 ends at 3, the leader's later.
        ((1, 4), 3),  # We never saw epoch 1: back to the end of our epoch 0, and ask again.
        ((2, 4), 4),
        ((2, 9), 6),
    ],
)
def test_a_follower_truncates_to_the_smaller_end_or_asks_about_an_older_epoch(
    answer: tuple[int, int], truncated_to: int
) -> None:
    ours = log(6, epochs=[(0, 0), (2, 3)])
    assert truncation_point(ours, end_at(*answer)) == truncated_to


def test_a_follower_without_epochs_truncates_where_the_leader_says() -> None:
    assert truncation_point(log(6), end_at(0, 4)) == 4
    assert truncation_point(log(6), end_at(0, 9)) == 6


def test_an_unknown_end_leaves_only_the_high_watermark() -> None:
    assert truncation_point(log(6, high_watermark=2), UNKNOWN_EPOCH_END) == 2


# OffsetForLeaderEpoch.


def test_the_leader_of_the_asked_epoch_answers_the_epoch_question() -> None:
    leader = leader_of_two()
    assert leader.end_offset_for(LeaderEpoch(0), LeaderEpoch(2)) == (ErrorCode.NONE, (0, 6))
    assert leader.end_offset_for(LeaderEpoch(1)) == (ErrorCode.NONE, (0, 6))


@pytest.mark.parametrize(
    ("current", "error"),
    [(1, ErrorCode.FENCED_LEADER_EPOCH), (3, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_the_epoch_question_is_fenced(current: int, error: ErrorCode) -> None:
    answer = leader_of_two().end_offset_for(LeaderEpoch(0), LeaderEpoch(current))
    assert answer == (error, UNKNOWN_EPOCH_END)


def test_a_follower_does_not_answer_the_epoch_question() -> None:
    answer = following().end_offset_for(LeaderEpoch(0))
    assert answer == (ErrorCode.NOT_LEADER_OR_FOLLOWER, UNKNOWN_EPOCH_END)


def test_without_kip_279_the_epoch_check_finds_exact_epochs_only() -> None:
    leader = leader_of_two("answer-names-epoch")
    assert leader.end_offset_for(LeaderEpoch(1)) == (ErrorCode.NONE, UNKNOWN_EPOCH_END)


def test_a_fetch_at_the_end_moves_the_high_watermark() -> None:
    leader = leader_of_two()
    assert fetches(leader, B, 6).effects == (HighWatermarkMoved(Offset(4), Offset(6)),)
