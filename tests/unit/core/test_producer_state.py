"""Producer state: a retry is never appended twice."""

from __future__ import annotations

import pytest

from holdfast.core.producers.producer_state import REMEMBERED_BATCHES, ProducerStates, SeenBatch
from holdfast.model import BatchHeader, EndMarker, ErrorCode, Offset, ProducerId
from tests.unit.core.support import batch

LAST = (1 << 31) - 1
SEVEN, EIGHT = ProducerId(7), ProducerId(8)


def knowing(*batches: BatchHeader) -> ProducerStates:
    states = ProducerStates()
    for one in batches:
        states.append(one)
    return states


def test_an_unknown_producer_may_start_anywhere() -> None:
    # Retention may have deleted all it wrote before.
    assert ProducerStates().check(batch(producer=7, sequence=42)) == (ErrorCode.NONE, None)


def test_the_next_sequence_is_fresh() -> None:
    states = knowing(batch(0, 3, producer=7, sequence=0))
    assert states.check(batch(producer=7, sequence=3)) == (ErrorCode.NONE, None)


def test_a_repeated_batch_is_a_duplicate_of_the_first_copy() -> None:
    states = knowing(batch(10, 3, producer=7, sequence=0))
    check = states.check(batch(records=3, producer=7, sequence=0))
    assert check.error is ErrorCode.NONE
    assert check.duplicate
    assert (check.duplicate.base_offset, check.duplicate.end_offset) == (10, 13)


def test_a_gap_is_out_of_order() -> None:
    states = knowing(batch(0, 3, producer=7, sequence=0))
    error = states.check(batch(producer=7, sequence=4)).error
    assert error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_that_overlaps_another_is_out_of_order() -> None:
    states = knowing(batch(0, 3, producer=7, sequence=0))
    error = states.check(batch(records=2, producer=7, sequence=0)).error
    assert error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_end_of_a_known_batch_alone_is_no_duplicate() -> None:
    states = knowing(batch(0, 3, producer=7, sequence=0))
    error = states.check(batch(records=2, producer=7, sequence=1)).error
    assert error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_older_producer_epoch_is_fenced() -> None:
    states = knowing(batch(0, 1, producer=7, sequence=0, producer_epoch=2))
    error = states.check(batch(producer=7, sequence=1, producer_epoch=1)).error
    assert error is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_newer_producer_epoch_starts_at_zero() -> None:
    states = knowing(batch(0, 5, producer=7, sequence=0))
    fresh = states.check(batch(producer=7, sequence=0, producer_epoch=1))
    assert fresh == (ErrorCode.NONE, None)
    wrong = states.check(batch(producer=7, sequence=5, producer_epoch=1)).error
    assert wrong is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_newer_producer_epoch_forgets_the_older_ones_batches() -> None:
    states = knowing(
        batch(0, 1, producer=7, sequence=0),
        batch(1, 1, producer=7, sequence=0, producer_epoch=1),
    )
    check = states.check(batch(producer=7, sequence=0, producer_epoch=1))
    assert check.duplicate
    assert check.duplicate.base_offset == 1


def test_producers_do_not_mix() -> None:
    states = knowing(batch(0, 1, producer=7, sequence=0))
    assert states.check(batch(producer=8, sequence=0)) == (ErrorCode.NONE, None)


def test_batches_without_a_producer_are_not_remembered() -> None:
    states = knowing(batch(0, 1))
    assert states.last_sequence(ProducerId(-1)) is None


def test_as_many_batches_are_remembered_as_may_be_in_flight() -> None:
    states = knowing(*(batch(n, producer=7, sequence=n) for n in range(REMEMBERED_BATCHES + 1)))
    assert states.check(batch(producer=7, sequence=1)).duplicate
    forgotten = states.check(batch(producer=7, sequence=0))
    assert forgotten == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None)


@pytest.mark.parametrize(
    ("sequence", "count", "last"),
    [(0, 1, 0), (LAST, 1, LAST), (LAST, 2, 0), (LAST - 1, 2, LAST), (-1, 3, -1)],
)
def test_sequences_wrap_to_zero(sequence: int, count: int, last: int) -> None:
    header = batch(0, count, producer=7, sequence=sequence)
    assert header.last_sequence == last
    assert knowing(header).states[SEVEN].last_sequence == last


def test_a_batch_may_straddle_the_wrap() -> None:
    states = knowing(batch(0, 3, producer=7, sequence=LAST - 1))
    assert states.last_sequence(ProducerId(7)) == 0
    assert states.check(batch(records=3, producer=7, sequence=LAST - 1)).duplicate
    assert states.check(batch(producer=7, sequence=1)) == (ErrorCode.NONE, None)


