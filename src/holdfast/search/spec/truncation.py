"""Truncation points of a new follower, which KIP-101 and KIP-279 improved."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from holdfast.search.spec.actions import Action, Way, adopt_epoch, truncate_to
from holdfast.search.spec.layout import Column, Flags
from holdfast.search.spec.view import View, pick

Point = Callable[[View, int, int], Column]
"""The offset to which a follower (second) truncates when it follows a leader (first)."""


def at_high_watermark(view: View, leader: int, follower: int) -> Column:
    """Before KIP-101: the follower's high watermark, whatever the leader's log has."""
    del leader
    return view.high_watermark[follower]


def where_epoch_ends(view: View, leader: int, follower: int) -> Column:
    """KIP-101: the end of the follower's last epoch in the leader's log.

    If the leader's last epoch is older, the high watermark decides as before.
    """
    last = pick(view.record_epoch[follower], view.end[follower], first=1)
    leaders_last = pick(view.record_epoch[leader], view.end[leader], first=1)
    offset = view.high_watermark[follower]
    for number, epoch in reversed(list(enumerate(view.record_epoch[leader]))):
        offset = np.where(epoch > last, number, offset).astype(offset.dtype)
    offset = np.where(leaders_last == last, view.end[leader], offset)
    return np.where(view.end[follower] == 0, 0, offset)


def after_last_match(view: View, leader: int, follower: int) -> Column:
    """KIP-279: after the last record that both logs hold at the same offset."""
    offset = np.zeros_like(view.end[follower])
    for number, (ours, theirs) in enumerate(zip(view.log[follower], view.log[leader], strict=True)):
        offset[(ours == theirs) & (ours != 0)] = number + 1
    return offset


def becomes_follower(point: Point, *, twice_if_empty: bool = False) -> Action:
    """A replica receives a request of a newer epoch with another leader, and truncates its log.

    The truncation point comes from the other replica's log, in whatever epoch that replica is. An
    offset beyond the follower's own end is not a valid truncation point: the step is not allowed.
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
    """KIP-320, first attempt: adopt the epoch; truncation is decided when fetching."""
    for leader, follower in view.bounds.pairs():
        for epoch in range(view.bounds.epochs):
            allowed = _may_follow(view, epoch, leader, follower)
            changes = adopt_epoch(view, follower, epoch)
            yield Way("becomes-follower", (follower, leader), allowed, changes)


def becomes_follower_fenced(view: View) -> Iterator[Way]:
    """KIP-320: the truncation point comes only from a leader in the same epoch."""
    for leader, follower in view.bounds.pairs():
        changes = truncate_to(view, follower, after_last_match(view, leader, follower))
        for epoch in range(view.bounds.epochs):
            in_epoch = view.presumes[leader] & (view.epoch[leader] == epoch + 1)
            allowed = _may_follow(view, epoch, leader, follower) & in_epoch
            all_changes = (*adopt_epoch(view, follower, epoch), *changes)
            yield Way("becomes-follower", (follower, leader), allowed, all_changes)


def follower_truncates(view: View) -> Iterator[Way]:
    """KIP-320, first attempt: at any time, if the log is too long or its last epoch differs."""
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
