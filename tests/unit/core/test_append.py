"""Appends on a leader: refused before, checked again after, answered once."""

from __future__ import annotations

import pytest

from holdfast.core import (
    ACKS_ALL,
    ACKS_LEADER,
    ACKS_NONE,
    Acknowledge,
    FlushRule,
    Refuse,
    Replica,
    Settings,
)
from holdfast.core.replica.leader import AppendAnswer
from holdfast.model import BatchHeader, ErrorCode, Offset
from tests.unit.core.support import (
    ONE,
    TWO,
    A,
    B,
    C,
    batch,
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

FLUSH = Settings(flush_rule=FlushRule.EVERY_APPEND)


def append(
    replica: Replica, header: BatchHeader, acks: int = ACKS_ALL, waiter: object = "p"
) -> AppendAnswer:
    return replica.append_as_leader(header, acks, waiter, 1_000)


def test_acks_have_the_numbers_of_the_wire() -> None:
    assert (ACKS_ALL, ACKS_LEADER, ACKS_NONE) == (-1, 1, 0)


def test_a_batch_gets_the_next_offset_and_the_leaders_epoch() -> None:
    leader = leading(state(epoch=3), log(5, epochs=[(0, 0)]))
    answer = append(leader, BatchHeader(2))
    assert answer == (ErrorCode.NONE, 5, 3, False, ())
    assert append(leader, BatchHeader(1)).base_offset == 7


def test_the_log_ends_where_it_ended_until_the_bytes_are_written() -> None:
    leader = leading()
    append(leader, BatchHeader(2))
    assert (leader.log.log_end_offset, leader.log.next_offset) == (0, 2)
    leader.appended(0)
    assert leader.log.log_end_offset == 2


def test_several_batches_may_be_written_at_once() -> None:
    leader = leading(state(isr=(A,)))
    append(leader, BatchHeader(2), waiter="first")
    append(leader, BatchHeader(1), waiter="second")
    effects = leader.appended(0)
    assert only(Acknowledge, effects) == [("first", 0), ("second", 2)]


def test_a_follower_refuses_producers() -> None:
    answer = append(following(), BatchHeader(1))
    assert answer == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 0, False, ())


def test_a_follower_has_nothing_to_say_about_written_bytes() -> None:
    assert following().appended(0) == ()


# min.insync.replicas, before the append and again before the answer.


def test_too_small_an_isr_is_refused_before_the_append() -> None:
    leader = leading(state(isr=(A,)), log(settings=TWO))
    answer = append(leader, BatchHeader(1))
    assert answer == (ErrorCode.NOT_ENOUGH_REPLICAS, -1, 0, False, ())
    assert leader.log.next_offset == 0


@pytest.mark.parametrize("acks", [ACKS_LEADER, ACKS_NONE])
def test_other_acks_do_not_ask_for_the_isr(acks: int) -> None:
    leader = leading(state(isr=(A,)), log(settings=TWO))
    assert append(leader, BatchHeader(1), acks).error is ErrorCode.NONE


def test_the_minimum_is_never_more_than_there_are_replicas() -> None:
    leader = leading(state(isr=(A,), replicas=(A,)), log(settings=TWO))
    assert only(Acknowledge, produce(leader)) == [("producer", 0)]


def test_a_shrink_below_the_minimum_refuses_the_waiters_and_keeps_the_record() -> None:
    leader = leading(held=log(settings=TWO))
    produce(leader)
    effects = leader.become_leader(state(isr=(A,), version=2), 0)
    refusal = Refuse("producer", ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, Offset(0))
    assert only(Refuse, effects) == [refusal]
    assert leader.log.log_end_offset == 1


def test_an_isr_that_is_still_large_enough_lets_them_wait() -> None:
    leader = leading(held=log(settings=TWO))
    produce(leader)
    effects = leader.become_leader(state(isr=(A, B), version=2), 0)
    assert only(Refuse, effects) == []
    assert len(role_of(leader).waiting) == 1


def test_before_kip_966_the_refusal_came_when_the_smaller_isr_had_it() -> None:
    three = Settings(min_insync_replicas=3)
    leader = leading(held=log(settings=three), rules=without("eligible-leaders"))
    produce(leader)
    assert only(Refuse, leader.become_leader(state(isr=(A, B), version=2), 0)) == []
    refused = only(Refuse, fetches(leader, B, 1).effects)
    assert [one.error for one in refused] == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]


