"""Where a new follower cuts its log: the question that KIP-101 and KIP-279 answered better."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from holdfast.search.spec.actions import Action, Way, truncate_to, adopt_epoch
from holdfast.search.spec.layout import Column, Flags
from holdfast.search.spec.view import View, pick

Point = Callable[[View, int, int], Column]
"""The offset at which a follower (second) cuts when it follows a leader (first)."""


def at_high_watermark(view: View, leader: int, follower: int) -> Column:
    """Before KIP-101: whatever the leader has."""
    del leader
    return view.high_watermark[follower]


def where_epoch_ends(view: View, leader: int, follower: int) -> Column:
    """KIP-101: where the follower's last epoch ends in the leader's log, if the leader knows it.

    A leader that knows of nothing later cannot tell, and the high watermark decides as before.
    """
    last = pick(view.record_epoch[follower], view.end[follower], first=1)
    leaders_last = pick(view.record_epoch[leader], view.end[leader], first=1)
    offset = view.high_watermark[follower]
    for number, epoch in reversed(list(enumerate(view.record_epoch[leader]))):
        offset = np.where(epoch > last, number, offset).astype(offset.dtype)
    offset = np.where(leaders_last == last, view.end[leader], offset)
    return np.where(view.end[follower] == 0, 0, offset)


def after_last_match(view: View, leader: int, follower: int) -> Column:
    """KIP-279: behind the last record that both logs hold at the same offset."""
    offset = np.zeros_like(view.end[follower])
    for number, (ours, theirs) in enumerate(zip(view.log[follower], view.log[leader], strict=True)):
        offset[(ours == theirs) & (ours != 0)] = number + 1
    return offset


def becomes_follower(point: Point, *, twice_if_empty: bool = False) -> Action:
    """A replica receives a request of a newer epoch that names another one, and cuts its log.

    The cut looks at the other one's log whatever that one believes. An offset beyond the follower's
    own end makes no sense to it, and the step is not taken.
    """

    def action(view: View) -> Iterator[Way]:
        for leader, follower in view.bounds.pairs():
            offset = point(view, leader, follower)
            changes = truncate_to(view, follower, offset)
            again = view.end[follower] == 0 if twice_if_empty else None
            for epoch in range(view.bounds.epochs):
                allowed = _may_follow(view, epoch, leader, follower) & (
                    offset <= view.end[follower]
                )
                all_changes = (*adopt_epoch(view, follower, epoch), *changes)
                yield Way("becomes-follower", (follower, leader), allowed, all_changes, again)

    return action


def becomes_follower_untruncated(view: View) -> Iterator[Way]:
    """KIP-320, first attempt: take over the epoch; whether to cut is seen when fetching."""
    for leader, follower in view.bounds.pairs():
        for epoch in range(view.bounds.epochs):
            allowed = _may_follow(view, epoch, leader, follower)
            changes = adopt_epoch(view, follower, epoch)
            yield Way("becomes-follower", (follower, leader), allowed, changes)


def becomes_follower_fenced(view: View) -> Iterator[Way]:
    """KIP-320: only a leader that is in the same epoch is asked where to cut."""
    for leader, follower in view.bounds.pairs():
        changes = truncate_to(view, follower, after_last_match(view, leader, follower))
        for epoch in range(view.bounds.epochs):
            in_epoch = view.presumes[leader] & (view.epoch[leader] == epoch + 1)
            allowed = _may_follow(view, epoch, leader, follower) & in_epoch
            all_changes = (*adopt_epoch(view, follower, epoch), *changes)
            yield Way("becomes-follower", (follower, leader), allowed, all_changes)


def follower_truncates(view: View) -> Iterator[Way]:
    """KIP-320, first attempt: at any time, if the log is too long or its last epoch is another."""
    for leader, follower in view.bounds.pairs():
        end = view.end[follower]
        ours = pick(view.record_epoch[follower], end, first=1)
        theirs = pick(view.record_epoch[leader], end, first=1)
        parted = (end > view.end[leader]) | (ours != theirs)
        allowed = view.presumes[leader] & view.follows(follower, leader) & parted
        changes = truncate_to(view, follower, after_last_match(view, leader, follower))
        yield Way("follower-truncates", (follower, leader), allowed, changes)


def _may_follow(view: View, epoch: int, leader: int, follower: int) -> Flags:
    allowed: Flags = (view.request_leader[epoch] == leader + 1) & (view.epoch[follower] <= epoch)
    return allowed
