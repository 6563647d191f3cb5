"""The ISR on its leader: members, the proposal in flight, and the followers that are counted.

One proposal is in flight at a time. It ends when it is confirmed, refused, or replaced by a newer
partition state. A timeout does not end it, because the store may have accepted it already.
"""

from __future__ import annotations

from holdfast.core.replica.effects import ProposeIsr
from holdfast.core.replica.follower_progress import (
    CommittedIsr,
    FollowerProgress,
    IsrState,
    PendingExpand,
    PendingShrink,
)
from holdfast.core.rules import CommitRule, IsrExpand, IsrUpdate, Rules, Settings
from holdfast.model import (
    NO_BROKER_EPOCH,
    BrokerId,
    ErrorCode,
    LeaderEpoch,
    Offset,
    PartitionEpoch,
    PartitionState,
    ReplicaBroker,
)


class InSyncSet:
    """The followers of one leader in one leader epoch, and which of them are in sync."""

    __slots__ = (
        "broker",
        "counted",
        "enough",
        "expand_rested",
        "followers",
        "leader_epoch",
        "partition_epoch",
        "proposal",
        "rules",
        "settings",
        "state",
    )

    state: IsrState
    followers: dict[BrokerId, FollowerProgress]
    counted: list[FollowerProgress]
    """The followers that the high watermark waits for."""
    enough: bool
    """Whether acks=all may be acknowledged. The minimum is at most the number of replicas."""
    partition_epoch: PartitionEpoch
    proposal: ProposeIsr | None
    """The change in flight. The driver sends it again until it is answered."""
    expand_rested: bool
    """False from a refusal to the next tick: else each fetch of the joiner proposes it again."""

    def __init__(
        self,
        broker: BrokerId,
        settings: Settings,
        rules: Rules,
        state: PartitionState,
        now_ms: int,
    ) -> None:
        self.broker = broker
        self.settings = settings
        self.rules = rules
        self.leader_epoch: LeaderEpoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.state = CommittedIsr(state.isr)
        self.proposal = None
        self.expand_rested = True
        self.followers = {
            replica: FollowerProgress(replica, now_ms if replica in state.isr else -1)
            for replica in state.replicas
            if replica != broker
        }
        self._recount()

    def remember(self, before: InSyncSet) -> None:
        """Keep positions from our own last leader epoch, if a guard is off.

        That is unsafe: there may have been another leader in between, and a follower may have
        truncated its log to match it.
        """
        guards = self.rules.guards
        for broker, progress in before.followers.items():
            fenced = guards.forget_non_isr_followers
            if broker in self.state.isr:
                fenced = guards.fence_high_watermark
            if broker in self.followers and not fenced:
                self.followers[broker] = progress
        self._recount()

    @property
    def isr(self) -> tuple[BrokerId, ...]:
        """The committed ISR (or the proposed one, if updates are optimistic)."""
        return self.state.isr

    def committed_end(self, own_end: Offset) -> Offset:
        """The offset up to which all counted replicas hold the log."""
        if self.rules.commit_rule is CommitRule.MAJORITY:
            ends = sorted((own_end, *(one.log_end_offset for one in self.counted)), reverse=True)
            return ends[len(ends) // 2]
        for progress in self.counted:
            own_end = min(own_end, progress.log_end_offset)
        return own_end

    def _recount(self) -> None:
        counted = self.state.maximal if self.rules.guards.maximal_isr else self.state.isr
        minimum = min(self.settings.min_insync_replicas, len(self.followers) + 1)
        self.enough = len(self.state.isr) >= minimum
        if self.rules.commit_rule is CommitRule.MAJORITY:
            counted = tuple(self.followers)
            self.enough = True
        self.counted = [self.followers[one] for one in counted if one in self.followers]

    def still_caught_up(self, follower: BrokerId, at_ms: int) -> None:
        """The follower held everything until then."""
        progress = self.followers.get(follower)
        if progress is not None and at_ms > progress.last_caught_up_ms:
            progress.last_caught_up_ms = at_ms

    def settings_changed(self, settings: Settings) -> None:
        """min.insync.replicas or replica.lag.time.max.ms changed."""
        self.settings = settings
        self._recount()

    def may_expand(
        self, progress: FollowerProgress, high_watermark: Offset, epoch_start_offset: Offset
    ) -> bool:
        """Whether this follower could be proposed now."""
        return (
            self.proposal is None
            and self.expand_rested
            and self.rules.commit_rule is CommitRule.ISR
            and progress.broker not in self.state.maximal
            and progress.may_join(high_watermark, epoch_start_offset, self.rules.guards)
        )

    def expand(
        self, follower: BrokerId, high_watermark: Offset, epoch_start_offset: Offset
    ) -> ProposeIsr | None:
        """Propose a candidate if it still qualifies: there may have been appends meanwhile."""
        progress = self.followers.get(follower)
        if progress is None or follower in self.state.maximal or self.proposal:
            return None
        rechecked = self.rules.isr_expand is IsrExpand.RECHECKED
        if rechecked and not self.may_expand(progress, high_watermark, epoch_start_offset):
            return None
        return self._propose(PendingExpand(self.isr, (*self.isr, follower)))

    def shrink(self, log_end_offset: Offset, now_ms: int) -> ProposeIsr | None:
        """Propose the ISR without the lagging members."""
        if self.proposal or self.rules.commit_rule is CommitRule.MAJORITY:
            return None
        rule = self.rules.isr_lag_rule
        lagging = [
            broker
            for broker in self.isr
            if broker in self.followers
            and self.followers[broker].lags(log_end_offset, self.settings, rule, now_ms)
        ]
        if not lagging:
            return None
        kept = tuple(one for one in self.isr if one not in lagging)
        return self._propose(PendingShrink(self.isr, kept))

    def _propose(self, state: PendingExpand | PendingShrink) -> ProposeIsr:
        members = tuple(self._member(broker) for broker in state.proposed)
        self.proposal = ProposeIsr(members, self.leader_epoch, self.partition_epoch)
        optimistic = self.rules.isr_update is IsrUpdate.OPTIMISTIC
        self.state = CommittedIsr(state.proposed) if optimistic else state
        self._recount()
        return self.proposal

    def _member(self, broker: BrokerId) -> ReplicaBroker:
        progress = self.followers.get(broker)
        return progress.as_member() if progress else ReplicaBroker(broker, NO_BROKER_EPOCH)

    def answered(self, error: ErrorCode, state: PartitionState | None) -> bool:
        """The controller has answered the proposal; return whether the ISR may have changed.

        `state` is the partition state after it. A refusal has a new partition epoch, so that a
        delayed copy of the refused proposal has no effect.
        """
        if self.proposal is None:
            return False
        out_of_date = error is ErrorCode.INVALID_UPDATE_VERSION
        if out_of_date and not self.rules.guards.reread_partition_epoch:
            self.proposal = None
            self.state = CommittedIsr(self.isr)
            self._recount()
            return True
        if error is not ErrorCode.NONE and not out_of_date:
            self.expand_rested = False
        return state is not None and self.adopt(state)

    def adopt(self, state: PartitionState) -> bool:
        """Adopt a newer partition state of this leader epoch; return whether it was one."""
        if state.leader_epoch != self.leader_epoch or state.partition_epoch <= self.partition_epoch:
            return False
        self.partition_epoch = state.partition_epoch
        self.proposal = None
        known = self.followers
        self.followers = {
            replica: known.get(replica) or FollowerProgress(replica, -1)
            for replica in state.replicas
            if replica != self.broker
        }
        for replica, progress in self.followers.items():
            if replica in state.isr and replica not in self.isr:
                progress.joined()
        self.state = CommittedIsr(state.isr)
        self._recount()
        return True

    def check_invariants(self) -> None:
        """What must hold after every call."""
        assert self.broker in self.isr, "a leader is in its own ISR"
        known = dict.fromkeys((self.broker, *self.followers))
        assert all(one in known for one in self.state.maximal), "the ISR has only replicas"
        if self.rules.isr_update is IsrUpdate.COMMITTED:
            assert (self.proposal is None) == isinstance(self.state, CommittedIsr)
