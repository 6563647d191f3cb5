"""How the copies of one partition stand to each other: which are copies, which one is the truth.

The *truth* is the copy with the highest leader epoch, and of those the longest: it is the current
leader's, or what its successor must agree with. The epoch is the last one in
leader-epoch-checkpoint where that goes beyond the records: a leader writes it when it is elected,
before it has any record of its own, and an unclean election must not be overlooked until then.

An epoch in a batch's header is covered by no checksum. So it counts only if somebody else knows it:
a checkpoint, the controllers, or most of the copies. And a last batch behind a gap does not make a
log longer, for its offset is not covered either; unless the cleaner made the gap.

What a copy must have (`settled`) is what it said itself, by its checkpoints of high watermark and
flushed point. That it is in the ISR and shorter than the leader's high watermark proves nothing:
directories may be copies, taken one after the other while producers write and the ISR changes, and
nothing in them says of which moment they are. Such a copy is `behind`, which is worth a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from holdfast.pipeline.audit.controllers.kraft_metadata import Partition
from holdfast.pipeline.audit.findings.findings import EpochStart
from holdfast.pipeline.audit.replicas.segments import Segment

FAR: Final = 1 << 62


class Replica(NamedTuple):
    """One copy. Executors get it as it is."""

    broker: str
    number: int | None
    """The broker's id; None if nobody knows it."""
    topic: str
    partition: int
    path: str
    segments: tuple[Segment, ...]
    start: int
    end: int
    solid_end: int
    """Where the log ends, or the gap before its last batch begins that no cleaner made."""
    epoch: int
    """The last batch's as it was read; from `standing` on the last one that is believed."""
    high_watermark: int | None
    flushed: int | None
    cleaned: int
    """Below it the log may have been compacted; 0 if it never was."""
    epochs: tuple[EpochStart, ...] = ()
    topic_id: bytes | None = None
    written_ms: int = -1
    """The time of the last batch."""
    is_absent: bool = False
    """There is no folder, and should be."""
    taken_ms: int = FAR
    """When the high watermarks were written or copied: the copy need not have what came later."""
    settled: int = 0
    """What lies below, from `start` on, has been whole here once, and must be here: no torn write
    explains what is wrong with it."""


class Stranger(NamedTuple):
    """A log under the name of a partition, of a topic with another id."""

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
    # A checkpoint beyond every log may be of a topic that had the name before.
    longest = max(one.end for one in ranked)
    return tuple(_settled(one, longest) for one in ranked), strangers


def _settled(copy: Replica, longest: int) -> Replica:
    said = max(copy.high_watermark or 0, copy.flushed or 0)
    return copy._replace(settled=min(said, longest))


def behind(ranked: Sequence[Replica], known: Partition | None) -> list[Replica]:
    """Members of the ISR that end before the leader's high watermark, and never said more."""
    if known is None or not ranked:
        return []
    committed = min(ranked[0].high_watermark or 0, ranked[0].end)
    return [
        one for one in ranked if one.number in known.isr and max(one.end, one.settled) < committed
    ]


def _topic_id(copies: Sequence[Replica]) -> bytes | None:
    """What most copies say; of equals the one that was written to last."""
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
    """The newest epoch that the copy knows of. Without a checkpoint its records must be enough.

    A leader begins its epoch where its log ends. If one begins behind the end, then something cut
    the log since, and it is not what that leader had.
    """
    last = max((one.epoch for one in copy.epochs if one.start_offset <= copy.end), default=-1)
    is_trusted = copy.epoch in trusted or not copy.epochs
    return max(last, copy.epoch) if is_trusted else last
