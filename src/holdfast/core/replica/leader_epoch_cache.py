"""The leader-epoch cache: which leader epoch wrote which part of the log.

`end_offset_for` makes truncation safe (KIP-101, KIP-279): a follower names the last epoch in its
log, and the leader answers where that epoch ends in its own log.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.model import (
    NO_EPOCH,
    UNKNOWN_EPOCH_END,
    BatchHeader,
    EpochEnd,
    EpochEntry,
    LeaderEpoch,
    Offset,
)


class EpochCache:
    """The leader epochs of one log, oldest first."""

    __slots__ = ("entries",)

    entries: list[EpochEntry]
    """Epochs and start offsets both rise strictly. A log that begins at epoch 0 has an entry."""

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        self.entries = list(entries)
        self.check_invariants()

    @property
    def latest_epoch(self) -> LeaderEpoch:
        """The last epoch, or -1."""
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    def assign(self, epoch: LeaderEpoch, start_offset: Offset) -> bool:
        """Add `epoch` with its `start_offset`; return whether it was new."""
        entries = self.entries
        if entries and entries[-1].epoch >= epoch:
            return False
        # Drop epochs without records: such an epoch ends where the next one starts.
        while entries and entries[-1].start_offset >= start_offset:
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        return True

    def end_offset_for(
        self, epoch: LeaderEpoch, log_end_offset: Offset, *, exact: bool = False
    ) -> EpochEnd:
        """Where `epoch`, or else the largest smaller epoch in this log, ends (KIP-279).

        `exact` is the rule before KIP-279: an epoch this log does not have is "unknown".
        """
        entries = self.entries
        if not entries or epoch > entries[-1].epoch:
            return UNKNOWN_EPOCH_END
        if epoch == entries[-1].epoch:
            return EpochEnd(epoch, log_end_offset)
        higher = next(index for index, entry in enumerate(entries) if entry.epoch > epoch)
        end = entries[higher].start_offset
        floor = entries[higher - 1].epoch if higher else epoch
        if exact and (not higher or floor != epoch):
            return UNKNOWN_EPOCH_END
        return EpochEnd(floor, end)

    def epoch_at(self, offset: Offset) -> LeaderEpoch:
        """The epoch that wrote `offset`, or -1 for an offset before all entries."""
        for entry in reversed(self.entries):
            if entry.start_offset <= offset:
                return entry.epoch
        return NO_EPOCH

    def truncate_to(self, end_offset: Offset) -> None:
        """Drop epochs that begin at or after the new end of the log."""
        while self.entries and self.entries[-1].start_offset >= end_offset:
            self.entries.pop()

    def advance_start_to(self, start_offset: Offset) -> None:
        """Drop epochs that end before the new start; move the start of the one that contains it."""
        kept = [entry for entry in self.entries if entry.start_offset > start_offset]
        in_force = self.epoch_at(start_offset)
        if in_force != NO_EPOCH:
            kept.insert(0, EpochEntry(in_force, start_offset))
        self.entries = kept

    @classmethod
    def rebuilt_from(cls, batches: Iterable[BatchHeader], *, keep_first: bool = True) -> EpochCache:
        """The cache of a log whose checkpoint is lost, rebuilt from its batches.

        Without `keep_first` a log that begins at epoch 0 loses that entry (KAFKA-10432: "is the
        epoch above the latest?" was asked with 0 standing for "none yet").
        """
        cache = cls()
        for batch in batches:
            if keep_first or batch.leader_epoch > 0:
                cache.assign(batch.leader_epoch, batch.base_offset)
        return cache

    def check_invariants(self) -> None:
        """Epochs and start offsets rise strictly."""
        for before, after in zip(self.entries, self.entries[1:], strict=False):
            assert before.epoch < after.epoch, f"epochs do not rise: {before}, {after}"
            assert before.start_offset < after.start_offset, f"starts do not rise: {before} {after}"
