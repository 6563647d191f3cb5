"""Writes this broker's trace events: one method per kind, so that the fields are right.

Off by default; when on, every event costs one line in a buffer. The kinds and their fields are
those of `model.trace.KINDS`, the same as in the lab.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from holdfast.core import (
    Fetch,
    FetchAnswer,
    HighWatermarkMoved,
    IsrApplied,
    Leader,
    ProposeIsr,
    StateConfirmed,
    TruncateTo,
)
from holdfast.model import ErrorCode, Offset, PartitionState, TopicPartition
from holdfast.protocol.records import RecordBatchHeader

if TYPE_CHECKING:
    from holdfast.broker.replication.partition import Partition


class Sink(Protocol):
    """Receives events."""

    broker_epoch: int | None
    """The broker epoch of the next events."""

    def emit(self, kind: str, partition: TopicPartition | None = None, **numbers: object) -> None:
        """Take one event; never blocks, never fails."""

    def flush(self) -> None:
        """Write everything emitted so far before this returns."""


class BrokerTrace:
    """Turns what happens in this broker into events."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._emit = sink.emit

    def flush(self) -> None:
        self._sink.flush()

    def registered(self, broker_epoch: int) -> None:
        self._sink.broker_epoch = broker_epoch
        self._emit("registered")

    def stopped(self) -> None:
        self._emit("stopped")

    def command_refused(self, controller_epoch: int, error: ErrorCode) -> None:
        self._emit("command-refused", controller_epoch=controller_epoch, error=error.name)

    def became_controller(self, controller_epoch: int) -> None:
        self._emit("controller", controller_epoch=controller_epoch)

    def state_confirmed(self, confirmed: StateConfirmed) -> None:
        partition, before, after, rule = confirmed
        if after.leader_epoch != before.leader_epoch:
            self._emit(
                "elected",
                partition,
                leader=after.leader if after.leader >= 0 else None,
                leader_epoch=after.leader_epoch,
                partition_epoch=after.partition_epoch,
                isr=list(after.isr),
                eligible=list(after.eligible_leaders),
                rule=rule,
            )
        elif (after.isr, after.eligible_leaders) != (before.isr, before.eligible_leaders):
            self._emit(
                "isr-committed",
                partition,
                isr=list(after.isr),
                partition_epoch=after.partition_epoch,
                eligible=list(after.eligible_leaders),
            )
        if after.replicas != before.replicas:
            self._emit(
                "reassigned",
                partition,
                replicas=list(after.replicas),
                adding=list(after.adding),
                removing=list(after.removing),
            )

    def restarted(self, partition: Partition, *, clean: bool) -> None:
        log = partition.replica.log
        self._emit(
            "restarted",
            partition.name,
            log_end_offset=log.log_end_offset,
            high_watermark=log.high_watermark,
            clean=clean,
        )

    def role_changed(self, partition: Partition, state: PartitionState) -> None:
        role = partition.replica.role
        log = partition.replica.log
        if isinstance(role, Leader):
            self._emit(
                "became-leader",
                partition.name,
                leader_epoch=role.leader_epoch,
                start_offset=role.epoch_start_offset,
                log_end_offset=log.log_end_offset,
                high_watermark=log.high_watermark,
                isr=list(role.insync.isr),
            )
        else:
            leader = state.leader if state.leader >= 0 else None
            self._emit(
                "became-follower", partition.name, leader=leader, leader_epoch=state.leader_epoch
            )

    def went_offline(self, partition: Partition, reason: str) -> None:
        self._emit("disk-failed", partition.name, error=reason)
        self._emit("went-offline", partition.name, reason=reason)

    def appended(
        self, partition: Partition, headers: Sequence[RecordBatchHeader], *, as_leader: bool
    ) -> None:
        for header in headers:
            self._emit(
                "appended",
                partition.name,
                base_offset=header.base_offset,
                end_offset=header.end_offset,
                leader_epoch=header.leader_epoch,
                records=[],
                as_leader=as_leader,
            )

    def truncated(self, partition: Partition, truncation: TruncateTo) -> None:
        self._emit(
            "truncated",
            partition.name,
            end_offset=truncation.end_offset,
            was=truncation.was,
            records=[],
        )

    def flushed(self, partition: Partition, end_offset: Offset) -> None:
        self._emit("flushed", partition.name, end_offset=end_offset)

    def high_watermark(self, partition: Partition, moved: HighWatermarkMoved) -> None:
        self._emit(
            "high-watermark",
            partition.name,
            high_watermark=moved.high_watermark,
            was=moved.was,
        )

    def isr_proposed(self, partition: Partition, proposal: ProposeIsr) -> None:
        isr = [member.broker for member in proposal.isr]
        epoch = proposal.partition_epoch
        self._emit("isr-proposed", partition.name, isr=isr, partition_epoch=epoch)

    def isr_applied(self, partition: Partition, applied: IsrApplied) -> None:
        epoch = applied.partition_epoch
        self._emit("isr-applied", partition.name, isr=list(applied.isr), partition_epoch=epoch)

    def isr_refused(self, partition: Partition, error: ErrorCode) -> None:
        self._emit("isr-refused", partition.name, isr=[], error=error.name)

    def fetched(self, partition: Partition, fetch: Fetch, answer: FetchAnswer) -> None:
        self._emit(
            "fetched",
            partition.name,
            follower=fetch.follower,
            fetch_offset=fetch.fetch_offset,
            last_fetched_epoch=fetch.last_fetched_epoch,
            leader_epoch=fetch.current_leader_epoch,
            noted=not answer.error and answer.diverging is None,
        )
        if answer.error:
            self._emit(
                "fetch-refused", partition.name, follower=fetch.follower, error=answer.error.name
            )
        elif answer.diverging is not None:
            self._emit(
                "diverged",
                partition.name,
                follower=fetch.follower,
                epoch=answer.diverging.epoch,
                end_offset=answer.diverging.end_offset,
            )

    def acknowledged(self, partition: Partition, client: str, offset: int, acks: int) -> None:
        self._emit(
            "acknowledged", partition.name, producer=client, record="", offset=offset, acks=acks
        )
