"""Producer state: a retry is never appended twice."""

from __future__ import annotations

import pytest

from holdfast.core.replica.producer_state import (
    REMEMBERED_BATCHES,
    ProducerStates,
    following_sequence,
)
from holdfast.model import BatchHeader, ErrorCode, ProducerId
from tests.unit.core.support import batch

LAST = (1 << 31) - 1


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
    ("sequence", "count", "after"), [(0, 1, 1), (LAST, 1, 0), (LAST, 2, 1), (LAST - 1, 1, LAST)]
)
def test_sequences_wrap_to_zero(sequence: int, count: int, after: int) -> None:
    assert following_sequence(sequence, count) == after


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
    states.append(draft, batch(10).base_offset)
    duplicate = states.check(draft).duplicate
    assert duplicate
    assert (duplicate.base_offset, duplicate.end_offset) == (10, 12)


def test_a_forgotten_producer_may_begin_anywhere() -> None:
    states = knowing(batch(0, 3, producer=7, sequence=0))
    states.forget([ProducerId(7), ProducerId(8)])
    assert states.last_sequence(ProducerId(7)) is None
    assert states.check(batch(producer=7, sequence=42)) == (ErrorCode.NONE, None)


def test_a_transactional_batch_is_refused_from_every_producer() -> None:
    # No coordinator could ever end its transaction.
    wanted = batch(producer=7, sequence=0)._replace(is_transactional=True)
    for states in (ProducerStates(), knowing(batch(0, 1, producer=7, sequence=0))):
        assert states.check(wanted) == (ErrorCode.INVALID_TXN_STATE, None)