def test_a_rebuilt_state_has_only_the_batches_in_the_log() -> None:
    states = knowing(*(batch(n, producer=7, sequence=n) for n in range(3)))
    states.rebuild([batch(0, producer=7, sequence=0), batch(1)])
    assert states.last_sequence(ProducerId(7)) == 0
    assert states.check(batch(producer=7, sequence=1)) == (ErrorCode.NONE, None)


def test_a_batch_without_a_place_cannot_be_remembered() -> None:
    with pytest.raises(AssertionError):
        ProducerStates().append(batch(producer=7, sequence=0))


def test_the_place_given_out_counts_for_a_batch_that_has_none_yet() -> None:
    states = ProducerStates()
    draft = batch(records=2, producer=7, sequence=0)
    states.assign(draft, Offset(10))
    duplicate = states.check(draft).duplicate
    assert duplicate
    assert (duplicate.base_offset, duplicate.end_offset) == (10, 12)


def test_a_transactional_batch_is_refused_from_every_producer() -> None:
    # No coordinator could ever end its transaction.
    wanted = batch(producer=7, sequence=0)._replace(is_transactional=True)
    for states in (ProducerStates(), knowing(batch(0, 1, producer=7, sequence=0))):
        assert states.check(wanted) == (ErrorCode.INVALID_TXN_STATE, None)


# What is in the log, and what is only assigned.


def test_a_batch_counts_once_though_storage_and_the_follower_both_add_it() -> None:
    states = knowing(batch(0, 3, producer=7, sequence=0))
    states.append(batch(0, 3, producer=7, sequence=0))
    assert states.states[SEVEN].batches == (SeenBatch(0, 2, Offset(0), Offset(3)),)
    assert states.end_offset == 3


def test_the_log_does_not_add_what_the_leader_has_assigned() -> None:
    states = ProducerStates()
    states.assign(batch(records=3, producer=7, sequence=0), Offset(0))
    states.append(batch(0, 3, producer=7, sequence=0))
    assert len(states.states[SEVEN].batches) == 1


def test_a_snapshot_has_only_what_is_below_its_offset() -> None:
    """A roll takes it while a leader has assigned more than is written."""
    states = knowing(batch(0, producer=7, sequence=0), batch(1, producer=7, sequence=1))
    before = states.snapshot_at(Offset(2))
    for offset, (producer, sequence) in enumerate([(7, 2), (8, 0), (7, 3), (8, 1)], 2):
        states.assign(batch(producer=producer, sequence=sequence), Offset(offset))
    assert states.snapshot_at(Offset(2)) == before
    seven, eight = states.snapshot_at(Offset(4))
    assert (seven.last_sequence, eight.last_sequence) == (2, 0)
    assert states.snapshot_at(Offset(6)) == list(states.states.values())


def test_an_epoch_that_is_only_assigned_is_in_no_snapshot() -> None:
    states = knowing(batch(0, producer=7, sequence=0))
    states.assign(batch(producer=7, sequence=0, producer_epoch=1), Offset(1))
    assert states.check(batch(producer=7, sequence=1)).error is ErrorCode.INVALID_PRODUCER_EPOCH
    [below] = states.snapshot_at(Offset(1))
    assert (below.producer_epoch, below.last_offset) == (0, 0)
    states.written()
    [state] = states.snapshot_at(Offset(2))
    assert (state.producer_epoch, state.last_offset) == (1, 1)


def test_a_restored_snapshot_is_completed_by_the_batches_before_it() -> None:
    live = knowing(*(batch(n, producer=7, sequence=n) for n in range(8)))
    [state] = live.snapshot_at(Offset(8))
    states = ProducerStates()
    states.restore([state._replace(batches=state.batches[-1:])], Offset(8))
    for number in range(8):
        states.recall(batch(number, producer=7, sequence=number))
        states.recall(batch(number, producer=8, sequence=number))
    assert states.states == live.states
    assert states.end_offset == 8


def test_batches_of_an_older_epoch_are_not_recalled() -> None:
    states = ProducerStates()
    states.restore(knowing(batch(4, producer=7, sequence=0, producer_epoch=1)).states.values())
    states.recall(batch(3, producer=7, sequence=9))
    assert len(states.states[SEVEN].batches) == 1


# Transactions.


def begun(base_offset: int, producer: int, sequence: int = 0) -> BatchHeader:
    return batch(base_offset, producer=producer, sequence=sequence)._replace(is_transactional=True)


def end(
    states: ProducerStates, offset: int, producer: int, *, commit: bool = True, epoch: int = 0
) -> object:
    header = begun(offset, producer, -1)._replace(is_control=True, producer_epoch=epoch)
    return states.append(header, EndMarker(commit, producer, epoch, 3))


