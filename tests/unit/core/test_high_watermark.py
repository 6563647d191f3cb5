"""The high watermark: which replicas it waits for, and when it moves."""

from __future__ import annotations

from holdfast.core import (
    Acknowledge,
    CommitRule,
    FlushRule,
    HighWatermarkMoved,
    IsrApplied,
    IsrUpdate,
    Replica,
    Rules,
    Settings,
)
from holdfast.model import ErrorCode, Offset, PartitionEpoch
from tests.unit.core.support import (
    TWO,
    A,
    B,
    C,
    fetch,
    fetches,
    leading,
    log,
    only,
    produce,
    role_of,
    state,
    without,
)

MAJORITY = Rules(commit_rule=CommitRule.MAJORITY)


def high_watermark(leader: Replica) -> int:
    return leader.log.high_watermark


def test_it_follows_the_slowest_member_of_the_isr() -> None:
    leader = leading(held=log(10, epochs=[(0, 0)]))
    fetches(leader, B, 10)
    assert high_watermark(leader) == 0
    fetches(leader, C, 4)
    assert high_watermark(leader) == 4
    fetches(leader, C, 7)
    assert high_watermark(leader) == 7


def test_it_rises_at_once_when_the_slow_one_is_evicted() -> None:
    leader = leading(held=log(settings=TWO))
    produce(leader)
    fetches(leader, B, 1)
    effects = leader.become_leader(state(isr=(A, B), version=2), 0)
    assert effects == (
        IsrApplied((A, B), PartitionEpoch(2)),
        HighWatermarkMoved(Offset(0), Offset(1)),
        Acknowledge("producer", Offset(0)),
    )


def test_a_follower_outside_the_isr_holds_nothing_back_and_moves_nothing() -> None:
    leader = leading(state(isr=(A, B)), log(5, epochs=[(0, 0)]))
    fetches(leader, B, 5)
    assert high_watermark(leader) == 5
    produce(leader)
    fetches(leader, C, 6)
    assert high_watermark(leader) == 5


def test_a_member_that_has_not_fetched_in_this_epoch_stops_the_high_watermark() -> None:
    leader = leading(state(epoch=3), log(5, high_watermark=2, epochs=[(0, 0)]))
    fetches(leader, B, 5)
    assert high_watermark(leader) == 2


def test_it_never_falls_while_a_follower_goes_back() -> None:
    leader = leading(state(isr=(A, B)), log(5, epochs=[(0, 0)]))
    fetches(leader, B, 5)
    fetches(leader, B, 1)
    assert high_watermark(leader) == 5


def test_a_new_leader_keeps_its_own_until_every_member_has_fetched() -> None:
    leader = leading(state(epoch=1, isr=(A, B)), log(10, high_watermark=3, epochs=[(0, 0)]))
    assert high_watermark(leader) == 3
    fetches(leader, B, 10)
    assert high_watermark(leader) == 10


def test_a_leader_alone_commits_what_it_has_when_it_begins() -> None:
    replica = Replica(A, log(10, epochs=[(0, 0)]))
    effects = replica.become_leader(state(epoch=1, isr=(A,)), 0)
    assert only(HighWatermarkMoved, effects) == [(0, 10)]


def test_flush_every_append_counts_what_is_on_the_leaders_disk() -> None:
    settings = Settings(flush_rule=FlushRule.EVERY_APPEND)
    leader = leading(state(isr=(A, B)), log(settings=settings))
    produce(leader)
    fetches(leader, B, 1)
    assert high_watermark(leader) == 0
    assert only(HighWatermarkMoved, leader.flushed(Offset(1), 0)) == [(0, 1)]


# The maximal ISR (KIP-497).


def proposing_c(rules: Rules) -> Replica:
    """A and B hold 0..9; C, at 0, is proposed; then ten more records reach A and B only."""
    leader = leading(state(isr=(A, B)), log(settings=TWO), rules)
    fetches(leader, B, 0)
    fetches(leader, C, 0)
    assert leader.expand_isr(C)
    produce(leader, records=10)
    fetches(leader, B, 10)
    return leader


def test_it_waits_for_a_joiner_that_may_already_be_in_the_isr() -> None:
    leader = proposing_c(Rules())
    assert high_watermark(leader) == 0
    fetches(leader, C, 10)
    assert high_watermark(leader) == 10


def test_without_the_maximal_isr_it_passes_a_joiner_that_has_nothing() -> None:
    assert high_watermark(proposing_c(without("maximal-isr"))) == 10


def test_it_waits_for_a_leaver_until_the_store_has_let_it_go() -> None:
    settings = Settings(min_insync_replicas=1, replica_lag_time_max_ms=10)
    leader = leading(state(isr=(A, B), replicas=(A, B)), log(settings=settings))
    produce(leader)
    assert leader.tick(11)
    assert high_watermark(leader) == 0
    confirmed = state(isr=(A,), version=2, replicas=(A, B))
    effects = leader.isr_answer(ErrorCode.NONE, confirmed)
    assert only(Acknowledge, effects) == [("producer", 0)]


