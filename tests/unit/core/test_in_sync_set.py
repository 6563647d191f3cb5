"""ISR changes: proposed, counted while in flight, ended only by a definite answer."""

from __future__ import annotations

from holdfast.core import (
    CommitRule,
    ConsiderExpand,
    IsrApplied,
    IsrExpand,
    IsrUpdate,
    ProposeIsr,
    Replica,
    Rules,
    Settings,
)
from holdfast.core.replica.follower_progress import CommittedIsr, PendingExpand, PendingShrink
from holdfast.core.replica.in_sync_set import InSyncSet
from holdfast.model import (
    BrokerEpoch,
    ErrorCode,
    LeaderEpoch,
    PartitionEpoch,
    PartitionState,
    ReplicaBroker,
)
from tests.unit.core.support import (
    A,
    B,
    C,
    D,
    fetch,
    fetches,
    following,
    leading,
    log,
    only,
    produce,
    role_of,
    state,
    without,
)

LAG = Settings(replica_lag_time_max_ms=10)
AB = state(isr=(A, B))
ABC = state(version=2)


def insync(leader: Replica) -> InSyncSet:
    return role_of(leader).insync


def wanting_c(assignment: PartitionState = AB, rules: Rules = Rules()) -> Replica:  # noqa: B008
    """C, outside the ISR, has fetched up to the leader's end in broker epoch 8."""
    leader = leading(assignment, log(5, epochs=[(0, 0)]), rules)
    fetches(leader, B, 5)
    answer = leader.fetched(fetch(C, 5, 0, broker_epoch=8), 0)
    assert only(ConsiderExpand, answer.effects) == [(C,)]
    return leader


def proposing_c() -> Replica:
    leader = wanting_c()
    assert leader.expand_isr(C)
    return leader


def lagging(*, rules: Rules = Rules()) -> Replica:  # noqa: B008
    """B and C have not fetched since the epoch began at 0; there is one record."""
    leader = leading(held=log(settings=LAG), rules=rules)
    produce(leader)
    return leader


# Expanding.


def test_a_caught_up_follower_is_proposed_with_its_broker_epoch() -> None:
    [proposal] = wanting_c().expand_isr(C)
    members = (ReplicaBroker(A), ReplicaBroker(B, BrokerEpoch(1)), ReplicaBroker(C, BrokerEpoch(8)))
    assert proposal == ProposeIsr(members, LeaderEpoch(0), PartitionEpoch(1))


def test_a_member_is_no_candidate() -> None:
    leader = leading(AB, log(5, epochs=[(0, 0)]))
    assert only(ConsiderExpand, fetches(leader, B, 5).effects) == []
    assert leader.expand_isr(B) == ()


def test_a_stranger_is_no_candidate() -> None:
    assert wanting_c().expand_isr(D) == ()


def test_a_candidate_is_checked_again_when_it_is_proposed() -> None:
    leader = wanting_c()
    produce(leader)
    fetches(leader, B, 6)
    assert leader.log.high_watermark == 6
    assert leader.expand_isr(C) == ()


def test_an_unguarded_leader_adds_a_follower_that_once_qualified() -> None:
    # loss-isr-race: the high watermark has moved past C in between.
    leader = wanting_c(rules=Rules(isr_expand=IsrExpand.UNGUARDED))
    produce(leader)
    fetches(leader, B, 6)
    assert only(ProposeIsr, leader.expand_isr(C))


def test_only_a_leader_expands() -> None:
    assert following().expand_isr(C) == ()
    assert following().isr_answer(ErrorCode.NONE, ABC) == ()


def test_the_joiner_counts_while_the_proposal_is_in_flight() -> None:
    leader = proposing_c()
    assert insync(leader).state == PendingExpand((A, B), (A, B, C))
    assert [one.broker for one in insync(leader).counted] == [B, C]
    leader.check_invariants()


def test_one_proposal_is_in_flight_at_a_time() -> None:
    leader = proposing_c()
    assert leader.expand_isr(C) == ()
    assert only(ProposeIsr, leader.tick(99_999)) == []
    assert only(ConsiderExpand, leader.fetched(fetch(C, 5, 0, broker_epoch=8), 0).effects) == []


