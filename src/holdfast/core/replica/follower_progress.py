"""The progress of each follower: which one lags, and which one may join the ISR.

A follower is *caught up* when it has reached the leader's end within replica.lag.time.max.ms; it
is *in sync* when it is a member of the committed ISR. The leader measures the first; the controller
decides the second.
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

from holdfast.core.rules import Guards, IsrLagRule, Settings
from holdfast.model import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Offset, ReplicaBroker

UNKNOWN_END = Offset(-1)
"""A follower that has not fetched in this leader epoch. It counts as having no records."""


class FollowerProgress:
    """One follower, as its leader tracks it."""

    __slots__ = (
        "broker",
        "broker_epoch",
        "joined_ms",
        "last_caught_up_ms",
        "last_fetch_end",
        "last_fetch_ms",
        "log_end_offset",
    )

    def __init__(self, broker: BrokerId, last_caught_up_ms: int) -> None:
        self.broker = broker
        self.broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
        self.log_end_offset: Offset = UNKNOWN_END
        self.last_caught_up_ms = last_caught_up_ms
        self.last_fetch_ms = last_caught_up_ms
        self.last_fetch_end: Offset = Offset(0)
        """The leader's end when this follower last fetched."""
        self.joined_ms = -1
        """When it sent the fetch with which it joined the ISR. A joiner has reached the high
        watermark, and that may be far below the end: it does not move below the minimum (KIP-966).
        Without this time a joiner would leave the ISR immediately, join again, and so on."""

    def joined(self) -> None:
        """It is a member from now on."""
        self.joined_ms = self.last_fetch_ms

    def fetched(
        self, fetch_offset: Offset, broker_epoch: BrokerEpoch, leader_end: Offset, now_ms: int
    ) -> None:
        """Record a fetch that passed the epoch checks."""
        if fetch_offset >= leader_end:
            self.last_caught_up_ms = now_ms
        elif fetch_offset >= self.last_fetch_end and self.last_fetch_ms > self.last_caught_up_ms:
            # It has reached the end that our log had at its last fetch: it was caught up then.
            self.last_caught_up_ms = self.last_fetch_ms
        self.log_end_offset = fetch_offset
        self.broker_epoch = broker_epoch
        self.last_fetch_end = leader_end
        self.last_fetch_ms = now_ms

    def lags(self, leader_end: Offset, settings: Settings, rule: IsrLagRule, now_ms: int) -> bool:
        """Whether this member must leave the ISR."""
        limit_ms = settings.replica_lag_time_max_ms
        silent = now_ms - self.last_fetch_ms > limit_ms
        match rule:
            case IsrLagRule.TIME:
                behind = self.log_end_offset != leader_end
                return behind and now_ms - max(self.last_caught_up_ms, self.joined_ms) > limit_ms
            case IsrLagRule.SILENCE:
                return silent
            case IsrLagRule.MESSAGES:
                known = max(0, self.log_end_offset)
                return silent or leader_end - known > settings.replica_lag_max_messages
            case _:
                assert_never(rule)

    def may_join(self, high_watermark: Offset, epoch_start_offset: Offset, guards: Guards) -> bool:
        """Whether this follower can join the ISR without a loss of records."""
        end = self.log_end_offset
        if end == UNKNOWN_END:
            return not guards.joiner_position_known
        if guards.joiner_reached_high_watermark and end < high_watermark:
            return False
        # A new leader's high watermark may trail its predecessor's. A follower is safe to admit
        # only once it holds everything up to our first offset, whatever the watermark says.
        return not guards.joiner_reached_epoch_start or end >= epoch_start_offset

    def as_member(self) -> ReplicaBroker:
        """This follower as a member of a proposed ISR."""
        return ReplicaBroker(self.broker, self.broker_epoch)


class CommittedIsr(NamedTuple):
    """Nothing in flight: the leader and the store agree."""

    isr: tuple[BrokerId, ...]

    @property
    def maximal(self) -> tuple[BrokerId, ...]:
        """All replicas that could be elected from this ISR."""
        return self.isr


class PendingExpand(NamedTuple):
    """A proposed joiner. The store's ISR may have it already, so it counts (KIP-497)."""

    isr: tuple[BrokerId, ...]
    proposed: tuple[BrokerId, ...]

    @property
    def maximal(self) -> tuple[BrokerId, ...]:
        """The proposed set: it contains the committed one."""
        return self.proposed


class PendingShrink(NamedTuple):
    """Lagging members are proposed to leave. They count until the store confirms it."""

    isr: tuple[BrokerId, ...]
    proposed: tuple[BrokerId, ...]

    @property
    def maximal(self) -> tuple[BrokerId, ...]:
        """The committed set: it contains the proposed one."""
        return self.isr


IsrState = CommittedIsr | PendingExpand | PendingShrink