def test_an_optimistic_leader_acknowledges_alone_before_the_store_has_the_isr() -> None:
    # loss-isr-optimistic: the store still has B in the ISR and elects it.
    settings = Settings(min_insync_replicas=1, replica_lag_time_max_ms=10)
    rules = Rules(isr_update=IsrUpdate.OPTIMISTIC)
    leader = leading(state(isr=(A, B), replicas=(A, B)), log(settings=settings), rules)
    produce(leader)
    effects = leader.tick(11)
    assert only(IsrApplied, effects) == [((A,), 1)]
    assert only(Acknowledge, effects) == [("producer", 0)]


# Below the minimum (KIP-966).


def below_the_minimum(rules: Rules) -> Replica:
    """The ISR is {A} with a minimum of two; A has one record more than was committed."""
    leader = leading(
        state(isr=(A,)), log(4, high_watermark=4, epochs=[(0, 0)], settings=TWO), rules
    )
    produce(leader, acks=1)
    fetches(leader, B, 5)
    return leader


def test_it_stands_still_below_the_minimum() -> None:
    assert high_watermark(below_the_minimum(Rules())) == 4


def test_without_eligible_leaders_it_moves_below_the_minimum() -> None:
    # last-replica-standing: consumers see, and producers rely on, what one machine holds.
    assert high_watermark(below_the_minimum(without("eligible-leaders"))) == 5


def test_it_moves_again_when_the_isr_is_large_enough() -> None:
    leader = below_the_minimum(Rules())
    effects = leader.become_leader(state(isr=(A, B), version=2), 0)
    assert only(HighWatermarkMoved, effects) == [(4, 5)]


# Positions of an earlier leader epoch (KIP-320).


def re_elected(rules: Rules, follower: int, isr: tuple[int, ...]) -> Replica:
    """A had a follower at 10 in epoch 0, and leads again in epoch 2 without having received 1."""
    leader = leading(state(isr=isr), log(10, epochs=[(0, 0)]), rules)
    fetches(leader, follower, 10)
    leader.log.high_watermark = Offset(0)
    leader.become_leader(state(epoch=2, isr=isr, version=3), 0)
    return leader


def test_a_re_elected_leader_forgets_where_the_members_were() -> None:
    leader = re_elected(Rules(), B, (A, B))
    assert role_of(leader).insync.followers[B].log_end_offset == -1
    assert high_watermark(leader) == 0


def test_without_that_fence_positions_of_an_earlier_epoch_commit() -> None:
    assert high_watermark(re_elected(without("fence-high-watermark"), B, (A, B))) == 10


def test_a_re_elected_leader_forgets_where_the_others_were() -> None:
    leader = re_elected(Rules(), C, (A, B))
    assert role_of(leader).insync.followers[C].log_end_offset == -1


def test_without_that_guard_a_follower_outside_the_isr_is_remembered() -> None:
    leader = re_elected(without("forget-non-isr-followers"), C, (A, B))
    assert role_of(leader).insync.followers[C].log_end_offset == 10
    assert role_of(leader).insync.followers[B].log_end_offset == -1


def test_without_that_guard_a_replica_that_was_removed_is_not_remembered() -> None:
    leader = leading(
        state(isr=(A, B)), log(10, epochs=[(0, 0)]), without("forget-non-isr-followers")
    )
    fetches(leader, C, 10)
    leader.become_leader(state(epoch=2, isr=(A, B), replicas=(A, B), version=3), 0)
    assert list(role_of(leader).insync.followers) == [B]


# The majority rule, for comparison.


def test_a_majority_commits_without_the_slowest() -> None:
    leader = leading(held=log(), rules=MAJORITY)
    produce(leader)
    assert only(Acknowledge, fetches(leader, B, 1).effects) == [("producer", 0)]


def test_a_majority_of_four_is_three() -> None:
    four = state(isr=(A,), replicas=(1, 2, 3, 4))
    leader = leading(four, log(), MAJORITY)
    produce(leader)
    leader.fetched(fetch(B, 1, 0), 0)
    assert high_watermark(leader) == 0
    leader.fetched(fetch(C, 1, 0), 0)
    assert high_watermark(leader) == 1


def test_the_majority_rule_does_not_ask_for_the_isr() -> None:
    leader = leading(state(isr=(A,)), log(settings=TWO), MAJORITY)
    assert produce(leader) == ()


def test_a_majority_commits_older_records_only_with_one_of_its_own_epoch() -> None:
    # Raft, figure 8: two hold a record of epoch 0, but a log with epoch 1 could still win.
    leader = leading(state(epoch=2), log(1, epochs=[(0, 0)]), MAJORITY)
    fetches(leader, B, 1)
    assert high_watermark(leader) == 0
    produce(leader)
    fetches(leader, B, 2)
    assert high_watermark(leader) == 2
