"""Compares the commit rules and the waiting producers with a slow, simple implementation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import CommitRule, Rules, Settings
from holdfast.core.replica.in_sync_set import InSyncSet
from holdfast.core.replica.waiting_requests import WaitingAck, WaitingAcks
from holdfast.model import BrokerEpoch, BrokerId, Offset, PartitionState

ends = st.integers(-1, 12)
"""Where a follower is; -1: it has not fetched."""


def insync(own: int, others: list[int], isr: list[bool], rule: CommitRule) -> InSyncSet:
    """A leader with these followers, of which some are in the ISR."""
    replicas = tuple(BrokerId(number) for number in range(len(others) + 1))
    members = (replicas[0], *(one for one, is_in in zip(replicas[1:], isr, strict=True) if is_in))
    state = PartitionState(replicas, members, replicas[0])
    known = InSyncSet(replicas[0], Settings(), Rules(commit_rule=rule), state, 0)
    for broker, end in zip(replicas[1:], others, strict=True):
        if end >= 0:
            known.followers[broker].fetched(Offset(end), BrokerEpoch(1), Offset(own), 0)
    return known


positions = st.lists(st.tuples(ends, st.booleans()), max_size=5)


@given(own=st.integers(0, 12), followers=positions)
def test_the_isr_commits_what_every_member_holds(
    own: int, followers: list[tuple[int, bool]]
) -> None:
    others, isr = [end for end, _ in followers], [is_in for _, is_in in followers]
    known = insync(own, others, isr, CommitRule.ISR)
    members = [own, *(end for end, is_in in followers if is_in)]
    held = [end for end in range(-1, own + 1) if all(one >= end for one in members)]
    assert known.committed_end(Offset(own)) == max(held)


@given(own=st.integers(0, 12), followers=positions)
def test_a_majority_commits_what_more_than_half_hold(
    own: int, followers: list[tuple[int, bool]]
) -> None:
    everyone = [own, *(end for end, _ in followers)]
    known = insync(own, everyone[1:], [True] * len(followers), CommitRule.MAJORITY)
    held = [end for end in range(-1, 13) if sum(one >= end for one in everyone) > len(everyone) / 2]
    assert known.committed_end(Offset(own)) == max(held)


# Waiting producers.


waits = st.builds(
    WaitingAck,
    st.integers(1, 9).map(Offset),
    st.just(Offset(0)),
    st.integers(0, 20),
    st.uuids(),
)
steps = st.one_of(
    st.tuples(st.just("add"), waits),
    st.tuples(st.just("commit"), st.integers(0, 10)),
    st.tuples(st.just("expire"), st.integers(0, 20)),
)


@given(script=st.lists(steps, max_size=25))
def test_producers_are_answered_by_offset_and_among_equals_in_the_order_they_came(
    script: list[tuple[str, WaitingAck | int]],
) -> None:
    queue, model = WaitingAcks(), list[WaitingAck]()
    for kind, argument in script:
        if isinstance(argument, WaitingAck):
            queue.add(argument)
            model.append(argument)
            model.sort(key=lambda one: one.end_offset)
            continue
        if kind == "commit":
            taken = list(queue.take_up_to(Offset(argument)))
            expected = [one for one in model if one.end_offset <= argument]
        else:
            taken = queue.take_expired(argument)
            expected = [one for one in model if one.deadline_ms <= argument]
        assert taken == expected
        model = [one for one in model if one not in expected]
        assert len(queue) == len(model)
    assert queue.take_all() == model