def test_while_one_joiner_is_proposed_another_must_wait() -> None:
    four = state(isr=(A, B), replicas=(A, B, C, D))
    leader = leading(four, log(5, epochs=[(0, 0)]), Rules(isr_expand=IsrExpand.UNGUARDED))
    for follower in (B, C):
        fetches(leader, follower, 5)
    assert leader.expand_isr(C)
    assert only(ConsiderExpand, fetches(leader, D, 5).effects) == []
    assert leader.expand_isr(D) == ()


def test_while_a_joiner_is_proposed_no_member_is_proposed_to_leave() -> None:
    leader = proposing_c()
    produce(leader)
    assert only(ProposeIsr, leader.tick(99_999)) == []


def test_even_an_unguarded_leader_adds_no_follower_twice() -> None:
    leader = leading(AB, log(), Rules(isr_expand=IsrExpand.UNGUARDED))
    assert leader.expand_isr(B) == ()


def test_under_the_majority_rule_no_replica_joins_or_leaves() -> None:
    rules = Rules(commit_rule=CommitRule.MAJORITY)
    leader = leading(AB, log(settings=LAG), rules)
    produce(leader)
    assert only(ConsiderExpand, fetches(leader, C, 1).effects) == []
    assert only(ProposeIsr, leader.tick(99_999)) == []


def test_a_confirmed_proposal_is_applied() -> None:
    leader = proposing_c()
    effects = leader.isr_answer(ErrorCode.NONE, ABC)
    assert effects == (IsrApplied((A, B, C), PartitionEpoch(2)),)
    assert insync(leader).state == CommittedIsr((A, B, C))
    assert insync(leader).proposal is None


# Shrinking.


def test_laggards_are_proposed_to_leave() -> None:
    [proposal] = lagging().tick(11)
    assert proposal == ProposeIsr((ReplicaBroker(A),), LeaderEpoch(0), PartitionEpoch(1))


def test_no_member_lags_within_the_limit() -> None:
    assert lagging().tick(10) == ()


def test_only_laggards_leave() -> None:
    leader = lagging()
    fetches(leader, B, 1, now_ms=11)
    [proposal] = only(ProposeIsr, leader.tick(11))
    assert [member.broker for member in proposal.isr] == [A, B]


def test_leavers_count_while_the_proposal_is_in_flight() -> None:
    leader = lagging()
    leader.tick(11)
    assert insync(leader).state == PendingShrink((A, B, C), (A,))
    assert [one.broker for one in insync(leader).counted] == [B, C]


def test_a_leader_without_laggards_proposes_nothing() -> None:
    leader = leading(held=log(settings=LAG))
    fetches(leader, B, 0)
    fetches(leader, C, 0)
    assert leader.tick(99) == ()


def test_a_member_that_never_fetched_in_this_epoch_lags_on_an_empty_log_too() -> None:
    leader = leading(held=log(settings=LAG))
    fetches(leader, B, 0)
    [proposal] = only(ProposeIsr, leader.tick(11))
    assert [member.broker for member in proposal.isr] == [A, B]


# The answers.


def test_a_refused_proposal_ends_with_the_new_partition_epoch_that_comes_with_it() -> None:
    leader = proposing_c()
    leader.isr_answer(ErrorCode.INELIGIBLE_REPLICA, state(isr=(A, B), version=2))
    assert insync(leader).state == CommittedIsr((A, B))
    assert insync(leader).partition_epoch == 2


def test_a_refused_joiner_is_not_proposed_again_before_the_next_tick() -> None:
    leader = proposing_c()
    leader.isr_answer(ErrorCode.INELIGIBLE_REPLICA, state(isr=(A, B), version=2))
    at_the_end = fetch(C, 5, 0, broker_epoch=8)
    assert only(ConsiderExpand, leader.fetched(at_the_end, 0).effects) == []
    leader.tick(1)
    assert only(ConsiderExpand, leader.fetched(at_the_end, 1).effects) == [(C,)]


