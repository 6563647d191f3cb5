"""Reads logs without opening them for use: Holdfast's or Apache Kafka's, running or not.

Nothing here writes, repairs or locks. These functions return what they find; `log_verification`
checks it.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.model import EpochEntry
from holdfast.protocol.records import Compression, RecordBatchHeader
from holdfast.storage.checkpoints.checkpoint_file import read_epochs
from holdfast.storage.disk import Disk, read_whole
from holdfast.storage.file_names import (
    EPOCH_CHECKPOINT,
    LOG,
    OFFSET_INDEX,
    SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
    file_name,
    parse_file_name,
    partition_of,
)
from holdfast.storage.producers.producer_snapshot import ProducerEntry, decode_snapshot
from holdfast.storage.segment.batch_scan import FoundBatch
from holdfast.storage.segment.offset_and_time_index import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    OffsetIndex,
    TimeIndex,
)
from holdfast.storage.segment.transaction_index import AbortedTransaction, decode_transactions


class LogFiles(NamedTuple):
    """One partition's directory, and the base offsets of its segments and snapshots."""

    directory: str
    bases: list[int]
    snapshots: list[int]

    def path(self, base: int, kind: str) -> str:
        """The path of a file."""
        name = file_name(base, kind)
        return f"{self.directory}/{name}" if self.directory else name


def log_files(disk: Disk, directory: str) -> LogFiles:
    """The log files in a directory; no segments if it is not a log."""
    names = [parse_file_name(entry.name) for entry in disk.list(directory)]
    used = [name for name in names if name is not None and not name.state]
    return LogFiles(
        directory,
        sorted(int(name.base_offset) for name in used if name.kind == LOG),
        sorted(int(name.base_offset) for name in used if name.kind == SNAPSHOT),
    )


def find_logs(disk: Disk) -> list[LogFiles]:
    """The log in the root itself, or the logs in the directories below it."""
    here = log_files(disk, "")
    if here.bases:
        return [here]
    found = [
        log_files(disk, entry.name)
        for entry in sorted(disk.list(""))
        if entry.is_directory and partition_of(entry.name) is not None
    ]
    return [one for one in found if one.bases]


def batch_facts(found: FoundBatch) -> dict[str, object]:
    """The fields of a header, by the names that dumps use."""
    header = found.header
    return {
        "position": found.position,
        "base_offset": header.base_offset,
        "last_offset": header.base_offset + header.last_offset_delta,
        "count": header.record_count,
        "leader_epoch": header.leader_epoch,
        "size": header.size,
        "compression": codec_name(header),
        "timestamp_type": "LogAppendTime" if header.is_append_time else "CreateTime",
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "delete_horizon_ms": header.delete_horizon_ms,
        "crc": header.crc,
    }


def codec_name(header: RecordBatchHeader) -> str:
    """The codec's name, or its number if it has none."""
    try:
        return Compression(header.compression).name.lower()
    except ValueError:
        return str(header.compression)


class Indexes(NamedTuple):
    """Both indexes of a segment; None where a file is missing."""

    offsets: OffsetIndex | None
    times: TimeIndex | None
    is_padded: bool
    """A Kafka that runs or was killed leaves them padded with zeros."""


def read_indexes(disk: Disk, files: LogFiles, base: int) -> Indexes:
    """Raises DamagedFileError if one of them is not an index."""
    offset_content, is_offset_padded = _unpadded(disk, files.path(base, OFFSET_INDEX), 8)
    time_content, is_time_padded = _unpadded(disk, files.path(base, TIME_INDEX), 12)
    offsets = times = None
    if offset_content is not None:
        path = files.path(base, OFFSET_INDEX)
        offsets = OffsetIndex.from_bytes(base, offset_content, path)
    if time_content is not None:
        times = TimeIndex.from_bytes(base, time_content, files.path(base, TIME_INDEX))
    return Indexes(offsets, times, is_offset_padded or is_time_padded)


def _unpadded(disk: Disk, path: str, entry_bytes: int) -> tuple[bytes | None, bool]:
    content = read_whole(disk, path)
    if content is None:
        return None, False
    assert entry_bytes in (OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES)
    stripped = content.rstrip(b"\0")
    size = -(-len(stripped) // entry_bytes) * entry_bytes
    is_padded = len(content) % entry_bytes == 0 and len(content) > size
    return (content[:size], True) if is_padded else (content, False)


def read_producers(disk: Disk, files: LogFiles, offset: int) -> list[ProducerEntry]:
    """Read a snapshot. Raises DamagedFileError if it is invalid."""
    path = files.path(offset, SNAPSHOT)
    return decode_snapshot(read_whole(disk, path) or b"", path)


def read_aborted(disk: Disk, files: LogFiles, base: int) -> list[AbortedTransaction]:
    """Read a transaction index. Raises DamagedFileError if it is invalid."""
    path = files.path(base, TRANSACTION_INDEX)
    return decode_transactions(read_whole(disk, path) or b"", path)


def checkpointed_epochs(disk: Disk, files: LogFiles) -> list[EpochEntry] | None:
    """Read the leader-epoch checkpoint. Raises DamagedFileError if it is invalid."""
    prefix = f"{files.directory}/" if files.directory else ""
    return read_epochs(disk, f"{prefix}{EPOCH_CHECKPOINT}")
