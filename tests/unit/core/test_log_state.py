"""The offsets of a log: flush rules, truncation, copies, order."""

from __future__ import annotations

import pytest

from holdfast.core import Flush, FlushRule, Replica, Settings
from holdfast.model import Offset
from tests.unit.core.support import A, B, batch, following, leading, log, only, produce, state

EVERY_APPEND = Settings(flush_rule=FlushRule.EVERY_APPEND)
EVERY_THREE = Settings(flush_rule=FlushRule.EVERY_N_MESSAGES, log_flush_interval_messages=3)
PAGE_CACHE = Settings()
EVERY_100_MS = Settings(flush_rule=FlushRule.EVERY_T_MS, log_flush_interval_ms=100)
EITHER = Settings(
    flush_rule=FlushRule.EVERY_N_MESSAGES_OR_T_MS,
    log_flush_interval_messages=3,
    log_flush_interval_ms=100,
)


def test_a_high_watermark_beyond_a_torn_log_falls_back_to_its_end() -> None:
    assert log(5, high_watermark=9).high_watermark == 5


def test_a_high_watermark_before_the_log_rises_to_its_start() -> None:
    assert log(9, start=5).high_watermark == 5


@pytest.mark.parametrize(("first_open", "stable"), [(0, 3), (4, 4), (6, 6), (7, 6), (None, 6)])
def test_the_last_stable_offset_lies_between_the_start_and_the_high_watermark(
    first_open: int | None, stable: int
) -> None:
    held = log(8, start=3, high_watermark=6)
    if first_open is not None:
        begun = batch(first_open, producer=7, sequence=0)._replace(is_transactional=True)
        held.producers.append(begun)
    assert held.last_stable_offset == stable


# When to flush.


@pytest.mark.parametrize(
    ("settings", "flushed", "now_ms", "wants"),
    [
        (Settings(), 0, 99_999, False),
        (EVERY_APPEND, 4, 0, True),
        (EVERY_APPEND, 5, 0, False),
        (EVERY_THREE, 3, 99_999, False),
        (EVERY_THREE, 2, 0, True),
        (EVERY_100_MS, 0, 99, False),
        (EVERY_100_MS, 0, 100, True),
        (EVERY_100_MS, 5, 100, False),
        (EITHER, 2, 0, True),
        (EITHER, 3, 99, False),
        (EITHER, 3, 100, True),
        (EITHER, 5, 100, False),
    ],
)
def test_each_rule_asks_for_a_flush_in_its_own_way(
    settings: Settings, flushed: int, now_ms: int, wants: bool
) -> None:
    assert log(5, flushed=flushed, settings=settings).wants_flush(now_ms) is wants


def test_a_flush_starts_the_interval_again() -> None:
    held = log(5, settings=EVERY_100_MS)
    held.flushed(Offset(3), 100)
    assert not held.wants_flush(199)
    assert held.wants_flush(200)


def test_a_late_flush_of_less_takes_nothing_back() -> None:
    held = log(5, flushed=4)
    held.flushed(Offset(2), 0)
    assert held.flushed_offset == 4


def test_more_than_there_is_cannot_be_flushed() -> None:
    held = log(5)
    held.flushed(Offset(9), 0)
    assert held.flushed_offset == 5


@pytest.mark.parametrize(
    ("settings", "flushed", "claimed"),
    [
        (EVERY_APPEND, 4, 4),
        (EVERY_THREE, 3, 5),
        (EVERY_THREE, 2, 2),
        (EITHER, 3, 5),
        (EITHER, 2, 2),
        (EVERY_100_MS, 0, 5),
        (PAGE_CACHE, 0, 5),
    ],
)
def test_what_a_log_may_claim(settings: Settings, flushed: int, claimed: int) -> None:
    assert log(5, flushed=flushed, settings=settings).claimed_end == claimed


def test_a_leader_flushes_what_it_has_appended() -> None:
    leader = leading(state(isr=(A, B)), log(settings=EVERY_THREE))
    assert only(Flush, produce(leader, records=2)) == []
    assert only(Flush, produce(leader)) == [(3,)]


