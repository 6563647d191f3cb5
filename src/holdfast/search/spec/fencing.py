"""Fencing: when a leader accepts a follower's offset for a fetch, the high watermark, the ISR."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.search.spec.actions import (
    Action,
    Way,
    expand,
    fetch,
    raise_high_watermark,
    shrink,
)
from holdfast.search.spec.layout import Column, Flags
from holdfast.search.spec.view import View, pick

Reached = Callable[[View, int, int, Column], Flags]
"""Whether the leader (first) may assume that the follower (second) has everything up to an offset.
"""


def by_offset(view: View, leader: int, follower: int, offset: Column) -> Flags:
    """Before KIP-320: the follower follows this leader, and its log is long enough."""
    reached: Flags = view.follows(follower, leader) & (view.end[follower] >= offset)
    return reached


def by_record_epoch(view: View, leader: int, follower: int, offset: Column) -> Flags:
    """KIP-320, first attempt: both logs must also have the same epoch before the offset."""
    ours = pick(view.record_epoch[leader], offset, first=1)
    theirs = pick(view.record_epoch[follower], offset, first=1)
    # Where an action is possible, the offset is not beyond the leader's end, so a follower that
    # has no record there differs from the leader.
    reached: Flags = view.presumes[leader] & view.follows(follower, leader) & (ours == theirs)
    return reached


def by_leader_epoch(view: View, leader: int, follower: int, offset: Column) -> Flags:
    """KIP-320: the follower is in the leader's own epoch, and its log is long enough."""
    reached: Flags = _in_epoch(view, leader, follower) & (view.end[follower] >= offset)
    return reached


def _in_epoch(view: View, leader: int, follower: int) -> Flags:
    same: Flags = view.epoch[follower] == view.epoch[leader]
    return view.presumes[leader] & view.follows(follower, leader) & same


def _commits_in_own_epoch(view: View, leader: int) -> Flags:
    """KIP-320, rule 4: the leader's high watermark has reached its own epoch.

    A new leader's high watermark may trail its predecessor's, so a follower that has reached it may
    still lack committed records.
    """
    next_epoch = pick(view.record_epoch[leader], view.high_watermark[leader])
    all_committed = view.high_watermark[leader] == view.end[leader]
    reached: Flags = all_committed | (next_epoch == view.epoch[leader])
    return reached


def leader_shrinks(reached: Reached) -> Action:
    """A follower that has not reached the leader's end leaves the ISR."""

    def action(view: View) -> Iterator[Way]:
        for leader, follower in view.bounds.pairs():
            lags = ~reached(view, leader, follower, view.end[leader])
            yield shrink(view, (leader, follower), lags)

    return action


def leader_shrinks_fenced(view: View) -> Iterator[Way]:
    """The same for KIP-320, where another epoch and a short log are separate reasons."""
    for leader, follower in view.bounds.pairs():
        elsewhere = ~_in_epoch(view, leader, follower)
        short = view.end[follower] < view.end[leader]
        yield shrink(view, (leader, follower), elsewhere | short, again=elsewhere & short)


def leader_expands(reached: Reached, *, careful: bool) -> Action:
    """A follower that has reached the high watermark joins the ISR; `careful` is rule 4."""

    def action(view: View) -> Iterator[Way]:
        for leader, follower in view.bounds.pairs():
            allowed = reached(view, leader, follower, view.high_watermark[leader])
            if careful:
                allowed = allowed & _commits_in_own_epoch(view, leader)
            yield expand(view, (leader, follower), allowed)

    return action


def leader_raises(reached: Reached) -> Action:
    """The high watermark rises by one record that all members of the leader's ISR have."""

    def action(view: View) -> Iterator[Way]:
        for leader in range(view.bounds.replicas):
            offset = view.high_watermark[leader] + 1
            replicas = range(view.bounds.replicas)
            counted = [reached(view, leader, replica, offset) for replica in replicas]
            yield raise_high_watermark(view, leader, counted)

    return action


def follower_fetches(reached: Reached) -> Action:
    """A follower copies the record at its end if the leader accepts that end."""

    def action(view: View) -> Iterator[Way]:
        for leader, follower in view.bounds.pairs():
            allowed = reached(view, leader, follower, view.end[follower])
            yield from fetch(view, (follower, leader), allowed)

    return action
