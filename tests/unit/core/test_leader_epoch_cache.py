"""The leader-epoch cache: its entries, and where an epoch ends."""

from __future__ import annotations

import pytest

from holdfast.core import EpochCache
from holdfast.model import UNKNOWN_EPOCH_END, EpochEnd, EpochEntry, LeaderEpoch, Offset
from tests.unit.core.support import batch, end_at


def cache(*pairs: tuple[int, int]) -> EpochCache:
    return EpochCache(EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in pairs)


def pairs(epochs: EpochCache) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in epochs.entries]


def end_of(epochs: EpochCache, epoch: int, log_end: int, *, exact: bool = False) -> EpochEnd:
    return epochs.end_offset_for(LeaderEpoch(epoch), Offset(log_end), exact=exact)


def test_an_empty_cache_has_no_epoch_and_no_end() -> None:
    assert cache().latest_epoch == -1
    assert end_of(cache(), 0, 5) == UNKNOWN_EPOCH_END


def test_epoch_zero_is_an_epoch_like_any_other() -> None:
    epochs = cache()
    assert epochs.assign(LeaderEpoch(0), Offset(0))
    assert pairs(epochs) == [(0, 0)]
    assert end_of(epochs, 0, 3) == end_at(0, 3)


def test_a_known_or_older_epoch_changes_nothing() -> None:
    epochs = cache((0, 0), (2, 5))
    assert not epochs.assign(LeaderEpoch(2), Offset(9))
    assert not epochs.assign(LeaderEpoch(1), Offset(9))
    assert pairs(epochs) == [(0, 0), (2, 5)]


def test_an_epoch_without_records_is_replaced_by_the_next() -> None:
    epochs = cache((0, 0), (1, 5))
    assert epochs.assign(LeaderEpoch(2), Offset(5))
    assert pairs(epochs) == [(0, 0), (2, 5)]


def test_the_latest_epoch_ends_where_the_log_ends() -> None:
    assert end_of(cache((0, 0), (3, 5)), 3, 9) == end_at(3, 9)


def test_an_earlier_epoch_ends_where_the_next_one_starts() -> None:
    assert end_of(cache((0, 0), (3, 5), (4, 7)), 3, 9) == end_at(3, 7)


def test_an_epoch_that_wrote_nothing_ends_where_it_starts() -> None:
    assert end_of(cache((0, 0), (1, 5)), 1, 5) == end_at(1, 5)


def test_an_unknown_epoch_is_answered_with_the_largest_smaller_one() -> None:
    # KIP-279: b1 never saw epoch 1, and says where epoch 0 ends.
    assert end_of(cache((0, 0), (2, 1)), 1, 4) == end_at(0, 1)


def test_before_kip_279_an_unknown_epoch_was_undefined() -> None:
    epochs = cache((0, 0), (2, 1))
    assert end_of(epochs, 1, 4, exact=True) == UNKNOWN_EPOCH_END
    assert end_of(epochs, 0, 4, exact=True) == end_at(0, 1)


def test_an_epoch_above_the_latest_is_unknown() -> None:
    assert end_of(cache((0, 0)), 1, 4) == UNKNOWN_EPOCH_END


def test_an_epoch_below_the_first_ends_where_the_log_begins() -> None:
    epochs = cache((3, 10))
    assert end_of(epochs, 1, 20) == end_at(1, 10)
    assert end_of(epochs, 1, 20, exact=True) == UNKNOWN_EPOCH_END


@pytest.mark.parametrize(("offset", "epoch"), [(9, -1), (10, 3), (14, 3), (15, 5), (99, 5)])
def test_every_offset_belongs_to_the_last_epoch_that_began_by_then(offset: int, epoch: int) -> None:
    assert cache((3, 10), (5, 15)).epoch_at(Offset(offset)) == epoch


@pytest.mark.parametrize(
    ("end", "left"),
    [(8, [(0, 0), (1, 5)]), (7, [(0, 0), (1, 5)]), (5, [(0, 0)]), (0, [])],
)
def test_a_truncation_drops_epochs_from_there_on(end: int, left: list[tuple[int, int]]) -> None:
    epochs = cache((0, 0), (1, 5), (2, 8))
    epochs.truncate_to(Offset(end))
    assert pairs(epochs) == left


@pytest.mark.parametrize(
    ("start", "left"),
    [
        (0, [(0, 0), (1, 5), (2, 8)]),
        (3, [(0, 3), (1, 5), (2, 8)]),
        (5, [(1, 5), (2, 8)]),
        (99, [(2, 99)]),
    ],
)
def test_a_new_log_start_moves_the_epoch_that_contains_it(
    start: int, left: list[tuple[int, int]]
) -> None:
    epochs = cache((0, 0), (1, 5), (2, 8))
    epochs.advance_start_to(Offset(start))
    assert pairs(epochs) == left


def test_a_start_before_all_epochs_changes_nothing() -> None:
    epochs = cache((3, 10))
    epochs.advance_start_to(Offset(4))
    assert pairs(epochs) == [(3, 10)]


def test_a_rebuilt_cache_keeps_the_first_epoch() -> None:
    # KAFKA-10432.
    headers = [batch(0, 2, 0), batch(2, 1, 0), batch(3, 1, 2)]
    assert pairs(EpochCache.rebuilt_from(headers)) == [(0, 0), (2, 3)]


def test_a_rebuilt_cache_without_that_guard_loses_epoch_zero() -> None:
    rebuilt = EpochCache.rebuilt_from([batch(0, 3, 0), batch(3, 1, 2)], keep_first=False)
    assert pairs(rebuilt) == [(2, 3)]
    # The wrong truncation point that follows: epoch 0 seems to be unknown here.
    assert end_of(rebuilt, 0, 4, exact=True) == UNKNOWN_EPOCH_END


@pytest.mark.parametrize("entries", [((1, 0), (1, 5)), ((2, 0), (1, 5)), ((1, 5), (2, 5))])
def test_epochs_that_do_not_rise_are_a_bug(entries: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(AssertionError):
        cache(*entries)
