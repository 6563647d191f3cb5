"""Coordinators: what the partitions of an internal topic store, one shard for each that we lead.

`CoordinatorShards` is the coordinator of one internal topic, `CoordinatorShard` one of its
partitions in one leader epoch. A `CoordinatorKind` says which topic it is, and how its state and
its records look. The core's state machine makes all decisions (`core/coordinator.py`).
"""

from holdfast.broker.coordinator.shard import CoordinatorKind, CoordinatorParts
from holdfast.broker.coordinator.shards import CoordinatorShards

__all__ = ["CoordinatorKind", "CoordinatorParts", "CoordinatorShards"]
