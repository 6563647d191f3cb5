"""The states of a group, and the moves between them. Every other move is our own bug."""

from __future__ import annotations

from enum import Enum


class GroupState(Enum):
    """By the names that DescribeGroups shows."""

    EMPTY = "Empty"
    """No members; offsets may be left."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members have to join again."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """A generation has begun; its leader has yet to assign the partitions."""
    STABLE = "Stable"
    """Every member has, or may fetch, its assignment."""
    DEAD = "Dead"
    """The tombstones are being written; after that there is no such group."""


MOVES: dict[GroupState, tuple[GroupState, ...]] = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE, GroupState.DEAD),
    GroupState.PREPARING_REBALANCE: (GroupState.COMPLETING_REBALANCE, GroupState.EMPTY),
    GroupState.COMPLETING_REBALANCE: (GroupState.STABLE, GroupState.PREPARING_REBALANCE),
    GroupState.STABLE: (GroupState.PREPARING_REBALANCE,),
    # Only when the tombstones could not be written.
    GroupState.DEAD: (GroupState.EMPTY,),
}
