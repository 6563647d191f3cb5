"""Every broker's copy of every partition, from its files: start, end and leader epochs.

The driver reads it before anything is decoded. It writes, repairs and locks nothing: the brokers
may be running, and may be Apache Kafka's. So the order matters: high watermarks are read first,
then the cluster's metadata, then the logs. Otherwise a growing copy would seem to lack what its
checkpoint says it has. `truth` decides which copy is the truth, and what each of them must have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from holdfast.model import TopicPartition
from holdfast.pipeline.audit.causes.leader_epochs import broker_id
from holdfast.pipeline.audit.controllers.coordination_store import find_store, read_store
from holdfast.pipeline.audit.controllers.kraft_metadata import Metadata, Partition, read_metadata
from holdfast.pipeline.audit.findings.findings import EpochStart
from holdfast.pipeline.audit.replicas.slice_reader import Last, last_batch
from holdfast.pipeline.audit.replicas.truth import Replica, Stranger, behind, standing
from holdfast.pipeline.errors import PipelineError
from holdfast.storage import Disk, RealDisk
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError, read_offsets
from holdfast.storage.checkpoints.meta_properties import read_topic_id
from holdfast.storage.file_names import (
    CLEANER_OFFSETS,
    EPOCH_CHECKPOINT,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    partition_of,
)
from holdfast.storage.inspect.log_files import LogFiles, checkpointed_epochs, log_files
from holdfast.storage.inspect.segment_reader import FAR, SegmentFile, list_segments

Offsets = Mapping[TopicPartition, int]
_T = TypeVar("_T")
Name = tuple[str, int]
"""Topic and partition."""


class Cluster(NamedTuple):
    """All copies of the audited topics."""

    brokers: tuple[str, ...]
    partitions: dict[Name, tuple[Replica, ...]]
    """The truth first."""
    missing: tuple[str, ...]
    """What could not be read, in sentences."""
    is_partial: bool
    """A broker's directory is absent: it may have what the others lack."""
    metadata: Metadata | None
    """What the controllers decided; None if no directory has it."""
    strangers: dict[Name, tuple[Stranger, ...]]
    """Logs with the name of a partition that belong to a deleted topic."""
    notes: tuple[str, ...]
    """Notes, in sentences."""


class _Checkpoints(NamedTuple):
    high_watermarks: Offsets
    recovery_points: Offsets
    log_starts: Offsets
    cleaner_offsets: Offsets


class _Broker(NamedTuple):
    """A directory that exists."""

    name: str
    number: int | None
    root: Path
    checkpoints: _Checkpoints
    taken_ms: int
    """When the high watermarks were written; in a copy, perhaps when they were copied."""


def find_replicas(
    logs: Mapping[str, Path], topics: Collection[str], store: str | None = None
) -> Cluster:
    """Look into every directory, and into the coordination store of Holdfast's brokers."""
    missing = [
        f"the log directory of {broker} is not there: {root}"
        for broker, root in logs.items()
        if not root.is_dir()
    ]
    is_partial = len(missing) > 0
    brokers = [_broker(name, root, missing) for name, root in logs.items() if root.is_dir()]
    witness = read_metadata([one.root for one in brokers], topics)
    missing += witness.troubles
    metadata = witness.metadata
    if metadata is None:
        metadata = _from_store(brokers, topics, store)
    missing += _empty(one for one in brokers if metadata is None or one.number is None)
    copies: dict[Name, list[Replica]] = {}
    strangers: dict[Name, list[Stranger]] = {}
    for broker in brokers:
        for replica in _replicas_of(broker, topics, missing):
            copies.setdefault((replica.topic, replica.partition), []).append(replica)
        for topic, partition, stranger in _gone(broker, topics):
            strangers.setdefault((topic, partition), []).append(stranger)
    for broker in brokers:
        for replica in tuple(_absent(broker, topics, metadata, copies, strangers)):
            copies.setdefault((replica.topic, replica.partition), []).append(replica)
    partitions = {}
    notes = [*witness.notes]
    for name, found in sorted(copies.items()):
        known = None if metadata is None else metadata.partition(*name)
        partitions[name], others = standing(found, known)
        strangers[name] = [*strangers.get(name, ()), *others]
        notes += _older(partitions[name], known)
    return Cluster(
        tuple(logs),
        {name: found for name, found in partitions.items() if found},
        tuple(missing),
        is_partial,
        metadata,
        {name: tuple(found) for name, found in strangers.items()},
        tuple(notes),
    )


def _empty(brokers: Iterable[_Broker]) -> Iterable[str]:
    """Directories that no broker has used, or whose files are gone; nothing says which."""
    for one in brokers:
        if not any(one.root.iterdir()):
            yield f"the log directory of {one.name} is empty: {one.root}"


def _older(replicas: Sequence[Replica], known: Partition | None) -> Iterable[str]:
    for one in behind(replicas, known):
        truth = replicas[0]
        yield (
            f"{one.topic}-{one.partition}: the log of {one.broker} ends at {one.end}, before the"
            f" high watermark {truth.high_watermark} that {truth.broker} knows, and {one.broker} is"
            " in the ISR. Directories that are copied one after the other look like this; if all"
            " brokers had ended before, the log lacks records"
        )


def _from_store(
    brokers: Sequence[_Broker], topics: Collection[str], store: str | None
) -> Metadata | None:
    """What Holdfast's controllers decided. A store that no option names may be unreadable."""
    if store is not None:
        return read_store(store, topics)
    found = find_store(one.root for one in brokers)
    with suppress(PipelineError):
        return None if found is None else read_store(found, topics)
    return None


