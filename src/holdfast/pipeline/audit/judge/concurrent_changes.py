"""Detects files that changed while the audit read them.

Brokers may run: producers append, retention removes segments, the cleaner replaces them, a follower
truncates its log. An audit looks at the directories first and reads the records later. So a finding
at offsets whose files have changed since proves nothing: it is undecided until the next audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from holdfast.model import TopicPartition
from holdfast.pipeline.audit.findings.details import KIND_NAMES, KIND_NUMBER, Why
from holdfast.pipeline.audit.findings.findings import KINDS, UNDECIDED, Severity
from holdfast.pipeline.audit.findings.render import TopicFindings
from holdfast.pipeline.audit.jobs.row_types import Bools
from holdfast.pipeline.audit.replicas.truth import Replica
from holdfast.storage import RealDisk
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError, read_epochs, read_offsets
from holdfast.storage.file_names import (
    CLEANER_OFFSETS,
    DELETED,
    EPOCH_CHECKPOINT,
    LOG,
    SWAP,
    parse_file_name,
)
from holdfast.storage.inspect.segment_reader import FAR, SegmentFile, segment_at

_CLAIMS: Final = np.array(
    [KINDS[name].severity in (Severity.LOSS, Severity.WRONG) for name in KIND_NAMES]
)
"""By kind: whether a finding claims an error."""


class Span(NamedTuple):
    """Offsets whose files have changed."""

    first: int
    until: int


def doubted(
    topics: Sequence[TopicFindings], partitions: Mapping[tuple[str, int], Sequence[Replica]]
) -> list[TopicFindings]:
    """The findings; those whose files have changed become undecided."""
    return [_doubted(one, partitions) for one in topics]


def _doubted(
    topic: TopicFindings, partitions: Mapping[tuple[str, int], Sequence[Replica]]
) -> TopicFindings:
    is_claim: Bools = _CLAIMS[topic.table["kind"]] | (topic.table["why"] == Why.OLDER)
    is_doubtful = np.zeros(len(topic.table), np.bool_)
    for partition in np.unique(topic.partitions[is_claim]).tolist():
        is_here = is_claim & (topic.partitions == partition)
        for replica in partitions.get((topic.topic, partition), ()):
            for first, until in changes(replica):
                is_within = (topic.table["last"] >= first) & (topic.table["first"] < until)
                is_doubtful |= is_here & is_within
    if not is_doubtful.any():
        return topic
    table = topic.table.copy()
    table["kind"][is_doubtful] = KIND_NUMBER[UNDECIDED]
    table["why"][is_doubtful] = Why.CHANGED
    return TopicFindings(topic.topic, table, topic.partitions)


def changes(replica: Replica) -> Iterator[Span]:
    """The offsets of a copy whose files have changed."""
    now, replaced = _files(Path(replica.path))
    ends = [one.base for one in replica.segments[1:]] + [FAR]
    for before, until in zip(replica.segments, ends, strict=bool(replica.segments)):
        found = now.get(before.base)
        if found is None or found.inode != before.inode or found.size < before.size:
            yield Span(before.base, until)
    if _active(now.values()) > _active(replica.segments):
        yield Span(replica.end, FAR)
    yield from _cleaned(replica, replaced, max(now, default=0))
    yield from _truncated(replica)


def _files(folder: Path) -> tuple[dict[int, SegmentFile], list[int]]:
    """The segments by base offset; and the base offsets of those replaced by the cleaner lately."""
    segments: dict[int, SegmentFile] = {}
    replaced = []
    for path in folder.glob(f"*{LOG}*"):
        name = parse_file_name(path.name)
        if name is None or name.kind != LOG:
            continue
        if name.state in (DELETED, SWAP):
            replaced.append(int(name.base_offset))
        elif not name.state:
            with suppress(FileNotFoundError):
                segments[int(name.base_offset)] = segment_at(str(path))
    return segments, [base for base in replaced if base >= min(segments, default=FAR)]


def _active(segments: Iterable[SegmentFile]) -> tuple[int, int]:
    """Base offset and size of the newest segment."""
    return max(((one.base, one.size) for one in segments), default=(-1, -1))


def _cleaned(replica: Replica, replaced: Iterable[int], active: int) -> Iterator[Span]:
    """The cleaner replaces segments first, and writes its checkpoint when the log is done."""
    disk = RealDisk(Path(replica.path).parent, read_only=True)
    partition = TopicPartition(replica.topic, replica.partition)
    cleaned = replica.cleaned
    with suppress(DamagedFileError, OSError):
        cleaned = max(cleaned, read_offsets(disk, CLEANER_OFFSETS).get(partition, 0))
    yield Span(replica.cleaned, cleaned)
    yield from (Span(max(base, cleaned), active) for base in replaced)


def _truncated(replica: Replica) -> Iterator[Span]:
    """A follower truncates where a newer epoch begins."""
    known = {one.epoch for one in replica.epochs}
    with suppress(DamagedFileError, OSError):
        now = read_epochs(RealDisk(Path(replica.path), read_only=True), EPOCH_CHECKPOINT) or ()
        yield from (Span(one.start_offset, FAR) for one in now if one.epoch not in known)