def test_a_refusal_without_a_newer_state_ends_nothing() -> None:
    # The store may have it already: the joiner goes on counting.
    leader = proposing_c()
    assert leader.isr_answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None) == ()
    assert leader.isr_answer(ErrorCode.FENCED_LEADER_EPOCH, state(B, 1, version=9)) == ()
    assert [one.broker for one in insync(leader).counted] == [B, C]


def test_an_unexpected_answer_is_ignored() -> None:
    leader = wanting_c()
    assert leader.isr_answer(ErrorCode.NONE, ABC) == ()
    assert insync(leader).isr == (A, B)


def test_a_late_answer_to_an_earlier_proposal_does_not_end_the_next_one() -> None:
    leader = proposing_c()
    leader.isr_answer(ErrorCode.INELIGIBLE_REPLICA, state(isr=(A, B), version=2))
    leader.tick(1)
    assert leader.expand_isr(C)
    assert leader.isr_answer(ErrorCode.INVALID_UPDATE_VERSION, state(isr=(A, B), version=2)) == ()
    assert insync(leader).proposal is not None


def test_an_out_of_date_proposal_takes_over_the_agreed_state() -> None:
    # KAFKA-2729: the ISR recovers.
    leader = proposing_c()
    agreed = state(isr=(A,), version=7)
    effects = leader.isr_answer(ErrorCode.INVALID_UPDATE_VERSION, agreed)
    assert only(IsrApplied, effects) == [((A,), 7)]
    assert insync(leader).proposal is None


def test_without_rereading_an_out_of_date_leader_keeps_its_old_version_for_ever() -> None:
    leader = wanting_c(rules=without("reread-partition-epoch"))
    leader.expand_isr(C)
    effects = leader.isr_answer(ErrorCode.INVALID_UPDATE_VERSION, state(isr=(A,), version=7))
    assert only(IsrApplied, effects) == [((A, B), 1)]
    assert [one.broker for one in insync(leader).counted] == [B]
    assert insync(leader).partition_epoch == 1
    assert insync(leader).isr == (A, B)
    assert insync(leader).proposal is None
    assert leader.expand_isr(C) != ()


def test_without_rereading_a_confirmed_proposal_is_applied_all_the_same() -> None:
    leader = wanting_c(rules=without("reread-partition-epoch"))
    leader.expand_isr(C)
    leader.isr_answer(ErrorCode.NONE, ABC)
    assert insync(leader).isr == (A, B, C)


def test_after_a_confirmed_or_outdated_proposal_the_next_joiner_need_not_wait_for_a_tick() -> None:
    replicas = (A, B, C, D)
    for error in (ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION):
        leader = wanting_c(state(isr=(A, B), replicas=replicas))
        leader.expand_isr(C)
        leader.isr_answer(error, state(isr=(A, B, C), replicas=replicas, version=2))
        assert only(ConsiderExpand, fetches(leader, D, 5).effects) == [(D,)]


def test_a_newer_state_of_this_leader_epoch_ends_the_proposal() -> None:
    leader = proposing_c()
    effects = leader.become_leader(state(isr=(A,), version=2), 0)
    assert only(IsrApplied, effects) == [((A,), 2)]
    assert insync(leader).proposal is None


def test_an_older_state_of_this_leader_epoch_is_ignored() -> None:
    leader = leading(state(version=5))
    assert leader.become_leader(state(isr=(A,), version=5), 0) == ()
    assert leader.become_leader(state(isr=(A,), version=4), 0) == ()
    assert insync(leader).isr == (A, B, C)


def test_an_added_replica_is_known_with_an_unknown_position_and_a_removed_one_forgotten() -> None:
    leader = wanting_c()
    leader.become_leader(state(isr=(A, B), replicas=(A, B, D), version=2), 0)
    followers = insync(leader).followers
    assert list(followers) == [B, D]
    assert (followers[B].log_end_offset, followers[D].log_end_offset) == (5, -1)


# The optimistic variant.


def test_an_optimistic_leader_uses_its_own_proposal_immediately() -> None:
    leader = lagging(rules=Rules(isr_update=IsrUpdate.OPTIMISTIC))
    effects = leader.tick(11)
    assert only(IsrApplied, effects) == [((A,), 1)]
    assert insync(leader).state == CommittedIsr((A,))
    leader.check_invariants()
