"""One replica's log as its files show it: where it starts and ends, and which epoch wrote what.

Nothing is opened for use, so the files may be a running broker's, a dead one's, or Apache Kafka's.
What cannot be read is said in `errors`; the rest is told all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from holdfast.model import EpochEntry, LeaderEpoch, Offset, TopicPartition
from holdfast.pipeline.audit.findings import EpochStart, ReplicaFacts
from holdfast.storage import RealDisk
from holdfast.storage.checkpoints import DamagedFileError, read_offsets
from holdfast.storage.inspect import LogFiles, checkpointed_epochs, log_files
from holdfast.storage.names import (
    EPOCH_CHECKPOINT,
    HIGH_WATERMARKS,
    LOG,
    LOG_STARTS,
    RECOVERY_POINTS,
)
from holdfast.storage.properties import read_meta_properties
from holdfast.storage.scan import BadBatchError, walk_headers

_HEADER_LINES: Final = 2
"""Of a checkpoint: its version, and how many entries follow."""


def epoch_at(replica: ReplicaFacts, offset: int) -> EpochStart | None:
    """The reign that wrote this offset here; None if the log does not have it."""
    if not replica.log_start_offset <= offset < replica.log_end_offset:
        return None
    begun = [entry for entry in replica.epochs if entry.start_offset <= offset]
    return begun[-1] if begun else None


def last_epoch(replica: ReplicaFacts) -> int:
    return replica.epochs[-1].epoch if replica.epochs else -1


def newest(replicas: Iterable[ReplicaFacts]) -> ReplicaFacts | None:
    """The copy that readers are served from now: the highest epoch, then the longest."""
    return max(replicas, key=lambda one: (last_epoch(one), one.log_end_offset), default=None)


def line_of(replica: ReplicaFacts, entry: EpochStart) -> str:
    """Where the checkpoint says it: file and line."""
    line = replica.epochs.index(entry) + _HEADER_LINES + 1
    return f"{Path(replica.path) / EPOCH_CHECKPOINT}:{line}"


def broker_id(name: str, folder: Path) -> int | None:
    """What meta.properties says; else the number in the name: b2, broker-2."""
    try:
        meta = read_meta_properties(RealDisk(folder, read_only=True))
    except (DamagedFileError, OSError):
        meta = None
    if meta is not None:
        return meta.node_id
    digits = re.search(r"(\d+)$", name)
    return int(digits[1]) if digits else None


def read_replicas(logs: Mapping[str, Path], partition: TopicPartition) -> list[ReplicaFacts]:
    """Every broker's copy of a partition; a broker without one is left out."""
    found = (_read(name, Path(folder), partition) for name, folder in logs.items())
    return [one for one in found if one is not None]


def _read(name: str, folder: Path, partition: TopicPartition) -> ReplicaFacts | None:
    directory = str(partition)
    if not (folder / directory).is_dir():
        return None
    disk = RealDisk(folder, read_only=True)
    errors: list[str] = []
    files = log_files(disk, directory)
    end, walked = _walk(disk, files, errors)
    epochs = _epochs(disk, files, errors) or walked
    start = _checkpointed(disk, LOG_STARTS, partition, errors) or 0
    return ReplicaFacts(
        broker=name,
        path=str(folder / directory),
        log_start_offset=max(start, files.bases[0] if files.bases else 0),
        log_end_offset=end,
        epochs=tuple(
            EpochStart(epoch=entry.epoch, start_offset=entry.start_offset) for entry in epochs
        ),
        high_watermark=_checkpointed(disk, HIGH_WATERMARKS, partition, errors),
        flushed=_checkpointed(disk, RECOVERY_POINTS, partition, errors),
        errors=tuple(errors),
    )


def _epochs(disk: RealDisk, files: LogFiles, errors: list[str]) -> list[EpochEntry]:
    try:
        return checkpointed_epochs(disk, files) or []
    except DamagedFileError as error:
        errors.append(str(error))
        return []


def _checkpointed(
    disk: RealDisk, file: str, partition: TopicPartition, errors: list[str]
) -> int | None:
    try:
        return read_offsets(disk, file).get(partition)
    except DamagedFileError as error:
        errors.append(str(error))
        return None


def _walk(disk: RealDisk, files: LogFiles, errors: list[str]) -> tuple[int, list[EpochEntry]]:
    """Where the log ends, and the epochs of the last segment that has any; by headers alone."""
    for base in reversed(files.bases):
        end, epochs = base, list[EpochEntry]()
        file = disk.open(files.path(base, LOG))
        try:
            for _, header in walk_headers(file, 0, file.size):
                end = header.end_offset
                if not epochs or header.leader_epoch > epochs[-1].epoch:
                    entry = EpochEntry(LeaderEpoch(header.leader_epoch), Offset(header.base_offset))
                    epochs.append(entry)
        except BadBatchError as error:
            errors.append(str(error))
        finally:
            file.close()
        if epochs or base == files.bases[0]:
            return end, epochs
    return 0, []
