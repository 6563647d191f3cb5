"""The offsets of a replica's log: start, end, high watermark and flushed offset.

The driver keeps the records. A method that changes the log's end returns an effect, and the driver
changes its log accordingly.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core.producers.producer_state import ProducerStates
from holdfast.core.replica.effects import TruncateTo
from holdfast.core.replica.leader_epoch_cache import EpochCache
from holdfast.core.rules import FlushRule, Settings
from holdfast.model import BatchHeader, Offset

_ZERO = Offset(0)


class LogState:
    """The offsets, epochs and producer states of one log."""

    __slots__ = (
        "epochs",
        "flushed_offset",
        "high_watermark",
        "last_flush_ms",
        "log_end_offset",
        "log_start_offset",
        "next_offset",
        "producers",
        "settings",
    )

    log_start_offset: Offset
    """The first offset in the log."""
    log_end_offset: Offset
    """The next offset to write; everything below is written."""
    next_offset: Offset
    """The next offset to give out. Above `log_end_offset` only between assigning and writing."""
    high_watermark: Offset
    """First uncommitted offset. Never falls while we lead; a follower's falls by truncation only;
    log_start_offset <= it <= log_end_offset."""
    flushed_offset: Offset
    """Everything below is on the disk."""

    def __init__(
        self,
        settings: Settings,
        *,
        log_start_offset: Offset = _ZERO,
        log_end_offset: Offset = _ZERO,
        high_watermark: Offset = _ZERO,
        flushed_offset: Offset = _ZERO,
        epochs: EpochCache | None = None,
        producers: ProducerStates | None = None,
    ) -> None:
        self.settings = settings
        self.log_start_offset = log_start_offset
        self.log_end_offset = self.next_offset = log_end_offset
        # A checkpointed high watermark may be ahead of what a torn log still holds.
        self.high_watermark = Offset(max(log_start_offset, min(high_watermark, log_end_offset)))
        self.flushed_offset = flushed_offset
        self.last_flush_ms = 0
        self.epochs = epochs if epochs is not None else EpochCache()
        self.producers = producers if producers is not None else ProducerStates()

    @property
    def must_flush(self) -> bool:
        """Whether flush.messages demands a flush before everything here may be claimed."""
        return self.log_end_offset - self.flushed_offset > self.settings.most_unflushed

    @property
    def claimed_end(self) -> Offset:
        """The end up to which this log may claim records, to its leader or for its own commit.

        With flush.messages=N, that is the log end while fewer than N records are unflushed. From
        the Nth on it is the flushed offset until the flush returns, as Kafka's append blocks then.
        """
        return self.flushed_offset if self.must_flush else self.log_end_offset

    def wants_flush(self, now_ms: int) -> bool:
        """Whether the flush rule asks for a flush now."""
        settings = self.settings
        if settings.flush_rule is FlushRule.PAGE_CACHE:
            return False
        if self.must_flush:
            return True
        is_due = now_ms - self.last_flush_ms >= settings.log_flush_interval_ms
        return settings.flushes_by_time and is_due and self.log_end_offset > self.flushed_offset

    def flushed(self, end_offset: Offset, now_ms: int) -> None:
        """The driver has flushed everything below `end_offset`.

        A flush that covers no new record, such as one of the leader-epoch checkpoint alone, does
        not postpone the next one that flush.ms asks for.
        """
        was = self.flushed_offset
        self.flushed_offset = Offset(max(was, min(end_offset, self.log_end_offset)))
        if self.flushed_offset > was or self.flushed_offset == self.log_end_offset:
            self.last_flush_ms = now_ms

    def truncate_to(self, end_offset: Offset) -> TruncateTo | None:
        """Truncate the log to `end_offset`; None if it ends there or before."""
        was = self.log_end_offset
        if end_offset < self.log_start_offset:
            return self.restart_at(end_offset)
        # Also if the log stays as it is: an epoch of our own without records has an entry at our
        # end, and as long as we name it, our leader can only answer that it does not have it.
        self.epochs.truncate_to(Offset(min(end_offset, was)))
        if end_offset >= was:
            return None
        self.log_end_offset = self.next_offset = end_offset
        self.high_watermark = Offset(min(self.high_watermark, end_offset))
        self.flushed_offset = Offset(min(self.flushed_offset, end_offset))
        return TruncateTo(end_offset, was)

    def must_restart(self, written_start: Offset, end_offset: Offset) -> bool:
        """Whether `TruncateTo(end_offset)` empties the log, which begins at `written_start` on the
        disk: it ends before the log begins, or the log begins elsewhere now.
        """
        return end_offset < written_start or self.log_start_offset > written_start

    def restart_at(self, start_offset: Offset) -> TruncateTo:
        """Discard the whole log and begin again at `start_offset`."""
        was = self.log_end_offset
        self.log_start_offset = self.log_end_offset = self.next_offset = start_offset
        self.high_watermark = self.flushed_offset = start_offset
        self.epochs.truncate_to(Offset(0))
        return TruncateTo(start_offset, was)

    def advance_start_to(self, start_offset: Offset) -> None:
        """Retention or DeleteRecords removed the records below. The driver's log shares the epoch
        cache with us, and updates it.
        """
        self.log_start_offset = Offset(max(self.log_start_offset, start_offset))
        self.high_watermark = Offset(max(self.high_watermark, self.log_start_offset))

    @property
    def last_stable_offset(self) -> Offset:
        """First offset that a read_committed reader may not see.

        DeleteRecords may have removed the first records of an open transaction.
        """
        stable = self.producers.last_stable_offset(self.high_watermark)
        return Offset(max(self.log_start_offset, stable))

    def copied(self, batches: Iterable[BatchHeader]) -> None:
        """Batches of the leader have been appended to our log."""
        for batch in batches:
            # A compacted leader has gaps, and so has its follower; nothing is ever written twice.
            assert batch.base_offset >= self.log_end_offset, "a batch overlaps a follower's log"
            self.epochs.assign(batch.leader_epoch, batch.base_offset)
            self.producers.append(batch)
            self.log_end_offset = self.next_offset = batch.end_offset

    def check_invariants(self) -> None:
        """Start, commit and end are in order."""
        assert self.log_start_offset <= self.high_watermark <= self.log_end_offset, (
            f"start {self.log_start_offset}, high watermark {self.high_watermark}, "
            f"end {self.log_end_offset}"
        )
        assert self.flushed_offset <= self.log_end_offset <= self.next_offset
