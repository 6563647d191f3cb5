"""Consumer fetches: nothing above the high watermark, and never a silent gap."""

from __future__ import annotations

import pytest

from holdfast.core import Fetch, FetchAnswer, ReadRule, Replica, Settings
from holdfast.model import NO_BROKER, UNKNOWN_EPOCH_END, ErrorCode, LeaderEpoch, Offset
from tests.unit.core.support import (
    A,
    B,
    end_at,
    fetches,
    following,
    leading,
    log,
    state,
    without,
)

ANY = Settings(read_rule=ReadRule.ANY_REPLICA)


def read(replica: Replica, offset: int, current: int = -1, last: int = -1) -> FetchAnswer:
    epochs = LeaderEpoch(last), LeaderEpoch(current)
    return replica.read(Fetch(NO_BROKER, Offset(offset), *epochs))


def leader() -> Replica:
    """Epoch 2 leads from 6; epoch 0 wrote 0..3; 4 are committed."""
    held = log(6, high_watermark=4, start=1, epochs=[(0, 1), (1, 4)])
    return leading(state(A, 2, (A, B)), held)


def reader_at_a_follower(*guards_out: str) -> Replica:
    held = log(6, high_watermark=4, epochs=[(0, 0)], settings=ANY)
    return following(state(A, 2), held, without(*guards_out))


@pytest.mark.parametrize("offset", [1, 2])
def test_a_consumer_gets_what_is_committed(offset: int) -> None:
    answer = read(leader(), offset)
    assert (answer.error, answer.fetch_offset, answer.end_offset) == (ErrorCode.NONE, offset, 4)


@pytest.mark.parametrize("offset", [4, 5, 6])
def test_above_the_high_watermark_a_consumer_gets_nothing_yet(offset: int) -> None:
    answer = read(leader(), offset)
    assert answer.error is ErrorCode.NONE
    assert answer.fetch_offset == answer.end_offset == offset


@pytest.mark.parametrize("offset", [0, 7])
def test_outside_the_log_is_out_of_range(offset: int) -> None:
    assert read(leader(), offset).error is ErrorCode.OFFSET_OUT_OF_RANGE


def test_by_default_only_the_leader_is_read() -> None:
    follower = following(state(A, 2), log(6, high_watermark=4, epochs=[(0, 0)]))
    assert read(follower, 0).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_replica_without_a_role_is_not_read() -> None:
    assert read(Replica(A, log(settings=ANY)), 0).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("current", "error"),
    [
        (1, ErrorCode.FENCED_LEADER_EPOCH),
        (3, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, ErrorCode.NONE),
    ],
)
def test_a_consumer_with_another_leader_epoch_gets_an_error(current: int, error: ErrorCode) -> None:
    assert read(leader(), 2, current).error is error


def test_a_consumer_that_names_its_epoch_detects_a_truncation_below_it() -> None:
    # consumer-truncation: it had read 4 and 5 of epoch 0; now those offsets are epoch 1's.
    answer = read(leader(), 6, 2, last=0)
    assert answer.diverging == end_at(0, 4)
    assert answer.end_offset == -1


def test_a_consumer_that_names_no_epoch_skips_silently() -> None:
    assert read(leader(), 6, 2).diverging is None


def test_a_consumer_whose_epoch_fits_is_served() -> None:
    assert read(leader(), 3, 2, last=0).end_offset == 4


# Any replica.


def test_with_any_replica_a_follower_serves_below_its_own_watermark() -> None:
    answer = read(reader_at_a_follower(), 1)
    assert (answer.error, answer.end_offset) == (ErrorCode.NONE, 4)


def test_a_follower_that_is_behind_answers_offset_not_available() -> None:
    assert read(reader_at_a_follower(), 5).error is ErrorCode.OFFSET_NOT_AVAILABLE


def test_without_that_bound_a_follower_sends_the_consumer_back_to_an_old_offset() -> None:
    # KIP-392: out of range means "reset".
    answer = read(reader_at_a_follower("follower-read-bound"), 5)
    assert answer.error is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_follower_reports_a_truncation_in_its_epoch_cache() -> None:
    held = log(6, high_watermark=6, epochs=[(0, 0), (2, 3)], settings=ANY)
    answer = read(following(state(A, 2), held), 5, last=1)
    assert answer.diverging == end_at(0, 3)


def test_a_follower_without_the_epoch_reports_no_truncation() -> None:
    answer = read(reader_at_a_follower(), 4, last=2)
    assert answer.diverging is None
    assert answer.error is ErrorCode.NONE


def test_a_leader_without_the_epoch_answers_unknown() -> None:
    assert read(leader(), 4, last=3).diverging == UNKNOWN_EPOCH_END


# ListOffsets "latest" (KIP-207).


def test_the_latest_offset_is_not_available_before_the_epoch_start_is_committed() -> None:
    replica = leader()
    assert replica.latest_offset() == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    fetches(replica, B, 6)
    assert replica.latest_offset() == (ErrorCode.NONE, 6)


def test_a_follower_does_not_know_the_latest_offset() -> None:
    assert following().latest_offset() == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
