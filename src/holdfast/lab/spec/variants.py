"""The five variants: how Kafka's rules for truncation and fencing grew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holdfast.lab.spec import fencing, truncation
from holdfast.lab.spec.actions import (
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
    """What sets it apart, in a phrase."""
    actions: tuple[Action, ...]


def _variant(rules: str, truncating: tuple[Action, ...]) -> Variant:
    """Leaders believe followers by their offsets; only the truncation differs."""
    reached = fencing.by_offset
    fenced = (
        fencing.leader_shrinks(reached),
        fencing.leader_expands(reached, careful=False),
        fencing.leader_raises(reached),
        fencing.follower_fetches(reached),
    )
    return Variant(rules, (*_SHARED, *fenced, *truncating))


VARIANTS: Final = {
    "hw": _variant(
        "a new follower cuts its log to its high watermark",
        (truncation.becomes_follower(truncation.at_high_watermark),),
    ),
    "kip101": _variant(
        "a new follower asks once where its last epoch ends",
        (truncation.becomes_follower(truncation.where_epoch_ends),),
    ),
    "kip279": _variant(
        "a new follower cuts behind the last record that both logs hold",
        (truncation.becomes_follower(truncation.after_last_match, twice_if_empty=True),),
    ),
    "kip320-first": Variant(
        "the leader compares the epochs of records, and a follower cuts when it must",
        (
            *_SHARED,
            fencing.leader_shrinks(fencing.by_record_epoch),
            fencing.leader_expands(fencing.by_record_epoch, careful=True),
            fencing.leader_raises(fencing.by_record_epoch),
            fencing.follower_fetches(fencing.by_record_epoch),
            truncation.becomes_follower_uncut,
            truncation.follower_truncates,
        ),
    ),
    "kip320": Variant(
        "whatever a leader does for a follower, both are in the same leader epoch",
        (
            *_SHARED,
            fencing.leader_shrinks_fenced,
            fencing.leader_expands(fencing.by_leader_epoch, careful=True),
            fencing.leader_raises(fencing.by_leader_epoch),
            fencing.follower_fetches(fencing.by_leader_epoch),
            truncation.becomes_follower_fenced,
        ),
    ),
}
