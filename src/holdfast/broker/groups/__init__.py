"""Consumer groups on this broker: drives the core's `Groups`, one for each offsets partition led.

Handlers call `GroupCoordinator`. A `CoordinatorShard` is one offsets partition while we lead it in
one leader epoch. The core makes all decisions.
"""

from holdfast.broker.groups.coordinator import GroupCoordinator, Waiter

__all__ = ["GroupCoordinator", "Waiter"]
