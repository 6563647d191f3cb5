"""A component's state as one hashable value: components with equal values behave alike.

It omits what never affects behaviour again (request counters, a dead process's memory) and what all
components share (rules, and settings but min.insync.replicas). It has every other field.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Any

from holdfast.lab.world.broker import SimBroker
from holdfast.lab.world.controller import SimController
from holdfast.lab.world.store import SimStore

_SHARED = {"world", "rules", "settings", "guards", "log", "counted", "metadata", "name"}
_COUNTERS = {"fetches"}
SKIPPED = frozenset(_SHARED | _COUNTERS)
_IN_ORDER = {"_asked"}
"""Dictionaries whose order matters to the core."""
_ATOMS = (int, str, type(None), Enum)


def frozen(value: Any) -> Any:
    """Any part of a component, as nested tuples."""
    if isinstance(value, _ATOMS):
        return value
    if isinstance(value, tuple):
        # Named tuples are deeply immutable.
        return value if hasattr(value, "_fields") else tuple(frozen(one) for one in value)
    if isinstance(value, list | deque):
        return tuple(frozen(one) for one in value)
    if isinstance(value, dict):
        return tuple(sorted((key, frozen(one)) for key, one in value.items()))
    return (type(value).__name__, *_fields(value))


def _fields(value: Any) -> list[Any]:
    names = getattr(type(value), "__slots__", None) or sorted(vars(value))
    found: list[Any] = []
    for name in names:
        if name in SKIPPED:
            continue
        field = getattr(value, name)
        if name in _IN_ORDER:
            found.append(tuple((key, tuple(one.items())) for key, one in field.items()))
        else:
            found.append(frozen(field))
    return found


def frozen_broker(broker: SimBroker) -> Any:
    """A broker; of a dead one only what its next start reads."""
    disk = frozen(broker.disk)
    if not broker.alive:
        return ("down", broker.id, disk, broker.incarnations, broker._epochs)
    replica = broker.replica
    return (
        broker.id,
        disk,
        broker.incarnations,
        frozen(broker.incarnation),
        frozen(replica.role),
        replica.leader_epoch,
        frozen(replica.log),
        broker.outstanding,
        frozen(broker.parked),
        frozen(broker.newest_fetch),
        tuple(broker.candidates),
        replica.log.settings.min_insync_replicas,
    )


def frozen_control(controller: SimController, store: SimStore) -> Any:
    """The controller and the store, which the search steps as one component."""
    return (
        frozen(controller.core),
        controller.alive,
        frozen(controller.unconfirmed),
        frozen(store),
        controller.awaits_settings,
        store.settings.min_insync_replicas,
        tuple(one.min_insync_replicas for one in controller.core.settings.values()),
    )
