"""The follower role: the next fetch request, and what to do with its response.

A follower never copies before its log is known to be a prefix of its leader's. Every fetch names
the epoch of the record before it, so the response confirms the prefix or says where to truncate.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core.replica.effects import Effects
from holdfast.core.replica.log_state import LogState
from holdfast.core.replica.truncation import truncation_point
from holdfast.core.rules import Rules, Truncation
from holdfast.model import (
    NO_BROKER,
    NO_EPOCH,
    UNKNOWN_EPOCH_END,
    BrokerId,
    EpochEnd,
    LeaderEpoch,
    Offset,
)


class NextFetch(NamedTuple):
    """A follower's request. The driver keeps it and passes it back with the response."""

    leader: BrokerId
    fetch_offset: Offset
    last_fetched_epoch: LeaderEpoch
    current_leader_epoch: LeaderEpoch
    """As sent: -1 for a follower from before KIP-320."""
    sent_in_epoch: LeaderEpoch
    """The follower's own epoch when it sent the request; not part of the message."""


class Follower:
    """A follower's state in one leader epoch."""

    __slots__ = ("leader", "leader_epoch", "log", "log_checked", "rules")

    def __init__(
        self,
        leader: BrokerId,
        leader_epoch: LeaderEpoch,
        log: LogState,
        rules: Rules,
        *,
        log_checked: bool,
    ) -> None:
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.log = log
        self.rules = rules
        self.log_checked = log_checked
        """True: assume a prefix of the leader's log without a check (a guard is off)."""

    def next_fetch(self) -> NextFetch | None:
        """What to ask the leader now; None if there is no leader, or a flush must come first."""
        log = self.log
        # A fetch offset claims that we hold everything below it.
        unflushed = log.must_flush and self.rules.guards.flush_before_claim
        if self.leader == NO_BROKER or unflushed:
            return None
        epoch = self.leader_epoch
        if self.rules.truncation is Truncation.HIGH_WATERMARK:
            return NextFetch(self.leader, log.log_end_offset, NO_EPOCH, NO_EPOCH, epoch)
        last_epoch = NO_EPOCH if self.log_checked else log.epochs.latest_epoch
        return NextFetch(self.leader, log.log_end_offset, last_epoch, epoch, epoch)

    def accepts(self, asked: NextFetch) -> bool:
        """Whether a response to `asked` still fits our log as it is now.

        The offset alone is not enough: our log may have been truncated and grown back to the same
        length. The epoch of the record before it is: a leader writes each offset only once.
        """
        guards = self.rules.guards
        if guards.stale_answer_by_epoch and asked.sent_in_epoch != self.leader_epoch:
            return False
        if not guards.stale_answer_by_offset:
            return True
        same_end = asked.fetch_offset == self.log.log_end_offset
        last_epoch = asked.last_fetched_epoch
        return same_end and last_epoch in (NO_EPOCH, self.log.epochs.latest_epoch)

    def diverged(self, diverging: EpochEnd) -> Effects:
        """The leader reports where the logs diverge: truncate there, then fetch again."""
        if diverging == UNKNOWN_EPOCH_END:
            # The leader cannot answer, and would not the next time: take the rest for a prefix.
            self.log_checked = True
        truncate = self.log.truncate_to(truncation_point(self.log, diverging))
        return (truncate,) if truncate else ()

    def out_of_range(self, leader_start: Offset, leader_end: Offset) -> Effects:
        """The leader has no record at our end; these are its bounds now.

        If our log ends below its start, restart there. If it ends above its end, truncate to that.
        Otherwise its log grew meanwhile, and only an epoch check finds the prefix (KAFKA-2143).
        """
        log = self.log
        if log.log_end_offset < leader_start:
            return (log.restart_at(leader_start),)
        if log.log_end_offset > leader_end:
            truncate = log.truncate_to(leader_end)
            return (truncate,) if truncate else ()
        if self.rules.guards.out_of_range_diverges:
            return ()
        return (log.restart_at(leader_start),)
