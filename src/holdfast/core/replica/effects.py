"""What the core asks its driver to do.

The ordering contract has two rules:

1. A driver carries out the effects of one call in the order given. What an effect claims is true
   only when the effects before it are done.
2. `Flush` and `WriteEpoch` are the effects that a driver may only begin: the disk takes its time,
   on another thread. So no effect of a call depends on one of that call. What has to wait for a
   flush, an acknowledgement or a move of the high watermark, comes out of `flushed`, and a follower
   gets no `next_fetch` before. A driver that flushes before it goes on is right as well.

They are tuples because the hot path makes several of them for every record batch. A `waiter` is
the driver's own handle for a request that waits; the core only hands it back.
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
    """Tell the producer that its batch is safe by the rule it asked for."""

    waiter: object
    base_offset: Offset


class Refuse(NamedTuple):
    """Tell the producer an error. `base_offset` is where the batch is, or -1 if nowhere."""

    waiter: object
    error: ErrorCode
    base_offset: Offset


class WakeFetch(NamedTuple):
    """A parked fetch has something to send, or has waited long enough: answer it now."""

    waiter: object


class ConsiderExpand(NamedTuple):
    """A follower outside the ISR looks caught up: call `expand_isr` for it soon."""

    follower: BrokerId


class ProposeIsr(NamedTuple):
    """Ask the controller for another ISR (AlterPartition)."""

    isr: tuple[ReplicaBroker, ...]
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    """The state this proposal was made against; the controller refuses it for any other."""


class IsrApplied(NamedTuple):
    """The leader now counts on this ISR."""

    isr: tuple[BrokerId, ...]
    partition_epoch: PartitionEpoch


class HighWatermarkMoved(NamedTuple):
    """More is committed than before."""

    was: Offset
    high_watermark: Offset


class Flush(NamedTuple):
    """Force the log to the disk up to this offset; call `flushed` when the disk has it."""

    end_offset: Offset


class TruncateTo(NamedTuple):
    """Cut the log, then rebuild the producer states from what is left (`truncated`)."""

    end_offset: Offset
    was: Offset


class WriteEpoch(NamedTuple):
    """Write the epoch cache's newest entry to its checkpoint, before a log that is opened again
    would take the epochs of its records from there.
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
