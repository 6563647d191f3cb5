"""The leader role: appends, follower positions, the high watermark, the responses.

The rules, each of which some release of Kafka once lacked:

1. An acks=all batch is refused before the append if the ISR is too small, and checked again before
   the acknowledgement.
2. The high watermark is the least end among the *maximal* ISR: the committed members and those in
   a proposal that may be committed already (KIP-497). Below min.insync.replicas it does not move
   (KIP-966).
3. Only positions reported in this leader epoch count (KIP-320).
4. A joiner is checked when it fetches and again at the moment it is proposed.
5. Our own log counts up to its claimed end: records that flush.messages makes us flush count after
   that flush.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core.replica.effects import (
    Acknowledge,
    ConsiderExpand,
    Effect,
    Effects,
    Flush,
    HighWatermarkMoved,
    IsrApplied,
    Refuse,
    WakeFetch,
)
from holdfast.core.replica.follower_progress import FollowerProgress
from holdfast.core.replica.in_sync_set import InSyncSet
from holdfast.core.replica.log_state import LogState
from holdfast.core.replica.truncation import Fetch, FetchAnswer, divergence, refusal, served
from holdfast.core.replica.waiting_requests import ParkedFetches, WaitingAck, WaitingAcks
from holdfast.core.rules import CommitRule, IsrUpdate, Rules, Settings
from holdfast.model import (
    NO_OFFSET,
    NO_PRODUCER,
    BatchHeader,
    BrokerId,
    ErrorCode,
    LeaderEpoch,
    Offset,
    PartitionState,
)

ACKS_ALL = -1
ACKS_LEADER = 1
ACKS_NONE = 0


class AppendAnswer(NamedTuple):
    """The offset of a batch, or an error. A duplicate is answered but must not be written."""

    error: ErrorCode
    base_offset: Offset
    leader_epoch: LeaderEpoch
    duplicate: bool
    effects: Effects


class Leader:
    """A leader's state in one leader epoch."""

    __slots__ = (
        "epoch_start_offset",
        "insync",
        "leader_epoch",
        "log",
        "parked_at_end",
        "parked_at_high_watermark",
        "rules",
        "unwritten",
        "waiting",
    )

    waiting: WaitingAcks
    parked_at_end: ParkedFetches
    parked_at_high_watermark: ParkedFetches
    epoch_start_offset: Offset
    """Where our log ended when this leader epoch began."""
    unwritten: list[tuple[object, Offset]]
    """acks=1 producers whose batch is assigned but not yet safe on our own disk."""

    def __init__(
        self,
        broker: BrokerId,
        log: LogState,
        rules: Rules,
        state: PartitionState,
        now_ms: int,
        before: Leader | None,
    ) -> None:
        self.log = log
        self.rules = rules
        self.leader_epoch = state.leader_epoch
        self.epoch_start_offset = log.log_end_offset
        self.insync = InSyncSet(broker, log.settings, rules, state, now_ms)
        if before:
            # Re-elected: the log is unchanged, so the waiting requests stay.
            self.insync.remember(before.insync)
            self.waiting = before.waiting
            self.unwritten = before.unwritten
            self.parked_at_end = before.parked_at_end
            self.parked_at_high_watermark = before.parked_at_high_watermark
        else:
            self.waiting = WaitingAcks()
            self.unwritten = []
            self.parked_at_end = ParkedFetches()
            self.parked_at_high_watermark = ParkedFetches()

    # Appending.

    def append(
        self, batch: BatchHeader, acks: int, waiter: object, deadline_ms: int
    ) -> AppendAnswer:
        """Give a batch its offset, or refuse it. The driver writes it and calls `appended`."""
        log = self.log
        if acks == ACKS_ALL and not self.insync.enough:
            return self._refused(ErrorCode.NOT_ENOUGH_REPLICAS)
        if batch.producer_id != NO_PRODUCER:
            check = log.producers.check(batch)
            if check.error:
                return self._refused(check.error)
            if check.duplicate:
                seen = check.duplicate
                waits = WaitingAck(seen.end_offset, seen.base_offset, deadline_ms, waiter)
                return self._duplicate(waits, acks)
        base_offset = log.next_offset
        log.next_offset = end_offset = Offset(base_offset + batch.record_count)
        log.epochs.assign(self.leader_epoch, base_offset)
        if batch.producer_id != NO_PRODUCER:
            log.producers.assign(batch, base_offset)
        if acks == ACKS_ALL:
            self.waiting.add(WaitingAck(end_offset, base_offset, deadline_ms, waiter))
        elif acks == ACKS_LEADER:
            self.unwritten.append((waiter, base_offset))
        return AppendAnswer(ErrorCode.NONE, base_offset, self.leader_epoch, False, ())

    def _refused(self, error: ErrorCode) -> AppendAnswer:
        return AppendAnswer(error, NO_OFFSET, self.leader_epoch, False, ())

    def _duplicate(self, waits: WaitingAck, acks: int) -> AppendAnswer:
        """A retry: answered with the first copy's offset, when that copy is safe."""
        effects: Effects = ()
        if acks == ACKS_ALL and waits.end_offset > self.log.high_watermark:
            self.waiting.add(waits)
        elif acks == ACKS_LEADER and waits.end_offset > self._claimed_end:
            self.unwritten.append((waits.waiter, waits.base_offset))
        elif acks != ACKS_NONE:
            effects = (Acknowledge(waits.waiter, waits.base_offset),)
        return AppendAnswer(ErrorCode.NONE, waits.base_offset, self.leader_epoch, True, effects)

    def appended(self, now_ms: int) -> Effects:
        """Everything assigned so far has been written."""
        log = self.log
        log.log_end_offset = log.next_offset
        if log.producers.unwritten:
            log.producers.written()
        effects: list[Effect] = [WakeFetch(waiter) for waiter in self.parked_at_end.take_all()]
        if log.wants_flush(now_ms):
            effects.append(Flush(log.log_end_offset))
        self._own_log_safe(effects)
        return tuple(effects)

    def flushed(self) -> Effects:
        """The driver's flush has returned; `flushed_offset` says how far."""
        effects: list[Effect] = []
        self._own_log_safe(effects)
        return tuple(effects)

    def begin(self) -> Effects:
        """A leader epoch begins: alone in the ISR, we can commit our own log."""
        effects: list[Effect] = []
        self._advance(effects)
        return tuple(effects)

    @property
    def _claimed_end(self) -> Offset:
        log = self.log
        guarded = self.rules.guards.flush_before_claim
        return log.claimed_end if guarded else log.log_end_offset

    def _own_log_safe(self, effects: list[Effect]) -> None:
        """Our own log may claim more than before: answer acks=1, and maybe commit."""
        claimed = self._claimed_end
        while self.unwritten and self.unwritten[0][1] < claimed:
            waiter, base_offset = self.unwritten.pop(0)
            effects.append(Acknowledge(waiter, base_offset))
        self._advance(effects)

    # Fetches of followers.

    def fetched(self, fetch: Fetch, now_ms: int) -> FetchAnswer:
        """A follower of this epoch (or of one it does not name) asks for records."""
        progress = self.insync.followers.get(fetch.follower)
        if progress is None:
            return refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, self.log)
        return self._refused_fetch(fetch) or self.serve(progress, fetch, now_ms)

    def read(self, fetch: Fetch) -> FetchAnswer:
        """What a follower may read now, at a position that was `fetched`."""
        log = self.log
        if fetch.follower not in self.insync.followers:
            return refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, log)
        return self._refused_fetch(fetch) or served(fetch.fetch_offset, log.log_end_offset, log)

    def _refused_fetch(self, fetch: Fetch) -> FetchAnswer | None:
        """The answer to a follower whose log is no prefix of our log."""
        log, guards, fetch_offset = self.log, self.rules.guards, fetch.fetch_offset
        if fetch_offset > log.log_end_offset and not guards.out_of_range_diverges:
            return refusal(ErrorCode.OFFSET_OUT_OF_RANGE, log)
        diverging = divergence(
            log, fetch_offset, fetch.last_fetched_epoch, exact=not guards.answer_names_epoch
        )
        if diverging is not None:
            return refusal(ErrorCode.NONE, log)._replace(diverging=diverging)
        if not log.log_start_offset <= fetch_offset <= log.log_end_offset:
            return refusal(ErrorCode.OFFSET_OUT_OF_RANGE, log)
        return None

    def serve(self, progress: FollowerProgress, fetch: Fetch, now_ms: int) -> FetchAnswer:
        """Record the position of a follower whose log is a prefix of our log, and send records."""
        log = self.log
        effects: list[Effect] = []
        # A request from an earlier broker epoch has a position from before the follower may have
        # lost its tail (KIP-903): answer it, but do not record the position.
        guarded = self.rules.guards.joiner_broker_epoch
        if fetch.broker_epoch >= progress.broker_epoch or not guarded:
            self.note_position(progress, fetch, now_ms, effects)
            if progress in self.insync.counted:
                self._advance(effects)
        return served(fetch.fetch_offset, log.log_end_offset, log, tuple(effects))

    def note_position(
        self, progress: FollowerProgress, fetch: Fetch, now_ms: int, effects: list[Effect]
    ) -> None:
        """Record a follower's position, and check whether it is now a candidate for the ISR."""
        progress.fetched(fetch.fetch_offset, fetch.broker_epoch, self.log.log_end_offset, now_ms)
        if self.insync.may_expand(progress, self.log.high_watermark, self.epoch_start_offset):
            effects.append(ConsiderExpand(progress.broker))

    def _advance(self, effects: list[Effect]) -> None:
        """Raise the high watermark if the counted replicas allow it, and answer the waiters."""
        log = self.log
        enough = self.insync.enough
        # Below the minimum the maximal ISR need not contain every eligible leader (KIP-966).
        if enough or not self.rules.guards.eligible_leaders:
            end = self.insync.committed_end(self._claimed_end)
            if end > log.high_watermark and self._may_commit(end):
                effects.append(HighWatermarkMoved(log.high_watermark, end))
                log.high_watermark = end
                if self.parked_at_high_watermark:
                    effects.extend(map(WakeFetch, self.parked_at_high_watermark.take_all()))
                self._answer(enough, effects)

    def _answer(self, enough: bool, effects: list[Effect]) -> None:
        """Answer the producers whose batches are committed."""
        for waits in self.waiting.take_up_to(self.log.high_watermark):
            if enough:
                effects.append(Acknowledge(waits.waiter, waits.base_offset))
            else:
                effects.append(_after_append(waits))

    def _may_commit(self, end: Offset) -> bool:
        """Whether holding the log up to `end` is enough by the commit rule.

        A majority commits older records only together with one of this leader epoch (Raft, figure
        8): a log that ends in an older epoch can still lose the next election to a diverged one.
        """
        reached = end > self.epoch_start_offset
        return reached or self.rules.commit_rule is not CommitRule.MAJORITY

    # The in-sync set.

    def expand_isr(self, follower: BrokerId) -> Effects:
        """Propose a candidate that `ConsiderExpand` named, if it still qualifies."""
        log = self.log
        return self._proposed(
            self.insync.expand(follower, log.high_watermark, self.epoch_start_offset)
        )

    def _proposed(self, proposal: Effect | None) -> Effects:
        if proposal is None:
            return ()
        effects: list[Effect] = [proposal]
        if self.rules.isr_update is IsrUpdate.OPTIMISTIC:
            self._applied(effects)
        return tuple(effects)

    def isr_answer(self, error: ErrorCode, state: PartitionState | None) -> Effects:
        """The controller has answered the proposal in flight."""
        effects: list[Effect] = []
        if self.insync.answered(error, state):
            self._applied(effects)
        return tuple(effects)

    def adopt(self, state: PartitionState) -> Effects:
        """Adopt a newer partition state of this leader epoch."""
        effects: list[Effect] = []
        if self.insync.adopt(state):
            self._applied(effects)
        return tuple(effects)

    def settings_changed(self, settings: Settings) -> Effects:
        """A lower minimum or a larger flush.messages may let the high watermark move."""
        self.insync.settings_changed(settings)
        effects: list[Effect] = []
        self._own_log_safe(effects)
        self._recounted(effects)
        return tuple(effects)

    def _applied(self, effects: list[Effect]) -> None:
        effects.append(IsrApplied(self.insync.isr, self.insync.partition_epoch))
        self._recounted(effects)

    def _recounted(self, effects: list[Effect]) -> None:
        self._advance(effects)
        if not self.insync.enough and self.rules.guards.eligible_leaders:
            # The high watermark does not move any more, so these requests would wait in vain.
            effects.extend(_after_append(waits) for waits in self.waiting.take_all())

    # Time and endings.

    def tick(self, now_ms: int) -> Effects:
        """Check for lagging followers, expired requests and a due flush."""
        self.insync.expand_rested = True
        effects: list[Effect] = [
            Refuse(waits.waiter, ErrorCode.REQUEST_TIMED_OUT, waits.base_offset)
            for waits in self.waiting.take_expired(now_ms)
        ]
        effects.extend(map(WakeFetch, self.parked_at_end.take_expired(now_ms)))
        effects.extend(map(WakeFetch, self.parked_at_high_watermark.take_expired(now_ms)))
        if self.log.wants_flush(now_ms):
            effects.append(Flush(self.log.log_end_offset))
        effects.extend(self._proposed(self.insync.shrink(self.log.log_end_offset, now_ms)))
        return tuple(effects)

    def renounce(self, error: ErrorCode) -> Effects:
        """This leader epoch is over: refuse all waiting requests."""
        effects: list[Effect] = [
            Refuse(waits.waiter, error, waits.base_offset) for waits in self.waiting.take_all()
        ]
        effects.extend(Refuse(waiter, error, base) for waiter, base in self.unwritten)
        self.unwritten.clear()
        effects.extend(map(WakeFetch, self.parked_at_end.take_all()))
        effects.extend(map(WakeFetch, self.parked_at_high_watermark.take_all()))
        return tuple(effects)


def _after_append(waits: WaitingAck) -> Refuse:
    return Refuse(waits.waiter, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, waits.base_offset)
