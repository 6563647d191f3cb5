"""Producer snapshots, in Kafka's format: the state of a log's producers at one offset.

A snapshot saves reading the log from its start. Every roll and every clean shutdown has one. It is
written when everything below its offset is on the disk (`pending_writes` says why), without a flush
of its own: the CRC detects a torn one, and an earlier snapshot or the log itself can replace it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.core import ProducerState, SeenBatch
from holdfast.model import NO_OFFSET, NO_SEQUENCE, SEQUENCES, Offset
from holdfast.protocol.records import crc32c
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.disk import Disk, read_whole
from holdfast.storage.file_names import SNAPSHOT, file_name

_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_BATCH = SeenBatch(NO_SEQUENCE, NO_SEQUENCE, NO_OFFSET, Offset(0))

assert _ENTRY.size == 46


class ProducerEntry(NamedTuple):
    """One producer, with its last batch only."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    """Last offset minus first offset of its last batch."""
    timestamp: int
    coordinator_epoch: int
    transaction_start: int

    @classmethod
    def of(cls, state: ProducerState) -> ProducerEntry:
        """The entry of a producer."""
        _, last_sequence, base, end = state.batches[-1] if state.batches else _NO_BATCH
        return cls(*state[:2], last_sequence, end - 1, end - base - 1, *state[3:])

    def to_state(self) -> ProducerState:
        """The producer for the core, with its last batch only."""
        last, delta = self.last_sequence, self.offset_delta
        first = (last - delta) % SEQUENCES if last != NO_SEQUENCE else NO_SEQUENCE
        base, end = Offset(self.last_offset - delta), Offset(self.last_offset + 1)
        batches = (SeenBatch(first, last, base, end),) if self.last_offset >= 0 else ()
        return ProducerState._make((*self[:2], batches, *self[5:]))


def encode_snapshot(states: Iterable[ProducerState]) -> bytes:
    """The file's content."""
    packed = [_ENTRY.pack(*ProducerEntry.of(state)) for state in states]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(content: bytes, path: str) -> list[ProducerEntry]:
    """Raises DamagedFileError unless every byte is as it was written."""
    if len(content) < _HEAD.size + _COUNT.size:
        raise DamagedFileError(path, "truncated")
    version, crc = _HEAD.unpack_from(content)
    body = content[_HEAD.size :]
    if version != _VERSION:
        raise DamagedFileError(path, f"version {version}, not {_VERSION}")
    if crc32c(body) != crc:
        raise DamagedFileError(path, "the CRC does not match")
    [count] = _COUNT.unpack_from(body)
    if count < 0 or len(body) != _COUNT.size + count * _ENTRY.size:
        raise DamagedFileError(path, f"{count} entries in {len(body)} bytes")
    return [ProducerEntry._make(fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def snapshot_path(directory: str, offset: int) -> str:
    """The path of the snapshot at an offset."""
    return f"{directory}/{file_name(offset, SNAPSHOT)}"


def read_snapshot(disk: Disk, directory: str, offset: int) -> list[ProducerState]:
    """Raises DamagedFileError if it is damaged or missing."""
    path = snapshot_path(directory, offset)
    content = read_whole(disk, path)
    if content is None:
        raise DamagedFileError(path, "missing")
    return [entry.to_state() for entry in decode_snapshot(content, path)]


def write_snapshot(disk: Disk, directory: str, offset: int, content: bytes) -> None:
    """Write a snapshot; replaces one at the same offset."""
    path = snapshot_path(directory, offset)
    if disk.exists(path):
        disk.remove(path)
    file = disk.open(path, create=True)
    try:
        file.append([content])
    finally:
        file.close()
