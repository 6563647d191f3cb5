"""What KRaft's controllers decided: topics and their ids, assignments, in-sync replicas, elections.

Every Kafka node has a copy of the metadata log in `__cluster_metadata-0`. The audit reads the
longest copy of the newest epoch, from its oldest snapshot on: a snapshot has the state, but not its
history.

An election is unclean if the record says that the leader recovers from one, or if the new leader
was neither in sync nor eligible (KIP-966) before. A record that also changes the replicas completes
a reassignment: its leader has just come into sync, unless it recovers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.pipeline.audit.controllers.kraft_log_reader import read_records
from holdfast.pipeline.audit.replicas.slice_reader import last_batch
from holdfast.protocol.errors import MalformedMessage, UnsupportedVersionError
from holdfast.protocol.kraft_records import (
    NO_LEADER_CHANGE,
    RECOVERING,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from holdfast.protocol.records import MalformedBatchError
from holdfast.storage.inspect.segment_reader import segment_at

METADATA: Final = "__cluster_metadata-0"
_SNAPSHOT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class Election(NamedTuple):
    """A partition got a leader."""

    leader: int
    leader_epoch: int
    time_ms: int
    isr: tuple[int, ...]
    """The ISR before the election."""
    is_unclean: bool
    evidence: str
    """File and offset of the record."""


class TopicIncarnation(NamedTuple):
    """A topic from its creation to its deletion, identified by its id."""

    topic_id: bytes
    created_ms: int | None
    """None if only a snapshot has it."""
    removed_ms: int | None
    """None while it exists."""
    evidence: str


class Partition(NamedTuple):
    """A partition as the controller has it now, and its elections."""

    topic_id: bytes
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    eligible: tuple[int, ...]
    leader_epoch: int
    elections: list[Election]
    """Oldest first. It grows while the log is read."""
    adding: tuple[int, ...] = ()
    """Replicas that a reassignment adds. They copy the log and may have nothing yet."""

    @property
    def holders(self) -> set[int]:
        """The replicas that have the partition's records, or had them."""
        return {*self.replicas} - {*self.adding} | {*self.isr}


class Witness(NamedTuple):
    """What the metadata logs say, and why some of them were not read."""

    metadata: Metadata | None
    """None if there is no log, or none can be read."""
    troubles: tuple[str, ...] = ()
    """Damaged logs, in sentences."""
    notes: tuple[str, ...] = ()
    """Logs of a newer, unknown format; damaged logs, if another one was read; in sentences."""


class Metadata:
    """The state of the requested topics. `apply` expects records in their order."""

    def __init__(self, topics: Collection[str], *, is_whole: bool = True) -> None:
        self.is_whole = is_whole
        """It has every election, not only the unclean ones."""
        self.incarnations: dict[str, list[TopicIncarnation]] = {name: [] for name in topics}
        """By name, oldest first."""
        self.partitions: dict[tuple[bytes, int], Partition] = {}
        self._names: dict[bytes, str] = {}

    def incarnation(self, topic: str) -> TopicIncarnation | None:
        """The topic that has the name now."""
        incarnations = self.incarnations.get(topic, [])
        return incarnations[-1] if incarnations and incarnations[-1].removed_ms is None else None

    def partition(self, topic: str, number: int) -> Partition | None:
        """A partition of the topic that has the name now."""
        incarnation = self.incarnation(topic)
        return None if incarnation is None else self.partitions.get((incarnation.topic_id, number))

    def apply(
        self, record: MetadataRecord, time_ms: int, evidence: str, *, is_snapshot: bool
    ) -> None:
        match record:
            case TopicRecord() if record.name in self.incarnations:
                self._names[record.topic_id] = record.name
                created = None if is_snapshot else time_ms
                incarnation = TopicIncarnation(record.topic_id, created, None, evidence)
                self.incarnations[record.name].append(incarnation)
            case RemoveTopicRecord() if record.topic_id in self._names:
                incarnations = self.incarnations[self._names[record.topic_id]]
                incarnations[-1] = incarnations[-1]._replace(removed_ms=time_ms, evidence=evidence)
            case PartitionRecord() if record.topic_id in self._names:
                self._set(record, time_ms, evidence)
            case PartitionChangeRecord() if record.topic_id in self._names:
                self._change(record, time_ms, evidence)

    def _set(self, record: PartitionRecord, time_ms: int, evidence: str) -> None:
        isr = tuple(record.isr)
        is_unclean = record.leader_recovery_state == RECOVERING
        first = Election(record.leader, record.leader_epoch, time_ms, isr, is_unclean, evidence)
        self.partitions[record.topic_id, record.partition_id] = Partition(
            record.topic_id,
            tuple(record.replicas),
            isr,
            tuple(record.eligible_leader_replicas or ()),
            record.leader_epoch,
            [first],
            tuple(record.adding_replicas),
        )

    def _change(self, record: PartitionChangeRecord, time_ms: int, evidence: str) -> None:
        key = record.topic_id, record.partition_id
        old = self.partitions.get(key)
        if old is None:
            return
        isr = old.isr if record.isr is None else tuple(record.isr)
        eligible = record.eligible_leader_replicas
        new = old._replace(
            replicas=old.replicas if record.replicas is None else tuple(record.replicas),
            isr=isr,
            eligible=old.eligible if eligible is None else tuple(eligible),
            adding=old.adding if record.adding_replicas is None else tuple(record.adding_replicas),
        )
        if record.leader != NO_LEADER_CHANGE:
            # Every change of the leader begins an epoch, also a change to no leader.
            epoch = old.leader_epoch + 1
            is_unclean = record.leader >= 0 and (
                record.leader_recovery_state == RECOVERING
                or (record.replicas is None and record.leader not in (*old.isr, *old.eligible))
            )
            election = Election(record.leader, epoch, time_ms, old.isr, is_unclean, evidence)
            new = new._replace(leader_epoch=epoch)
            new.elections.append(election)
        self.partitions[key] = new