def _broker(name: str, root: Path, missing: list[str]) -> _Broker:
    disk = RealDisk(root, read_only=True)
    taken_ms = FAR
    with suppress(FileNotFoundError):
        taken_ms = (root / HIGH_WATERMARKS).stat().st_mtime_ns // 1_000_000
    checkpoints = _Checkpoints(
        *(
            _read_or_report(partial(_offsets, disk, file), name, missing) or {}
            for file in (HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS, CLEANER_OFFSETS)
        )
    )
    return _Broker(name, broker_id(name, root), root, checkpoints, taken_ms)


def _offsets(disk: Disk, name: str) -> Offsets:
    return {} if _is_empty(disk, name) else read_offsets(disk, name)


def _epochs(disk: Disk, files: LogFiles) -> tuple[EpochStart, ...]:
    if _is_empty(disk, f"{files.directory}/{EPOCH_CHECKPOINT}"):
        return ()
    return tuple(
        EpochStart(epoch=one.epoch, start_offset=one.start_offset)
        for one in checkpointed_epochs(disk, files) or ()
    )


def _is_empty(disk: Disk, name: str) -> bool:
    """Kafka creates a checkpoint before it has anything to write into it."""
    return disk.exists(name) and not disk.size(name)


def _read_or_report(read: Callable[[], _T], broker: str, missing: list[str]) -> _T | None:
    """The content of a small file, or None and a sentence."""
    try:
        return read()
    except DamagedFileError as error:
        missing.append(f"{broker}: {error}")
        return None


def _replicas_of(broker: _Broker, topics: Collection[str], missing: list[str]) -> Iterable[Replica]:
    disk = RealDisk(broker.root, read_only=True)
    for entry in sorted(disk.list("")):
        partition = partition_of(entry.name) if entry.is_directory else None
        if partition is None or partition.topic not in topics:
            continue
        files = log_files(disk, entry.name)
        segments = list_segments(disk, files)
        last = next((found for one in reversed(segments) if (found := last_batch(one))), None)
        # After the batches: an epoch is in the checkpoint before its first record is in the log.
        epochs = _read_or_report(partial(_epochs, disk, files), broker.name, missing)
        topic_id = _read_or_report(partial(read_topic_id, disk, entry.name), broker.name, [])
        yield _replica(broker, partition, segments, last)._replace(
            epochs=epochs or (),
            topic_id=None if topic_id is None else topic_id.bytes,
        )


def _replica(
    broker: _Broker,
    partition: TopicPartition,
    segments: tuple[SegmentFile, ...],
    last: Last | None,
) -> Replica:
    first = segments[0].base if segments else 0
    active = segments[-1].base if segments else 0
    checkpoints = broker.checkpoints
    start = max(first, checkpoints.log_starts.get(partition, 0))
    cleaned = checkpoints.cleaner_offsets.get(partition, 0)
    last = last or Last(first, -1, first, -1)
    # The cleaner may remove the records before an active segment that is still empty.
    end = max(last.end, start, active)
    return Replica(
        broker=broker.name,
        number=broker.number,
        topic=partition.topic,
        partition=partition.partition,
        path=str(broker.root / str(partition)),
        segments=segments,
        start=start,
        end=end,
        solid_end=end if last.solid_end < cleaned else max(last.solid_end, start),
        epoch=last.epoch,
        high_watermark=checkpoints.high_watermarks.get(partition),
        flushed=checkpoints.recovery_points.get(partition),
        cleaned=cleaned,
        written_ms=last.time_ms,
        taken_ms=broker.taken_ms,
    )


def _gone(broker: _Broker, topics: Collection[str]) -> Iterable[tuple[str, int, Stranger]]:
    """Folders that wait for their deletion: `<topic>-<partition>.<hex>-delete`, or -stray."""
    disk = RealDisk(broker.root, read_only=True)
    for entry in sorted(disk.list("")):
        name, dot, _ = entry.name.rpartition(".")
        partition = partition_of(name) if dot and entry.is_directory else None
        if partition is None or partition.topic not in topics:
            continue
        if entry.name.endswith(("-delete", "-stray")):
            topic_id = _read_or_report(partial(read_topic_id, disk, entry.name), broker.name, [])
            path = str(broker.root / entry.name)
            found = Stranger(broker.name, path, None if topic_id is None else topic_id.bytes)
            yield partition.topic, partition.partition, found


def _absent(
    broker: _Broker,
    topics: Collection[str],
    metadata: Metadata | None,
    copies: Mapping[Name, list[Replica]],
    strangers: Mapping[Name, list[Stranger]],
) -> Iterable[Replica]:
    """Copies without a folder that should exist: by the assignment or a checkpoint.

    A checkpoint may be older than the removal of a copy, whose folder then waits beside it; and
    where the assignment is known, it decides. A broker may have several directories.
    """
    named = {one: None for one in broker.checkpoints.high_watermarks if one.topic in topics}
    for topic, number in copies:
        known = None if metadata is None else metadata.partition(topic, number)
        if known is not None and broker.number in known.replicas:
            named[TopicPartition(topic, number)] = None
    for partition in named:
        name = (partition.topic, partition.partition)
        known = None if metadata is None else metadata.partition(*name)
        is_here = any(
            one.broker == broker.name or (one.number is not None and one.number == broker.number)
            for one in copies.get(name, ())
        )
        is_removed = any(one.broker == broker.name for one in strangers.get(name, ()))
        is_due = not is_removed if known is None else broker.number in known.replicas
        if is_due and not is_here:
            yield _replica(broker, partition, (), None)._replace(is_absent=True)
