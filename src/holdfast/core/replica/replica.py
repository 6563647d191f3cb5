"""One replica of one partition: a state machine with the roles leader, follower and offline.

The driver (a broker or the lab) calls one method per event and carries out the returned effects in
order. There is no clock, socket, disk or random generator here: time is the argument `now_ms`, and
the bytes stay with the driver.

A driver's duties, in short:

- produce: `append_as_leader`, write the bytes, `appended`.
- a follower's fetch: `fetched`; park it with `park_fetch` if there is nothing to send.
- being a follower: send `next_fetch`, and for its answer call `accepts_answer`, then one of
  `diverged`, `out_of_range` or (after writing) `append_as_follower`.
- `ConsiderExpand`: call `expand_isr` soon. `ProposeIsr`: send it until `isr_answer`.
- `Flush`: begin a flush, and call `flushed` when it has returned; a follower then has a
  `next_fetch` again. `TruncateTo`: truncate, and rebuild
  `log.producers` from what is left.
- regularly: `tick`.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.replica.effects import Effect, Effects, Flush, HighWatermarkMoved, WriteEpoch
from holdfast.core.replica.follower import Follower, NextFetch
from holdfast.core.replica.leader import AppendAnswer, Leader
from holdfast.core.replica.log_state import LogState
from holdfast.core.replica.roles import Offline, Role, check_move
from holdfast.core.replica.truncation import Fetch, FetchAnswer, divergence, refusal, served
from holdfast.core.rules import SAFE_RULES, FlushRule, ReadRule, Rules, Settings, Truncation
from holdfast.model import (
    NO_BROKER,
    NO_EPOCH,
    NO_OFFSET,
    UNKNOWN_EPOCH_END,
    BatchHeader,
    BrokerId,
    EpochEnd,
    ErrorCode,
    LeaderEpoch,
    Offset,
    PartitionState,
)


class Replica:
    """A replica of one partition."""

    __slots__ = ("broker", "leader_epoch", "log", "role", "rules")

    leader_epoch: LeaderEpoch
    """The newest leader epoch received from the controller. Never falls."""

    def __init__(self, broker: BrokerId, log: LogState, rules: Rules = SAFE_RULES) -> None:
        self.broker = broker
        self.log = log
        self.rules = rules
        self.role: Role = Offline("has no role yet", failed=False)
        self.leader_epoch = NO_EPOCH

    # Roles.

    @property
    def presumes_leadership(self) -> bool:
        """Whether this replica acts as leader. Another may have been elected since."""
        return type(self.role) is Leader

    @property
    def has_failed(self) -> bool:
        """Whether the log is broken and this replica is out until its process starts again."""
        return isinstance(self.role, Offline) and self.role.failed

    def _is_stale(self, state: PartitionState) -> bool:
        return self.rules.guards.higher_epoch_only and state.leader_epoch < self.leader_epoch

    def become_leader(self, state: PartitionState, now_ms: int) -> Effects:
        """We are the leader. An older epoch is ignored; the same one may have a new ISR."""
        assert state.leader == self.broker
        role = self.role
        if self.has_failed or self._is_stale(state):
            return ()
        if isinstance(role, Leader) and state.leader_epoch == role.leader_epoch:
            return role.adopt(state)
        before = role if isinstance(role, Leader) else None
        leader = Leader(self.broker, self.log, self.rules, state, now_ms, before)
        self._change_role(leader, state.leader_epoch)
        effects: list[Effect] = []
        # Recorded now, not with the first record: an epoch without records has an end too.
        if self.rules.guards.epoch_at_election and self.log.epochs.assign(
            state.leader_epoch, self.log.log_end_offset
        ):
            effects.append(WriteEpoch(self.log.epochs.entries[-1]))
        effects.extend(leader.begin())
        effects.extend(self._flush_if_held_up())
        return tuple(effects)

    def become_follower(self, state: PartitionState) -> Effects:
        """Another replica is the leader, or none."""
        assert state.leader != self.broker
        role = self.role
        if self.has_failed or self._is_stale(state):
            return ()
        if isinstance(role, Follower) and state.leader_epoch == role.leader_epoch:
            role.leader = state.leader
            return ()
        effects: list[Effect] = []
        if isinstance(role, Leader):
            effects.extend(role.renounce(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        same_leader = isinstance(role, Follower) and role.leader == state.leader
        unchecked = same_leader and not self.rules.guards.truncate_on_missed_epoch
        follower = Follower(
            state.leader, state.leader_epoch, self.log, self.rules, log_checked=unchecked
        )
        self._change_role(follower, state.leader_epoch)
        if self.rules.truncation is Truncation.HIGH_WATERMARK and not unchecked:
            truncate = self.log.truncate_to(self.log.high_watermark)
            if truncate:
                effects.append(truncate)
        effects.extend(self._flush_if_held_up())
        return tuple(effects)

    def go_offline(self, reason: str) -> Effects:
        """The log has failed: refuse everything from now on."""
        if self.has_failed:
            return ()
        role = self.role
        effects = role.renounce(ErrorCode.KAFKA_STORAGE_ERROR) if isinstance(role, Leader) else ()
        self._change_role(Offline(reason, failed=True), self.leader_epoch)
        return effects

    def log_failed(self, reason: str) -> Effects:
        """A write or flush failed. Nothing may be accepted after it (KAFKA-10778)."""
        return self.go_offline(reason) if self.rules.guards.offline_on_io_error else ()

    def _change_role(self, role: Role, leader_epoch: LeaderEpoch) -> None:
        check_move(self.role, role)
        self.role = role
        self.leader_epoch = leader_epoch

    # Leading.

    def append_as_leader(
        self, batch: BatchHeader, acks: int, waiter: object = None, deadline_ms: int = 1 << 62
    ) -> AppendAnswer:
        """A producer's batch: its offset in the log, or the error."""
        role = self.role
        if type(role) is Leader:
            return role.append(batch, acks, waiter, deadline_ms)
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.has_failed:
            error = ErrorCode.KAFKA_STORAGE_ERROR
        return AppendAnswer(error, NO_OFFSET, self.leader_epoch, False, ())

    def appended(self, now_ms: int) -> Effects:
        """All batches that were given an offset have been written."""
        role = self.role
        return role.appended(now_ms) if type(role) is Leader else ()

    def fetched(self, fetch: Fetch, now_ms: int) -> FetchAnswer:
        """A follower's fetch. Fenced first: a request of another leader epoch changes nothing."""
        role = self.role
        epoch = fetch.current_leader_epoch
        if type(role) is Leader and epoch in (role.leader_epoch, NO_EPOCH):
            return role.fetched(fetch, now_ms)
        return self._fetched_unfenced(fetch, now_ms)

    def _fetched_unfenced(self, fetch: Fetch, now_ms: int) -> FetchAnswer:
        """A request that a fence refuses, unless the lab has switched that fence off."""
        role = self.role
        guards = self.rules.guards
        if not guards.fence_truncation:
            diverging = divergence(
                self.log, fetch.fetch_offset, fetch.last_fetched_epoch, exact=False
            )
            if diverging is not None:
                return refusal(ErrorCode.NONE, self.log)._replace(diverging=diverging)
        if not isinstance(role, Leader):
            return refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, self.log)
        progress = role.insync.followers.get(fetch.follower)
        in_range = fetch.fetch_offset <= self.log.log_end_offset
        if not guards.fence_fetch and progress and in_range:
            # Before KIP-320 a fetch was served by its offset alone.
            return role.serve(progress, fetch, now_ms)
        effects: list[Effect] = []
        if not guards.fence_isr_expand and progress:
            role.note_position(progress, fetch, now_ms, effects)
        older = fetch.current_leader_epoch < role.leader_epoch
        error = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
        return refusal(error, self.log, tuple(effects))

    def still_caught_up(self, follower: BrokerId, at_ms: int) -> None:
        """A follower had everything until `at_ms`, though its fetch omitted this partition.

        Incremental fetches omit unchanged partitions. Without this, an idle follower would seem
        silent, and leave the ISR with the first record after a long pause.
        """
        role = self.role
        if isinstance(role, Leader):
            role.insync.still_caught_up(follower, at_ms)

    def expand_isr(self, follower: BrokerId) -> Effects:
        """Propose a candidate that `ConsiderExpand` named, if it still qualifies."""
        role = self.role
        return role.expand_isr(follower) if isinstance(role, Leader) else ()

    def isr_answer(self, error: ErrorCode, state: PartitionState | None) -> Effects:
        """The controller's answer to our proposal."""
        role = self.role
        return role.isr_answer(error, state) if isinstance(role, Leader) else ()

    def end_offset_for(
        self, epoch: LeaderEpoch, current_leader_epoch: LeaderEpoch = NO_EPOCH
    ) -> tuple[ErrorCode, EpochEnd]:
        """OffsetForLeaderEpoch: where `epoch` ends here. Only the current leader answers."""
        unknown = EpochEnd(NO_EPOCH, NO_OFFSET)
        if not isinstance(self.role, Leader):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, unknown
        error = self._epoch_fence(current_leader_epoch)
        if error:
            return error, unknown
        exact = not self.rules.guards.answer_names_epoch
        log = self.log
        return ErrorCode.NONE, log.epochs.end_offset_for(epoch, log.log_end_offset, exact=exact)

    def _epoch_fence(self, current_leader_epoch: LeaderEpoch) -> ErrorCode:
        if current_leader_epoch in (NO_EPOCH, self.leader_epoch):
            return ErrorCode.NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    # Following.

    def next_fetch(self) -> NextFetch | None:
        """What to ask the leader, if there is anything to ask."""
        role = self.role
        return role.next_fetch() if type(role) is Follower else None

    def accepts_answer(self, asked: NextFetch) -> bool:
        """Whether the answer to this request may still be used."""
        role = self.role
        return type(role) is Follower and role.accepts(asked)

    def append_as_follower(
        self, batches: Sequence[BatchHeader], leader_high_watermark: Offset, now_ms: int
    ) -> Effects:
        """The leader's batches have been appended to our log."""
        log = self.log
        log.copied(batches)
        effects: list[Effect] = []
        if batches and log.wants_flush(now_ms):
            effects.append(Flush(log.log_end_offset))
        high_watermark = Offset(min(leader_high_watermark, log.log_end_offset))
        if high_watermark > log.high_watermark:
            effects.append(HighWatermarkMoved(log.high_watermark, high_watermark))
            log.high_watermark = high_watermark
        return tuple(effects)

    def diverged(self, diverging: EpochEnd) -> Effects:
        """The leader reports where the logs diverge."""
        role = self.role
        return role.diverged(diverging) if isinstance(role, Follower) else ()

    def out_of_range(self, leader_start: Offset, leader_end: Offset) -> Effects:
        """The leader has no record at our end; these are its bounds."""
        role = self.role
        return role.out_of_range(leader_start, leader_end) if isinstance(role, Follower) else ()

    # Reading.

    def read(self, fetch: Fetch, *, read_committed: bool = False) -> FetchAnswer:
        """What a fetch may read now. It changes nothing; a follower's position is `fetched` once.

        A follower reads up to our end. A consumer never gets records at or above our high
        watermark, nor, if read_committed, at or above the last stable offset.
        """
        if fetch.follower == NO_BROKER:
            return self._read_as_consumer(fetch, read_committed=read_committed)
        role = self.role
        if type(role) is not Leader:
            return refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, self.log)
        error = self._epoch_fence(fetch.current_leader_epoch)
        if error and self.rules.guards.fence_fetch:
            return refusal(error, self.log)
        return role.read(fetch)

    def _read_as_consumer(self, fetch: Fetch, *, read_committed: bool) -> FetchAnswer:
        log, fetch_offset = self.log, fetch.fetch_offset
        leads = isinstance(self.role, Leader)
        any_replica = log.settings.read_rule is ReadRule.ANY_REPLICA
        if isinstance(self.role, Offline) or not (leads or any_replica):
            return refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, log)
        error = self._epoch_fence(fetch.current_leader_epoch)
        if error:
            return refusal(error, log)
        if not leads and fetch_offset > log.high_watermark:
            bounded = self.rules.guards.follower_read_bound
            not_yet = ErrorCode.OFFSET_NOT_AVAILABLE
            return refusal(not_yet if bounded else ErrorCode.OFFSET_OUT_OF_RANGE, log)
        diverging = divergence(log, fetch_offset, fetch.last_fetched_epoch, exact=False)
        # A follower without this epoch lags; an unknown epoch is an answer only from a leader.
        if diverging is not None and (leads or diverging != UNKNOWN_EPOCH_END):
            return refusal(ErrorCode.NONE, log)._replace(diverging=diverging)
        if not log.log_start_offset <= fetch_offset <= log.log_end_offset:
            return refusal(ErrorCode.OFFSET_OUT_OF_RANGE, log)
        end = log.last_stable_offset if read_committed else log.high_watermark
        return served(fetch_offset, max(fetch_offset, end), log)

    def latest_offset(self) -> tuple[ErrorCode, Offset]:
        """ListOffsets "latest".

        A new leader has no answer until its high watermark reaches the start of its epoch: before,
        the high watermark may be below an offset that a consumer has already read (KIP-207).
        """
        role = self.role
        if not isinstance(role, Leader):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_OFFSET
        if self.log.high_watermark < role.epoch_start_offset:
            return ErrorCode.OFFSET_NOT_AVAILABLE, NO_OFFSET
        return ErrorCode.NONE, self.log.high_watermark

    # Settings.

    def settings_changed(self, settings: Settings) -> Effects:
        """The topic's settings changed."""
        self.log.settings = settings
        role = self.role
        effects = role.settings_changed(settings) if isinstance(role, Leader) else ()
        return (*effects, *self._flush_if_held_up())

    # Waiting and time.

    def park_fetch(self, waiter: object, deadline_ms: int, *, at_end: bool) -> bool:
        """Let a fetch wait: a follower's for our end, a consumer's for the high watermark."""
        role = self.role
        if not isinstance(role, Leader):
            return False
        parked = role.parked_at_end if at_end else role.parked_at_high_watermark
        parked.park(waiter, deadline_ms)
        return True

    def unpark_fetch(self, waiter: object) -> bool:
        """Drop a parked fetch: its connection is closed, or a newer request replaced it."""
        role = self.role
        return isinstance(role, Leader) and (
            role.parked_at_end.unpark(waiter) or role.parked_at_high_watermark.unpark(waiter)
        )

    def flushed(self, end_offset: Offset, now_ms: int) -> Effects:
        """Everything below `end_offset` is flushed, even if the log was truncated meanwhile."""
        self.log.flushed(end_offset, now_ms)
        role = self.role
        effects = role.flushed() if isinstance(role, Leader) else ()
        return (*effects, *self._flush_if_held_up())

    def _flush_if_held_up(self) -> Effects:
        """The flush that this replica needs before it may claim its records.

        Checked wherever it may become necessary without an append, so that no request waits for a
        tick: a killed process left more in the page cache, flush.messages became smaller, records
        arrived during a flush, or a truncation moved the flushed offset back.
        """
        is_held_up = self.log.must_flush and not isinstance(self.role, Offline)
        return (Flush(self.log.log_end_offset),) if is_held_up else ()

    def tick(self, now_ms: int) -> Effects:
        """Time has passed."""
        role = self.role
        if isinstance(role, Leader):
            return role.tick(now_ms)
        if isinstance(role, Follower) and self.log.wants_flush(now_ms):
            return (Flush(self.log.log_end_offset),)
        return ()

    @property
    def is_awaited(self) -> bool:
        """Whether a tick may soon cause something other than a lag: an expired request, a due
        flush, a joiner that may be proposed again.
        """
        log, role = self.log, self.role
        if type(role) is Leader and (role.waiting or not role.insync.expand_rested):
            return True
        is_flushed = log.flushed_offset >= log.log_end_offset
        return log.settings.flush_rule is not FlushRule.PAGE_CACHE and not is_flushed

    def check_invariants(self) -> None:
        """What must hold after every call; the lab checks it after every event."""
        self.log.check_invariants()
        self.log.epochs.check_invariants()
        if isinstance(self.role, Leader):
            self.role.insync.check_invariants()
            assert self.role.leader_epoch == self.leader_epoch
