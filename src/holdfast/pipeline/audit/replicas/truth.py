"""Compares the copies of one partition: which belong to it, and which one is the truth.

The *truth* is the copy with the highest leader epoch, and of those the longest: it is the current
leader's, or what its successor must agree with. The epoch is the last one in
leader-epoch-checkpoint where that goes beyond the records: a leader writes it when it is elected,
before it has any record of its own, and an unclean election must not be overlooked until then.

No checksum covers the epoch in a batch's header. So it counts only if something else confirms it: a
checkpoint, the controllers, or most of the copies. A last batch after a gap does not make a log
longer, for no checksum covers its offset either; unless the cleaner made the gap.

A copy must have (`settled`) what its own checkpoints of high watermark and flushed point say. An
empty copy, or one without a folder, must have everything below the leader's high watermark if the
controllers name its broker as a replica: its checkpoints may be gone with its records. That a copy
with records is in the ISR and shorter than the leader's high watermark proves nothing: directories
may be copies, taken one after the other while producers write and the ISR changes, and nothing in
them shows their times. Such a copy is `behind`, which is worth a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.pipeline.audit.controllers.kraft_metadata import Partition
from holdfast.pipeline.audit.findings.findings import EpochStart
from holdfast.storage.inspect.segment_reader import FAR, SegmentFile


class Replica(NamedTuple):
    """One copy. Executors receive it as it is."""

    broker: str
    number: int | None
    """The broker's id; None if unknown."""
    topic: str
    partition: int
    path: str
    segments: tuple[SegmentFile, ...]
    start: int
    end: int
    solid_end: int
    """The end of the log, or the start of a gap before its last batch that no cleaner made."""
    epoch: int
    """The last batch's epoch as it was read; after `standing` the last trusted one."""
    high_watermark: int | None
    flushed: int | None
    cleaned: int
    """Below it the log may have been compacted; 0 if it never was."""
    epochs: tuple[EpochStart, ...] = ()
    topic_id: bytes | None = None
    written_ms: int = -1
    """The time of the last batch."""
    is_absent: bool = False
    """There is no folder, but there should be."""
    taken_ms: int = FAR
    """When the high watermarks were written or copied: the copy need not have later records."""
    settled: int = 0
    """Everything below it, from `start` on, was complete here before and must be here: no torn
    write explains an error in it.
    """

    @property
    def is_empty(self) -> bool:
        """It has no records, or no folder."""
        return self.end <= self.start


class Stranger(NamedTuple):
    """A log with the name of a partition, of a topic with another id."""

    broker: str
    path: str
    topic_id: bytes | None


def standing(
    copies: Sequence[Replica], known: Partition | None
) -> tuple[tuple[Replica, ...], list[Stranger]]:
    """The copies of the partition, the truth first; and those that belong to another topic."""
    topic_id = _topic_id(copies) if known is None else known.topic_id
    mine = [one for one in copies if one.topic_id in (None, topic_id)]
    strangers = [Stranger(one.broker, one.path, one.topic_id) for one in copies if one not in mine]
    trusted = _trusted_epochs(mine, known)
    ranked = sorted(
        (one._replace(epoch=_epoch(one, trusted)) for one in mine),
        key=lambda one: (one.is_absent, -one.epoch, -one.solid_end, one.broker),
    )
    if not ranked or ranked[0].is_absent:
        return (), strangers
    # A checkpoint beyond every log may be of an earlier topic with the same name.
    longest = max(one.end for one in ranked)
    committed = _committed(ranked[0])
    return tuple(_settled(one, longest, committed, known) for one in ranked), strangers


def _settled(copy: Replica, longest: int, committed: int, known: Partition | None) -> Replica:
    said = max(copy.high_watermark or 0, copy.flushed or 0)
    is_wiped = copy.is_empty and known is not None and copy.number in known.holders
    return copy._replace(settled=min(max(said, committed if is_wiped else 0), longest))


def _committed(truth: Replica) -> int:
    return min(truth.high_watermark or 0, truth.end)


def behind(ranked: Sequence[Replica], known: Partition | None) -> list[Replica]:
    """Members of the ISR that end before the leader's high watermark, and never claimed more."""
    if known is None or not ranked:
        return []
    committed = _committed(ranked[0])
    return [
        one for one in ranked if one.number in known.isr and max(one.end, one.settled) < committed
    ]


def _topic_id(copies: Sequence[Replica]) -> bytes | None:
    """The id of most copies; among equals the one that was written to last."""
    counts = Counter(one.topic_id for one in copies if one.topic_id is not None)
    if not counts:
        return None
    return max(counts, key=lambda found: (counts[found], _latest(copies, found)))


def _latest(copies: Sequence[Replica], topic_id: bytes) -> int:
    return max(one.written_ms for one in copies if one.topic_id == topic_id)


def _trusted_epochs(copies: Sequence[Replica], known: Partition | None) -> set[int]:
    epochs = {entry.epoch for one in copies for entry in one.epochs}
    epochs |= set() if known is None else {one.leader_epoch for one in known.elections}
    counts = Counter(one.epoch for one in copies)
    most = {epoch for epoch, count in counts.items() if 2 * count > len(copies)}
    return epochs | most


def _epoch(copy: Replica, trusted: set[int]) -> int:
    """The newest epoch of the copy. Without a checkpoint its records must suffice.

    A leader begins its epoch where its log ends. If one begins after the end, then the log was
    truncated since, and is not what that leader had.
    """
    last = max((one.epoch for one in copy.epochs if one.start_offset <= copy.end), default=-1)
    is_trusted = copy.epoch in trusted or not copy.epochs
    return max(last, copy.epoch) if is_trusted else last
