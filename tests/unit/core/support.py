"""Helpers for the unit tests of the core: plain numbers in, the core's types out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from holdfast.core import (
    ACKS_ALL,
    SAFE_RULES,
    Effect,
    Effects,
    EpochCache,
    Fetch,
    FetchAnswer,
    Guards,
    Leader,
    LogState,
    Replica,
    Rules,
    Settings,
)
from holdfast.model import (
    NO_EPOCH,
    BatchHeader,
    BrokerEpoch,
    BrokerId,
    EpochEnd,
    EpochEntry,
    LeaderEpoch,
    Offset,
    PartitionEpoch,
    PartitionState,
    ProducerId,
    ReplicaBroker,
)

A, B, C, D = (BrokerId(number) for number in (1, 2, 3, 4))
TWO = Settings(min_insync_replicas=2)
ONE = Settings(min_insync_replicas=1)

EffectT = TypeVar("EffectT", bound=Effect)


def without(*names: str) -> Rules:
    """The safe rules with some guards switched off."""
    return Rules(guards=Guards().without(*names))


def state(
    leader: int = A,
    epoch: int = 0,
    isr: Iterable[int] = (A, B, C),
    version: int = 1,
    replicas: Iterable[int] = (A, B, C),
) -> PartitionState:
    """A partition state in which every member joined in broker epoch 1."""
    members = tuple(BrokerId(one) for one in isr)
    return PartitionState(
        tuple(BrokerId(one) for one in replicas),
        members,
        BrokerId(leader),
        LeaderEpoch(epoch),
        PartitionEpoch(version),
        member_epochs=tuple(ReplicaBroker(one, BrokerEpoch(1)) for one in members),
    )


def log(
    end: int = 0,
    *,
    high_watermark: int = 0,
    start: int = 0,
    flushed: int = 0,
    epochs: Iterable[tuple[int, int]] = (),
    settings: Settings = ONE,
) -> LogState:
    """A log's numbers; `epochs` are pairs of an epoch and where it starts."""
    entries = [EpochEntry(LeaderEpoch(epoch), Offset(begins)) for epoch, begins in epochs]
    return LogState(
        settings,
        log_start_offset=Offset(start),
        log_end_offset=Offset(end),
        high_watermark=Offset(high_watermark),
        flushed_offset=Offset(flushed),
        epochs=EpochCache(entries),
    )


def leading(
    assignment: PartitionState | None = None,
    held: LogState | None = None,
    rules: Rules = SAFE_RULES,
) -> Replica:
    """A replica that has just become leader, at time 0."""
    assignment = assignment or state()
    replica = Replica(assignment.leader, held or log(), rules)
    replica.become_leader(assignment, 0)
    return replica


def following(
    assignment: PartitionState | None = None,
    held: LogState | None = None,
    rules: Rules = SAFE_RULES,
    broker: int = B,
) -> Replica:
    """A replica that has just become follower."""
    replica = Replica(BrokerId(broker), held or log(), rules)
    replica.become_follower(assignment or state())
    return replica


def role_of(replica: Replica) -> Leader:
    """The leader role of this replica."""
    assert isinstance(replica.role, Leader)
    return replica.role


def fetch(
    follower: int, offset: int, last_epoch: int = NO_EPOCH, epoch: int = 0, broker_epoch: int = 1
) -> Fetch:
    """A follower's request; `epoch` is its current leader epoch."""
    return Fetch(
        BrokerId(follower),
        Offset(offset),
        LeaderEpoch(last_epoch),
        LeaderEpoch(epoch),
        BrokerEpoch(broker_epoch),
    )


def fetches(replica: Replica, follower: int, offset: int, now_ms: int = 0) -> FetchAnswer:
    """A follower fetches in the leader's epoch, with a log that is a prefix of the leader's."""
    last = replica.log.epochs.epoch_at(Offset(offset - 1)) if offset else NO_EPOCH
    return replica.fetched(fetch(follower, offset, last, replica.leader_epoch), now_ms)


def produce(
    replica: Replica,
    waiter: object = "producer",
    acks: int = ACKS_ALL,
    records: int = 1,
    now_ms: int = 0,
    deadline_ms: int = 1_000,
) -> Effects:
    """Append and write a batch."""
    answer = replica.append_as_leader(BatchHeader(records), acks, waiter, deadline_ms)
    assert not answer.error, answer
    return (*answer.effects, *replica.appended(now_ms))


def batch(
    base_offset: int = -1,
    records: int = 1,
    epoch: int = 0,
    producer: int = -1,
    sequence: int = -1,
    producer_epoch: int = 0,
) -> BatchHeader:
    """A batch's header."""
    return BatchHeader(
        records,
        LeaderEpoch(epoch),
        Offset(base_offset),
        ProducerId(producer),
        producer_epoch if producer >= 0 else -1,
        sequence,
    )


def end_at(epoch: int, offset: int) -> EpochEnd:
    """The end of an epoch, as a leader answers it."""
    return EpochEnd(LeaderEpoch(epoch), Offset(offset))


def only(kind: type[EffectT], effects: Iterable[Effect]) -> list[EffectT]:
    """The effects of one kind."""
    return [effect for effect in effects if isinstance(effect, kind)]
