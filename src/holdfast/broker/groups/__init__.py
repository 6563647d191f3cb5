"""Consumer groups on this broker. The core's `Groups` makes all decisions."""

from holdfast.broker.groups.coordinator import GroupCoordinator

__all__ = ["GroupCoordinator"]