def test_before_kip_966_such_a_record_was_committed_and_its_producer_refused() -> None:
    leader = leading(held=log(settings=TWO), rules=without("eligible-leaders"))
    produce(leader)
    effects = leader.become_leader(state(isr=(A,), version=2), 0)
    assert leader.log.high_watermark == 1
    assert [one.error for one in only(Refuse, effects)] == [
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    ]


# Who is answered when.


def test_acks_none_is_never_answered() -> None:
    leader = leading(state(isr=(A,)))
    assert only(Acknowledge, produce(leader, acks=ACKS_NONE)) == []


def test_acks_one_is_answered_when_the_leader_has_written_it() -> None:
    leader = leading()
    assert append(leader, BatchHeader(1), ACKS_LEADER).effects == ()
    assert leader.appended(0) == (Acknowledge("p", Offset(0)),)
    assert leader.log.high_watermark == 0


def test_acks_all_waits_for_the_whole_isr_and_not_for_the_minimum() -> None:
    leader = leading(held=log(settings=TWO))
    assert only(Acknowledge, produce(leader)) == []
    assert only(Acknowledge, fetches(leader, B, 1).effects) == []
    assert only(Acknowledge, fetches(leader, C, 1).effects) == [("producer", 0)]


def test_with_one_evicted_acks_all_waits_for_the_other_two() -> None:
    leader = leading(held=log(settings=TWO))
    produce(leader)
    fetches(leader, B, 1)
    effects = leader.become_leader(state(isr=(A, B), version=2), 0)
    assert only(Acknowledge, effects) == [("producer", 0)]


def test_a_producer_is_answered_once() -> None:
    leader = leading(state(isr=(A, B)))
    produce(leader)
    assert only(Acknowledge, fetches(leader, B, 1).effects) == [("producer", 0)]
    assert only(Acknowledge, fetches(leader, B, 1).effects) == []


def test_a_producer_that_waits_too_long_is_answered_only_once() -> None:
    leader = leading(state(isr=(A, B)))
    produce(leader, deadline_ms=100)
    assert leader.tick(99) == ()
    assert leader.tick(100) == (Refuse("producer", ErrorCode.REQUEST_TIMED_OUT, Offset(0)),)
    assert only(Acknowledge, fetches(leader, B, 1).effects) == []


# Flushing before the answer.


def test_flush_every_append_makes_acks_one_wait_for_the_disk() -> None:
    leader = leading(state(isr=(A,)), log(settings=FLUSH))
    assert only(Acknowledge, produce(leader, acks=ACKS_LEADER)) == []
    assert only(Acknowledge, leader.flushed(Offset(1), 0)) == [("producer", 0)]


def test_a_flush_answers_only_what_it_has_covered() -> None:
    leader = leading(state(isr=(A,)), log(settings=FLUSH))
    produce(leader, "first", ACKS_LEADER)
    produce(leader, "second", ACKS_LEADER)
    assert only(Acknowledge, leader.flushed(Offset(1), 0)) == [("first", 0)]
    assert only(Acknowledge, leader.flushed(Offset(2), 0)) == [("second", 1)]


def test_flush_every_append_makes_acks_all_wait_for_the_leaders_disk() -> None:
    leader = leading(state(isr=(A, B)), log(settings=FLUSH))
    produce(leader)
    assert only(Acknowledge, fetches(leader, B, 1).effects) == []
    assert only(Acknowledge, leader.flushed(Offset(1), 0)) == [("producer", 0)]


def test_a_flush_answers_no_producer_under_the_other_rules() -> None:
    leader = leading(state(isr=(A, B)))
    produce(leader)
    assert leader.flushed(Offset(1), 0) == ()


# Idempotent producers.


def leading_alone(settings: Settings = ONE) -> Replica:
    return leading(state(isr=(A,)), log(settings=settings))


def test_a_duplicate_is_not_appended_and_answered_with_the_first_copys_offset() -> None:
    leader = leading_alone()
    append(leader, batch(records=2, producer=7, sequence=0))
    leader.appended(0)
    again = append(leader, batch(records=2, producer=7, sequence=0), waiter="retry")
    assert (again.base_offset, again.duplicate) == (0, True)
    assert again.effects == (Acknowledge("retry", Offset(0)),)
    assert leader.log.next_offset == 2


def test_a_duplicate_waits_until_the_first_copy_is_committed() -> None:
    leader = leading(state(isr=(A, B)))
    append(leader, batch(producer=7, sequence=0), waiter="first")
    append(leader, batch(producer=7, sequence=1), waiter="next")
    leader.appended(0)
    assert append(leader, batch(producer=7, sequence=0), waiter="retry").effects == ()
    answered = only(Acknowledge, fetches(leader, B, 2).effects)
    assert answered == [("first", 0), ("retry", 0), ("next", 1)]


