"""Consumer groups on this broker: drives the core's `Groups`, one for each offsets partition led.

`GroupCoordinator` is what handlers ask; a `Reign` is one offsets partition for as long as we lead
it in one leader epoch. All decisions are the core's.
"""

from holdfast.broker.groups.coordinator import GroupCoordinator, Waiter

__all__ = ["GroupCoordinator", "Waiter"]
