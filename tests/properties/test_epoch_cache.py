"""The epoch cache against a log that names the epoch of every single offset."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import EpochCache, Fetch, LogState, Replica, Settings
from holdfast.model import (
    UNKNOWN_EPOCH_END,
    BatchHeader,
    BrokerEpoch,
    BrokerId,
    EpochEnd,
    LeaderEpoch,
    Offset,
    PartitionState,
)

LEADER, FOLLOWER = BROKERS = (BrokerId(1), BrokerId(2))
LAST_EPOCH = 8

epochs = st.integers(0, LAST_EPOCH)
logs = st.lists(epochs, max_size=12).map(sorted)
"""The epoch that wrote each offset."""


def headers(log: list[int]) -> list[BatchHeader]:
    return [BatchHeader(1, LeaderEpoch(epoch), Offset(offset)) for offset, epoch in enumerate(log)]


def slow_end_of(log: list[int], epoch: int) -> EpochEnd:
    """Where an epoch ends, by looking at every offset."""
    if not log or epoch > log[-1]:
        return UNKNOWN_EPOCH_END
    end = next((offset for offset, one in enumerate(log) if one > epoch), len(log))
    known = [one for one in log if one <= epoch]
    return EpochEnd(LeaderEpoch(known[-1] if known else epoch), Offset(end))


@given(log=logs, epoch=st.integers(-1, LAST_EPOCH + 1))
def test_the_end_of_an_epoch_is_where_the_slow_way_finds_it(log: list[int], epoch: int) -> None:
    cache = EpochCache.rebuilt_from(headers(log))
    cache.check_invariants()
    assert cache.end_offset_for(LeaderEpoch(epoch), Offset(len(log))) == slow_end_of(log, epoch)


@given(log=logs, epoch=epochs)
def test_before_kip_279_only_an_epoch_that_is_there_has_an_end(log: list[int], epoch: int) -> None:
    cache = EpochCache.rebuilt_from(headers(log))
    answer = cache.end_offset_for(LeaderEpoch(epoch), Offset(len(log)), exact=True)
    assert answer == (slow_end_of(log, epoch) if epoch in log else UNKNOWN_EPOCH_END)


@given(log=logs)
def test_every_offset_has_the_epoch_that_wrote_it(log: list[int]) -> None:
    cache = EpochCache.rebuilt_from(headers(log))
    assert [cache.epoch_at(Offset(offset)) for offset in range(len(log))] == log


@given(log=logs, end=st.integers(0, 12))
def test_a_truncated_cache_is_the_cache_of_the_truncated_log(log: list[int], end: int) -> None:
    cache = EpochCache.rebuilt_from(headers(log))
    cache.truncate_to(Offset(end))
    assert cache.entries == EpochCache.rebuilt_from(headers(log[:end])).entries


@given(log=logs, start=st.integers(0, 12))
def test_a_new_start_changes_no_epoch_after_it(log: list[int], start: int) -> None:
    cache = EpochCache.rebuilt_from(headers(log))
    cache.advance_start_to(Offset(start))
    cache.check_invariants()
    assert all(entry.start_offset >= start for entry in cache.entries)
    later = range(start, len(log))
    assert [cache.epoch_at(Offset(offset)) for offset in later] == log[start:]


# Two logs.


@st.composite
def parted_logs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two logs with a common beginning.

    One leader writes an epoch: the last common one goes on in at most one of the logs, and every
    later one is in this log or in the other. So equal epochs at an offset mean equal records.
    """
    common = sorted(draw(st.lists(st.integers(0, 3), max_size=5)))
    later = range(common[-1] if common else 0, LAST_EPOCH + 1)
    owners = draw(st.lists(st.booleans(), min_size=len(later), max_size=len(later)))
    parted: list[list[int]] = []
    for side in (False, True):
        own = [epoch for epoch, owner in zip(later, owners, strict=True) if owner is side]
        tail = draw(st.lists(st.sampled_from(own), max_size=5)) if own else []
        parted.append(common + sorted(tail))
    return parted[0], parted[1]


def common_length(one: list[int], other: list[int]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    parts = (offset for offset, (left, right) in pairs if left != right)
    return next(parts, min(len(one), len(other)))


def replica_of(broker: BrokerId, log: list[int], empty_epoch: int | None) -> Replica:
    """A replica over such a log; it may have led once without writing anything."""
    cache = EpochCache.rebuilt_from(headers(log))
    if empty_epoch is not None:
        cache.assign(LeaderEpoch(empty_epoch), Offset(len(log)))
    return Replica(broker, LogState(Settings(), log_end_offset=Offset(len(log)), epochs=cache))


@given(
    pair=parted_logs(),
    leaders_epoch=st.none() | st.sampled_from((10, 12)),
    followers_epoch=st.none() | st.sampled_from((11, 13)),
)
def test_rounds_of_truncation_end_exactly_where_the_logs_diverge(
    pair: tuple[list[int], list[int]], leaders_epoch: int | None, followers_epoch: int | None
) -> None:
    theirs, ours = pair
    leader = replica_of(LEADER, theirs, leaders_epoch)
    follower = replica_of(FOLLOWER, ours, followers_epoch)
    state = PartitionState(BROKERS, BROKERS, LEADER, LeaderEpoch(30))
    leader.become_leader(state, 0)
    follower.become_follower(state)
    # Each round goes to an older epoch or drops an epoch without records; the last one is served.
    for _ in range(len(set(ours)) + 2):
        asked = follower.next_fetch()
        assert asked
        answer = leader.fetched(Fetch(FOLLOWER, *asked[1:4], BrokerEpoch(1)), 0)
        assert not answer.error
        if answer.diverging is None:
            break
        follower.diverged(answer.diverging)
        follower.check_invariants()
    assert answer.diverging is None, "the follower asks for ever"
    assert follower.log.log_end_offset == common_length(theirs, ours)
