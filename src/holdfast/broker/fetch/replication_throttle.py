"""Limits the rate of replication, so that reassignments do not starve clients.

A token bucket: it fills at the configured rate, holds at most one second of it, and one answer may
overdraw it; then it has to fill again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from holdfast.broker.clock import Clock
from holdfast.core import Leader
from holdfast.model import BrokerId

if TYPE_CHECKING:
    from holdfast.broker.replication.partition import Partition

LOOK_AGAIN_S: Final = 1.0
"""The longest wait before the next check: the rate may be raised, or the throttle removed."""


class Quota:
    """Bytes per second, for all throttled replicas of a broker together."""

    def __init__(self, clock: Clock, rate: Callable[[], int]) -> None:
        self._clock = clock
        self._rate = rate
        """Called each time: it can change while the broker runs."""
        self._level = 0.0
        self._filled_ms = clock.now_ms()

    def wait_s(self) -> float:
        """How long to wait before the next check; 0 if more may be copied now."""
        rate = self._rate()
        now_ms = self._clock.now_ms()
        gained = rate * (now_ms - self._filled_ms) / 1000
        self._level = min(float(rate), self._level + gained)
        self._filled_ms = now_ms
        if self._level >= 0:
            return 0.0
        return min(-self._level / rate, LOOK_AGAIN_S) if rate else LOOK_AGAIN_S

    def spend(self, size: int) -> None:
        """Count copied bytes."""
        self._level -= size


def is_throttled(partition: Partition, follower: BrokerId, *, at_leader: bool) -> bool:
    """Whether copying to this follower is throttled: only out-of-sync replicas are.

    Each side looks up its own broker in its own list, as in Kafka.
    """
    settings, replica = partition.settings, partition.replica
    throttled = settings.leader_throttled if at_leader else settings.follower_throttled
    if not throttled.entries or not throttled.has(partition.name.partition, replica.broker):
        return False
    role, state = replica.role, partition.state
    isr = role.insync.isr if isinstance(role, Leader) else state.isr if state else ()
    return follower not in isr
