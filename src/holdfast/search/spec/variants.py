"""The five variants: Kafka's rules for truncation and fencing over time, and the last one's fences.

Kip320.tla has four actions that compare the leader epoch; each replaces an action of Kip279.tla
that does not. If a fence is removed, the older action returns, and the search shows what the fence
prevents.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

from holdfast.search.spec import fencing, truncation
from holdfast.search.spec.actions import (
    Action,
    becomes_leader,
    controller_elects,
    controller_shrinks,
    leader_writes,
)

_SHARED: Final = (controller_elects, controller_shrinks, becomes_leader, leader_writes)


@dataclass(frozen=True, slots=True)
class Variant:
    rules: str
    """Its distinguishing rule, in a phrase."""
    actions: tuple[Action, ...]


def _variant(rules: str, truncating: tuple[Action, ...]) -> Variant:
    """A variant in which leaders accept followers by offset; only the truncation differs."""
    reached = fencing.by_offset
    fenced = (
        fencing.leader_shrinks(reached),
        fencing.leader_expands(reached, careful=False),
        fencing.leader_raises(reached),
        fencing.follower_fetches(reached),
    )
    return Variant(rules, (*_SHARED, *fenced, *truncating))


FENCED: Final = "kip320"
"""The variant whose fences can be removed."""


class Fence(NamedTuple):
    """One rule of Kip320.tla: its action, and the action of Kip279.tla that it replaced."""

    rule: str
    fenced: Action
    before: Action


FENCES: Final = {
    "fence-fetch": Fence(
        "a follower fetches from a leader of its own epoch only",
        fencing.follower_fetches(fencing.by_leader_epoch),
        fencing.follower_fetches(fencing.by_offset),
    ),
    "fence-truncation": Fence(
        "only a leader of the new epoch says where a follower truncates",
        truncation.becomes_follower_fenced,
        truncation.becomes_follower(truncation.after_last_match, twice_if_empty=True),
    ),
    "fence-high-watermark": Fence(
        "only followers in the leader's epoch raise its high watermark",
        fencing.leader_raises(fencing.by_leader_epoch),
        fencing.leader_raises(fencing.by_offset),
    ),
    "fence-isr-expand": Fence(
        "a follower joins the ISR in the leader's epoch, with all of earlier epochs",
        fencing.leader_expands(fencing.by_leader_epoch, careful=True),
        fencing.leader_expands(fencing.by_offset, careful=False),
    ),
}


def _kip320(without: Collection[str]) -> Variant:
    actions = [one.before if name in without else one.fenced for name, one in FENCES.items()]
    return Variant(
        "a leader serves and counts a follower only if both are in the same leader epoch",
        (*_SHARED, fencing.leader_shrinks_fenced, *actions),
    )


VARIANTS: Final = {
    "hw": _variant(
        "a new follower truncates its log to its high watermark",
        (truncation.becomes_follower(truncation.at_high_watermark),),
    ),
    "kip101": _variant(
        "a new follower asks once where its last epoch ends",
        (truncation.becomes_follower(truncation.where_epoch_ends),),
    ),
    "kip279": _variant(
        "a new follower truncates after the last record that both logs hold",
        (truncation.becomes_follower(truncation.after_last_match, twice_if_empty=True),),
    ),
    "kip320-first": Variant(
        "the leader compares the epochs of records, and a follower truncates when it must",
        (
            *_SHARED,
            fencing.leader_shrinks(fencing.by_record_epoch),
            fencing.leader_expands(fencing.by_record_epoch, careful=True),
            fencing.leader_raises(fencing.by_record_epoch),
            fencing.follower_fetches(fencing.by_record_epoch),
            truncation.becomes_follower_untruncated,
            truncation.follower_truncates,
        ),
    ),
    "kip320": _kip320(()),
}


def variant_of(name: str, without: Collection[str] = ()) -> Variant:
    """A variant, without some of its fences if given; ValueError if it does not have them."""
    if not without:
        return VARIANTS[name]
    if name != FENCED:
        raise ValueError(f"{name} has no fences; {FENCED} has {', '.join(FENCES)}")
    unknown = [one for one in without if one not in FENCES]
    if unknown:
        raise ValueError(f"no fence is called {unknown[0]}; there are {', '.join(FENCES)}")
    return _kip320(without)
