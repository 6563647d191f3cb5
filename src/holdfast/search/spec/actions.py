"""Actions, and those that all variants share.

An action works on many states at the same time. For each way to act it returns which states allow
it and which fields change. If the specification's text allows a step twice for the same successor
(two reasons that are both true), TLC counts it twice as generated; `again` marks these states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from holdfast.search.spec.layout import Column, Field, Flags
from holdfast.search.spec.view import View, has, without

Changes = tuple[tuple[Field, Column | int], ...]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to act, in many states."""

    action: str
    who: tuple[int, ...]
    """The acting replica, then the other one, if any."""
    allowed: Flags
    changes: Changes
    again: Flags | None = None


Action = Callable[[View], Iterator[Way]]


def controller_elects(view: View) -> Iterator[Way]:
    """The controller elects any member of the ISR that does not lead."""
    for epoch in range(view.bounds.epochs):
        now = view.next_epoch == epoch
        for replica in range(view.bounds.replicas):
            allowed = now & has(view.agreed_isr, replica) & (view.agreed_leader != replica + 1)
            changes = _request(view, epoch, replica + 1, view.agreed_isr)
            yield Way("controller-elects", (replica,), allowed, changes)


def controller_shrinks(view: View) -> Iterator[Way]:
    """The controller removes any member from the ISR. A leader loses its leadership, but the last
    member stays in the ISR.
    """
    for replica in range(view.bounds.replicas):
        leads = view.agreed_leader == replica + 1
        alone = leads & (view.agreed_isr == 1 << replica)
        smaller = without(view.agreed_isr, replica, view.bounds.replicas)
        isr = np.where(alone, view.agreed_isr, smaller)
        leader = np.where(leads, 0, view.agreed_leader)
        member = leads | has(view.agreed_isr, replica)
        for epoch in range(view.bounds.epochs):
            changes = _request(view, epoch, leader, isr)
            yield Way(
                "controller-shrinks", (replica,), member & (view.next_epoch == epoch), changes
            )


def _request(view: View, epoch: int, leader: Column | int, isr: Column) -> Changes:
    """A LeaderAndIsr request for a new epoch: valid immediately, delivered at any time."""
    layout = view.layout
    return (
        (layout.request_leader[epoch], leader),
        (layout.request_isr[epoch], isr),
        (layout.agreed_isr, isr),
        (layout.next_epoch, epoch + 1),
    )


def becomes_leader(view: View) -> Iterator[Way]:
    """A replica receives a request of a newer epoch that names it."""
    for replica in range(view.bounds.replicas):
        for epoch in range(view.bounds.epochs):
            named = view.request_leader[epoch] == replica + 1
            allowed = named & (view.epoch[replica] <= epoch)
            yield Way("becomes-leader", (replica,), allowed, adopt_epoch(view, replica, epoch))


def leader_writes(view: View) -> Iterator[Way]:
    """A replica that presumes leadership appends a new record."""
    layout, bounds = view.layout, view.bounds
    record = view.next_record * bounds.epochs
    for replica in range(bounds.replicas):
        may = view.presumes[replica] & (view.next_record < bounds.records)
        for offset in range(bounds.log_size):
            changes = (
                (layout.log[replica][offset], record + view.epoch[replica]),
                (layout.next_record, view.next_record + 1),
            )
            yield Way("leader-writes", (replica,), may & (view.end[replica] == offset), changes)


def shrink(view: View, pair: tuple[int, int], allowed: Flags, again: Flags | None = None) -> Way:
    """The true leader removes a follower from its ISR and from the controller's."""
    leader, follower = pair
    isr = view.isr[leader]
    may = view.true_leader(leader) & has(isr, follower) & allowed
    smaller = without(isr, follower, view.bounds.replicas)
    changes = ((view.layout.isr[leader], smaller), (view.layout.agreed_isr, smaller))
    return Way("leader-shrinks", pair, may, changes, again)


def expand(view: View, pair: tuple[int, int], allowed: Flags) -> Way:
    """The true leader adds a follower to its ISR and to the controller's."""
    leader, follower = pair
    isr = view.isr[leader]
    may = view.true_leader(leader) & ~has(isr, follower) & allowed
    larger = isr | (1 << follower)
    changes = ((view.layout.isr[leader], larger), (view.layout.agreed_isr, larger))
    return Way("leader-expands", pair, may, changes)


def fetch(view: View, pair: tuple[int, int], allowed: Flags) -> Iterator[Way]:
    """A follower copies the next record, and the high watermark up to its own log end."""
    follower, leader = pair
    layout, end = view.layout, view.end[follower]
    may = (
        allowed & view.presumes[leader] & view.follows(follower, leader) & (end < view.end[leader])
    )
    high_watermark = np.minimum(view.high_watermark[leader], end + 1)
    for offset in range(view.bounds.log_size):
        changes = (
            (layout.log[follower][offset], view.log[leader][offset]),
            (layout.high_watermark[follower], high_watermark),
        )
        yield Way("follower-fetches", pair, may & (end == offset), changes)


def raise_high_watermark(view: View, leader: int, counted: list[Flags]) -> Way:
    """Raise it by one if all members of the leader's ISR have the record, as `counted` says."""
    current = view.high_watermark[leader]
    allowed = view.presumes[leader] & (current < view.end[leader])
    for replica, counts in enumerate(counted):
        allowed = allowed & (counts | ~has(view.isr[leader], replica))
    changes = ((view.layout.high_watermark[leader], current + 1),)
    return Way("leader-raises", (leader,), allowed, changes)


def truncate_to(view: View, replica: int, offset: Column) -> Changes:
    """Truncate a log to an offset, and the high watermark with it."""
    layout = view.layout
    slots = enumerate(view.log[replica])
    kept = tuple((layout.log[replica][at], slot * (offset > at)) for at, slot in slots)
    high_watermark = np.minimum(view.high_watermark[replica], offset)
    return (*kept, (layout.high_watermark[replica], high_watermark))


def adopt_epoch(view: View, replica: int, epoch: int) -> Changes:
    """Adopt the epoch of a request, and with it the leader and the ISR."""
    layout = view.layout
    return ((layout.epoch[replica], epoch + 1), (layout.isr[replica], view.request_isr[epoch]))