def test_a_leader_flushes_when_the_time_has_come() -> None:
    leader = leading(state(isr=(A, B)), log(settings=EVERY_100_MS))
    assert only(Flush, produce(leader)) == []
    assert only(Flush, leader.tick(99)) == []
    assert only(Flush, leader.tick(100)) == [(1,)]


def test_a_follower_flushes_by_the_same_rules() -> None:
    follower = following(held=log(settings=EVERY_THREE))
    assert follower.append_as_follower([batch(0, 2)], Offset(0), 0) == ()
    assert follower.append_as_follower([batch(2, 1)], Offset(0), 0) == (Flush(Offset(3)),)


def test_a_follower_flushes_when_the_time_has_come() -> None:
    follower = following(held=log(settings=EVERY_100_MS))
    follower.append_as_follower([batch(0)], Offset(0), 0)
    assert follower.tick(99) == ()
    assert follower.tick(100) == (Flush(Offset(1)),)


def test_an_answer_without_records_flushes_nothing() -> None:
    follower = following(held=log(settings=EVERY_100_MS))
    follower.append_as_follower([batch(0)], Offset(0), 0)
    assert follower.append_as_follower([], Offset(0), 100) == ()


def test_a_replica_without_a_role_flushes_nothing() -> None:
    assert Replica(A, log(5, settings=EVERY_APPEND)).tick(100) == ()


# Truncation and copying.


def test_a_truncation_lowers_the_flushed_offset_and_drops_epochs() -> None:
    held = log(9, flushed=8, epochs=[(0, 0), (1, 5)])
    assert held.truncate_to(Offset(5)) == (5, 9)
    assert (held.log_end_offset, held.next_offset, held.flushed_offset) == (5, 5, 5)
    assert held.epochs.latest_epoch == 0


def test_truncating_above_the_end_changes_nothing() -> None:
    held = log(5, flushed=5, epochs=[(0, 0)])
    assert held.truncate_to(Offset(5)) is None
    assert held.truncate_to(Offset(9)) is None
    assert log(4, start=4).truncate_to(Offset(4)) is None
    assert (held.log_end_offset, held.epochs.latest_epoch) == (5, 0)


def test_a_log_restarted_elsewhere_is_empty_there() -> None:
    held = log(9, high_watermark=7, flushed=8, epochs=[(0, 0)])
    assert held.restart_at(Offset(20)) == (20, 9)
    held.check_invariants()
    assert (held.log_start_offset, held.log_end_offset, held.high_watermark) == (20, 20, 20)
    assert held.epochs.latest_epoch == -1


@pytest.mark.parametrize(
    ("written_start", "end", "restarts"), [(2, 5, False), (2, 2, False), (2, 1, True), (1, 5, True)]
)
def test_a_log_that_begins_elsewhere_is_restarted(
    written_start: int, end: int, restarts: bool
) -> None:
    held = log(9, start=2, high_watermark=7)
    assert held.must_restart(Offset(written_start), Offset(end)) is restarts


def test_copied_batches_carry_their_epochs() -> None:
    held = log(2, epochs=[(0, 0)])
    held.copied([batch(2, 2, 0), batch(4, 1, 3)])
    assert held.log_end_offset == 5
    assert held.epochs.epoch_at(Offset(3)) == 0
    assert held.epochs.epoch_at(Offset(4)) == 3


def test_a_follower_of_a_compacted_leader_has_its_gaps() -> None:
    held = log(2)
    held.copied([batch(3)])
    assert held.log_end_offset == 4


def test_a_batch_that_overlaps_a_followers_log_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="overlaps"):
        log(2).copied([batch(1)])


@pytest.mark.parametrize(
    ("field", "value"), [("high_watermark", 9), ("flushed_offset", 9), ("log_start_offset", 9)]
)
def test_numbers_out_of_order_are_a_bug(field: str, value: int) -> None:
    held = log(5)
    held.check_invariants()
    setattr(held, field, value)
    with pytest.raises(AssertionError):
        held.check_invariants()


def test_a_flush_without_records_does_not_postpone_the_next() -> None:
    held = log(5, flushed=3, settings=EVERY_100_MS)
    held.flushed(Offset(3), 90)
    assert held.wants_flush(100)
    held.flushed(Offset(5), 100)
    assert not held.wants_flush(150)
