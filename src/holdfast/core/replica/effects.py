"""Effects: what the core asks its driver to do.

The ordering contract has two rules:

1. A driver carries out the effects of one call in the order given. An effect is valid only when the
   effects before it are done.
2. A driver may start `Flush` and `WriteEpoch` on another thread and continue. So no other effect of
   the same call depends on them. An acknowledgement or a move of the high watermark that waits for
   a flush is an effect of `flushed`, and a follower gets no `next_fetch` before. A driver may also
   flush before it continues.

Effects are tuples because the hot path creates several of them per record batch. A `waiter` is the
driver's handle for a waiting request; the core only returns it.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.model import (
    BrokerId,
    EpochEntry,
    ErrorCode,
    LeaderEpoch,
    Offset,
    PartitionEpoch,
    ReplicaBroker,
)


class Acknowledge(NamedTuple):
    """Acknowledge a producer's batch: it is as safe as its acks ask for."""

    waiter: object
    base_offset: Offset


class Refuse(NamedTuple):
    """Answer the producer with an error. `base_offset` is where the batch is, or -1."""

    waiter: object
    error: ErrorCode
    base_offset: Offset


class WakeFetch(NamedTuple):
    """A parked fetch has something to send, or has waited long enough: answer it now."""

    waiter: object


class ConsiderExpand(NamedTuple):
    """A follower outside the ISR may have caught up: call `expand_isr` for it soon."""

    follower: BrokerId


class ProposeIsr(NamedTuple):
    """Ask the controller for another ISR (AlterPartition)."""

    isr: tuple[ReplicaBroker, ...]
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    """The state this proposal was made against; the controller refuses it for any other."""


class IsrApplied(NamedTuple):
    """The leader now uses this ISR."""

    isr: tuple[BrokerId, ...]
    partition_epoch: PartitionEpoch


class HighWatermarkMoved(NamedTuple):
    """The high watermark rose."""

    was: Offset
    high_watermark: Offset


class Flush(NamedTuple):
    """Flush the log up to this offset; call `flushed` when that is done."""

    end_offset: Offset


class TruncateTo(NamedTuple):
    """Truncate the log, then rebuild the producer states from the rest (`truncated`)."""

    end_offset: Offset
    was: Offset


class WriteEpoch(NamedTuple):
    """Write the epoch cache's newest entry to its checkpoint, which a restarted broker reads the
    epochs of the log from.
    """

    entry: EpochEntry


Effect = (
    Acknowledge
    | Refuse
    | WakeFetch
    | ConsiderExpand
    | ProposeIsr
    | IsrApplied
    | HighWatermarkMoved
    | Flush
    | TruncateTo
    | WriteEpoch
)
Effects = tuple[Effect, ...]