def read_metadata(logs: Iterable[Path], topics: Collection[str]) -> Witness:
    """The contents of the best metadata log."""
    troubles: list[str] = []
    notes: list[str] = []
    folders = [root / METADATA for root in logs if (root / METADATA).is_dir()]
    for folder in sorted(folders, key=_how_new, reverse=True):
        try:
            return Witness(_read(folder, topics), notes=tuple(troubles))
        except UnsupportedVersionError as error:
            notes.append(
                f"the metadata log in {folder} is not used: {error}. Without it the audit knows"
                " neither elections nor assignments"
            )
        except (MalformedBatchError, MalformedMessage, OSError) as error:
            troubles.append(f"the metadata log in {folder} cannot be read: {error}")
    return Witness(None, tuple(troubles), tuple(notes))


def _how_new(folder: Path) -> tuple[int, int]:
    """The epoch and the end of the last batch, or of the last snapshot."""
    known = [(-1, -1)]
    with suppress(OSError):  # The reader reports why it cannot be read.
        known += [(epoch, end) for end, epoch, _ in _snapshots(folder)]
        for path in reversed(_segments(folder)):
            last = last_batch(segment_at(str(path)))
            if last is not None:
                known.append((last.epoch, last.end))
                break
    return max(known)


def _segments(folder: Path) -> list[Path]:
    """Oldest first."""
    return sorted(path for path in folder.glob("*.log") if path.stem.isdecimal())


def _snapshots(folder: Path) -> list[tuple[int, int, Path]]:
    """End offset, epoch and file, oldest first."""
    found = [(_SNAPSHOT.fullmatch(path.name), path) for path in folder.iterdir()]
    return sorted((int(name[1]), int(name[2]), path) for name, path in found if name)


def _read(folder: Path, topics: Collection[str]) -> Metadata:
    metadata = Metadata(topics)
    segments = _segments(folder)
    start = int(segments[0].stem) if segments else 0
    first = 0
    if start > 0 or not segments:
        usable = [one for one in _snapshots(folder) if one[0] >= start]
        if usable:
            first, _, path = usable[0]
            for _, time_ms, record, place in _records(path, is_complete=True):
                metadata.apply(record, time_ms, place, is_snapshot=True)
    for path in segments:
        for offset, time_ms, record, place in _records(path, is_complete=path != segments[-1]):
            if offset >= first:
                metadata.apply(record, time_ms, place, is_snapshot=False)
    return metadata


def _records(path: Path, *, is_complete: bool) -> Iterator[tuple[int, int, MetadataRecord, str]]:
    """Offset, time and content of each record, and where it lies."""
    for offset, time_ms, record in read_records(path, is_complete=is_complete):
        yield offset, time_ms, record, f"{path}, offset {offset}"