def test_an_open_transaction_holds_back_the_last_stable_offset() -> None:
    states = knowing(batch(0), begun(1, 7), begun(2, 8), begun(3, 7, 1))
    assert states.last_stable_offset(1) == 1
    assert states.last_stable_offset(4) == 1
    assert states.states[SEVEN].transaction_start == 1


def test_an_ended_transaction_holds_it_back_until_its_marker_is_committed() -> None:
    states = knowing(begun(0, 7), begun(1, 8))
    assert end(states, 2, 7, commit=False) == (7, 0, 2, True, 1)
    assert states.last_stable_offset(2) == 0
    assert states.last_stable_offset(3) == 1
    assert end(states, 3, 8) == (8, 1, 3, False, 4)
    assert states.last_stable_offset(4) == 4


def test_a_marker_keeps_the_sequence_of_its_epoch() -> None:
    states = knowing(begun(0, 7))
    end(states, 1, 7)
    state = states.states[SEVEN]
    assert (state.last_sequence, state.coordinator_epoch, state.transaction_start) == (0, 3, -1)
    assert states.check(batch(producer=7, sequence=1)) == (ErrorCode.NONE, None)


def test_a_marker_with_a_raised_epoch_fences_the_producer() -> None:
    states = knowing(begun(0, 7))
    end(states, 1, 7, commit=False, epoch=1)
    assert states.check(batch(producer=7, sequence=1)).error is ErrorCode.INVALID_PRODUCER_EPOCH
    again = batch(producer=7, sequence=0, producer_epoch=1)
    assert states.check(again) == (ErrorCode.NONE, None)
    gap = again._replace(base_sequence=1)
    assert states.check(gap).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.last_sequence(SEVEN) is None


def test_a_marker_without_records_ends_nothing() -> None:
    states = ProducerStates()
    assert end(states, 0, 7) is None
    assert states.last_stable_offset(1) == 1


def test_a_control_batch_without_a_marker_changes_no_producer() -> None:
    states = knowing(begun(0, 7))
    before = states.states[SEVEN]
    states.append(begun(1, 7)._replace(is_control=True))
    assert states.states[SEVEN] == before
    assert states.last_stable_offset(2) == 0


def test_a_restored_transaction_is_open() -> None:
    live = knowing(begun(0, 8), begun(1, 7), batch(2))
    states = ProducerStates()
    states.restore(live.snapshot_at(Offset(3)), Offset(3))
    assert states.last_stable_offset(3) == 0
    end(states, 3, 8)
    assert states.last_stable_offset(4) == 1


def test_abandoned_transactions_hold_nothing_back() -> None:
    states = knowing(begun(0, 7), begun(1, 8))
    assert states.abandon_open() == {7: 0, 8: 1}
    assert states.last_stable_offset(2) == 2
    assert states.states[SEVEN].transaction_start == -1
    assert states.abandon_open() == {}


# Expiry.


def test_a_silent_producer_expires_and_may_begin_anywhere() -> None:
    states = knowing(batch(0, 3, producer=7, sequence=0), begun(3, 8))
    states.expire(1_000, 500)
    states.expire(1_499, 500)
    assert states.last_sequence(SEVEN) == 2
    states.expire(1_500, 500)
    assert states.last_sequence(SEVEN) is None
    assert states.check(batch(producer=7, sequence=42)) == (ErrorCode.NONE, None)
    assert list(states.states) == [EIGHT], "in the middle of a transaction"


def test_a_batch_postpones_the_expiry() -> None:
    states = knowing(batch(0, producer=7, sequence=0))
    states.expire(1_000, 500)
    states.append(batch(1, producer=7, sequence=1))
    states.expire(1_600, 500)
    states.expire(2_099, 500)
    assert states.last_sequence(SEVEN) == 1
    states.expire(2_100, 500)
    assert not states.states


def test_a_producer_of_a_snapshot_expires_by_its_timestamp() -> None:
    states = ProducerStates()
    live = knowing(batch(0, producer=7, sequence=0)._replace(max_timestamp=600))
    states.restore(live.snapshot_at(Offset(1)), Offset(1))
    states.expire(1_099, 500)
    assert list(states.states) == [SEVEN]
    states.expire(1_100, 500)
    assert not states.states


def test_a_producer_without_timestamps_counts_from_the_first_pass_on() -> None:
    states = ProducerStates()
    states.restore(knowing(batch(0, producer=7, sequence=0)).snapshot_at(Offset(1)), Offset(1))
    for now_ms in (1_000, 1_499):
        states.expire(now_ms, 500)
        assert list(states.states) == [SEVEN]
    states.expire(1_500, 500)
    assert not states.states
