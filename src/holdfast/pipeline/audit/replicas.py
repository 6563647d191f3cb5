"""Every broker's copy of every partition, from its files: where it starts and ends, who led when.

Read by the driver, before anything is decoded. Nothing is written, mended or locked: the brokers
may be running, and may be Apache Kafka's.

The *truth* of a partition is the copy with the highest leader epoch, and of those the longest: it
is the current leader's, or what its successor must agree with. The epoch is the last one in
leader-epoch-checkpoint where that goes beyond the records: a leader writes it when it is elected,
before it has any record of its own, and an unclean election must not be overlooked until then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from holdfast.model import TopicPartition
from holdfast.pipeline.audit.findings import EpochStart
from holdfast.pipeline.audit.slices import Segment, last_batch
from holdfast.storage import Disk, RealDisk
from holdfast.storage.checkpoints import DamagedFileError, read_offsets
from holdfast.storage.inspect import LogFiles, checkpointed_epochs, log_files
from holdfast.storage.names import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG,
    LOG_STARTS,
    RECOVERY_POINTS,
    partition_of,
)

Offsets = Mapping[TopicPartition, int]
_T = TypeVar("_T")


class Replica(NamedTuple):
    """One copy. Executors get it as it is."""

    broker: str
    topic: str
    partition: int
    path: str
    segments: tuple[Segment, ...]
    start: int
    end: int
    epoch: int
    high_watermark: int | None
    flushed: int | None
    cleaned: int
    """Below it the log may have been compacted; 0 if it never was."""
    epochs: tuple[EpochStart, ...]


class Cluster(NamedTuple):
    """All copies of the audited topics."""

    brokers: tuple[str, ...]
    partitions: dict[tuple[str, int], tuple[Replica, ...]]
    """The truth first."""
    missing: tuple[str, ...]
    """What could not be read, in sentences."""
    is_partial: bool
    """A broker's directory is absent: what the others lack may be there."""


def find_replicas(logs: Mapping[str, Path], topics: Collection[str]) -> Cluster:
    """Look into every directory."""
    found: dict[tuple[str, int], list[Replica]] = {}
    missing: list[str] = []
    is_partial = False
    for broker, root in logs.items():
        if not root.is_dir():
            missing.append(f"the log directory of {broker} is not there: {root}")
            is_partial = True
            continue
        for replica in _replicas_of(broker, root, topics, missing):
            found.setdefault((replica.topic, replica.partition), []).append(replica)
    partitions = {
        partition: tuple(sorted(replicas, key=_truth_first))
        for partition, replicas in sorted(found.items())
    }
    return Cluster(tuple(logs), partitions, tuple(missing), is_partial)


def _truth_first(replica: Replica) -> tuple[int, int, str]:
    return (-replica.epoch, -replica.end, replica.broker)


def _replicas_of(
    broker: str, root: Path, topics: Collection[str], missing: list[str]
) -> list[Replica]:
    disk = RealDisk(root, read_only=True)
    checkpoints = _Checkpoints(
        *(
            _believed(partial(_offsets, disk, name), broker, missing) or {}
            for name in (HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS, CLEANER_OFFSETS)
        )
    )
    replicas = []
    for entry in sorted(disk.list("")):
        partition = partition_of(entry.name) if entry.is_directory else None
        if partition is None or partition.topic not in topics:
            continue
        files = log_files(disk, entry.name)
        epochs = _believed(partial(checkpointed_epochs, disk, files), broker, missing) or ()
        starts = tuple(EpochStart(epoch=one.epoch, start_offset=one.start_offset) for one in epochs)
        replicas.append(_replica(broker, root, partition, files, starts, checkpoints))
    return replicas


def _offsets(disk: Disk, name: str) -> Offsets:
    """Kafka makes the file before it has anything to write into it."""
    is_empty = disk.exists(name) and not disk.size(name)
    return {} if is_empty else read_offsets(disk, name)


class _Checkpoints(NamedTuple):
    high_watermarks: Offsets
    recovery_points: Offsets
    log_starts: Offsets
    cleaner_offsets: Offsets


def _believed(read: Callable[[], _T], broker: str, missing: list[str]) -> _T | None:
    """What a small file says, or None and a sentence."""
    try:
        return read()
    except DamagedFileError as error:
        missing.append(f"{broker}: {error}")
        return None


def _replica(
    broker: str,
    root: Path,
    partition: TopicPartition,
    files: LogFiles,
    epochs: tuple[EpochStart, ...],
    checkpoints: _Checkpoints,
) -> Replica:
    segments = tuple(_segment(root, files, base) for base in files.bases)
    first = segments[0].base if segments else 0
    start = max(first, checkpoints.log_starts.get(partition, 0))
    last = next((found for one in reversed(segments) if (found := last_batch(one))), None)
    end, epoch = last or (first, -1)
    return Replica(
        broker=broker,
        topic=partition.topic,
        partition=partition.partition,
        path=str(root / files.directory),
        segments=segments,
        start=start,
        end=max(end, start),
        epoch=max(epoch, epochs[-1].epoch if epochs else -1),
        high_watermark=checkpoints.high_watermarks.get(partition),
        flushed=checkpoints.recovery_points.get(partition),
        cleaned=checkpoints.cleaner_offsets.get(partition, 0),
        epochs=epochs,
    )


def _segment(root: Path, files: LogFiles, base: int) -> Segment:
    path = root / files.path(base, LOG)
    return Segment(base, str(path), path.stat().st_size)