def test_a_duplicate_with_acks_none_is_not_answered() -> None:
    leader = leading_alone()
    append(leader, batch(producer=7, sequence=0))
    leader.appended(0)
    assert append(leader, batch(producer=7, sequence=0), ACKS_NONE).effects == ()


def test_a_duplicate_with_acks_none_is_not_answered_by_a_later_flush_either() -> None:
    leader = leading_alone(FLUSH)
    append(leader, batch(producer=7, sequence=0), ACKS_NONE)
    leader.appended(0)
    append(leader, batch(producer=7, sequence=0), ACKS_NONE)
    assert only(Acknowledge, leader.flushed(Offset(1), 0)) == []


@pytest.mark.parametrize("settings", [ONE, FLUSH])
def test_a_duplicate_with_acks_one_does_not_wait_for_the_followers(settings: Settings) -> None:
    leader = leading(state(isr=(A, B)), log(settings=settings))
    append(leader, batch(producer=7, sequence=0), ACKS_LEADER)
    leader.appended(0)
    leader.flushed(Offset(1), 0)
    again = append(leader, batch(producer=7, sequence=0), ACKS_LEADER, "retry")
    assert again.effects == (Acknowledge("retry", Offset(0)),)


def test_a_duplicate_with_acks_one_waits_for_the_leaders_disk_like_the_first_copy() -> None:
    leader = leading_alone(FLUSH)
    append(leader, batch(producer=7, sequence=0), ACKS_LEADER, "first")
    leader.appended(0)
    assert append(leader, batch(producer=7, sequence=0), ACKS_LEADER, "retry").effects == ()
    answered = only(Acknowledge, leader.flushed(Offset(1), 0))
    assert answered == [("first", 0), ("retry", 0)]


def test_a_sequence_out_of_order_is_refused_and_the_log_stays() -> None:
    leader = leading_alone()
    append(leader, batch(producer=7, sequence=0))
    refused = append(leader, batch(producer=7, sequence=5))
    assert refused.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert leader.log.next_offset == 1


def test_a_retry_after_the_isr_shrank_makes_no_second_copy() -> None:
    # not-enough-replicas-after-append: the record stayed, the retry finds it.
    leader = leading(held=log(settings=TWO))
    append(leader, batch(producer=7, sequence=0))
    leader.appended(0)
    leader.become_leader(state(isr=(A,), version=2), 0)
    leader.become_leader(state(isr=(A, B), version=3), 0)
    assert append(leader, batch(producer=7, sequence=0)).duplicate
    assert leader.log.next_offset == 1


def test_a_follower_that_copied_the_batch_detects_the_duplicate_when_it_leads() -> None:
    follower = following(state(isr=(A, B)))
    follower.append_as_follower([batch(0, 2, producer=7, sequence=0)], Offset(0), 0)
    follower.become_leader(state(B, 1, (B,)), 0)
    answer = append(follower, batch(records=2, producer=7, sequence=0))
    assert (answer.duplicate, answer.base_offset) == (True, 0)


def test_a_truncated_batch_is_no_duplicate() -> None:
    follower = following(state(isr=(A, B)))
    kept, gone = batch(0, 1, producer=7, sequence=0), batch(1, 1, producer=7, sequence=1)
    follower.append_as_follower([kept, gone], Offset(0), 0)
    follower.become_follower(state(C, 1))
    follower.log.truncate_to(Offset(1))
    follower.log.producers.rebuild([kept])
    follower.become_leader(state(B, 2, (B,)), 0)
    answer = append(follower, batch(producer=7, sequence=1))
    assert (answer.duplicate, answer.base_offset) == (False, 1)


def test_waiting_producers_are_counted() -> None:
    leader = leading(state(isr=(A, B)))
    produce(leader)
    assert len(role_of(leader).waiting) == 1


def test_a_replica_is_awaited_while_a_producer_waits() -> None:
    replica = leading()
    seen = [replica.is_awaited]
    produce(replica)
    seen.append(replica.is_awaited)
    fetches(replica, B, 1)
    fetches(replica, C, 1)
    seen.append(replica.is_awaited)
    assert seen == [False, True, False]


def test_a_replica_is_awaited_while_a_flush_may_become_due() -> None:
    timed = Settings(flush_rule=FlushRule.EVERY_T_MS)
    unflushed, flushed = (log(4, flushed=end, settings=timed) for end in (3, 4))
    assert following(held=unflushed).is_awaited
    assert not following(held=flushed).is_awaited
