"""Restores the core's producer states from the newest valid snapshot and the batches after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from holdfast.core import ProducerStates
from holdfast.model import EndMarker, Offset
from holdfast.protocol.records import (
    Batch,
    MalformedBatchError,
    RecordBatchHeader,
    read_end_marker,
    read_records,
)
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.disk import Disk
from holdfast.storage.file_names import SNAPSHOT, parse_file_name
from holdfast.storage.producers.producer_snapshot import read_snapshot
from holdfast.storage.segment.batch_scan import BadBatchError, FoundHeader, walk_headers
from holdfast.storage.segment.segment import Segment
from holdfast.storage.segment.transaction_index import AbortedTransaction

RETRIED_BYTES: Final = 5 << 20
"""How far before a snapshot to search for batches that a client may send again: five of the
largest default size.
"""


def snapshot_offsets(disk: Disk, directory: str) -> list[int]:
    """The offsets of the producer snapshots in a directory, oldest first."""
    names = map(parse_file_name, disk.names(directory))
    return sorted(
        int(name.base_offset) for name in names if name and name.kind == SNAPSHOT and not name.state
    )


def restore_snapshot(
    producers: ProducerStates,
    disk: Disk,
    directory: str,
    snapshots: Sequence[int],
    start: Offset,
    end: Offset,
) -> Offset:
    """Restore the last valid snapshot at an offset in [start, end], and return that offset.

    Without one, return the start: then all batches are read. A damaged snapshot keeps its file,
    because its name still proves that everything below it was flushed (`pending_writes`).
    """
    for offset in reversed(snapshots):
        if start <= offset <= end:
            with suppress(DamagedFileError):
                producers.restore(read_snapshot(disk, directory, offset), Offset(offset))
                return Offset(offset)
    producers.restore()
    return start


def replay(
    producers: ProducerStates,
    disk: Disk,
    directory: str,
    segments: Sequence[Segment],
    start: Offset,
    end: Offset,
    snapshots: Sequence[int],
) -> None:
    """Restore the producer states of a log that ends at `end`.

    A snapshot (Kafka's format) has one batch per producer. A client has up to five in flight, and
    may send any of them again: the log provides the earlier ones.
    """
    offset = restore_snapshot(producers, disk, directory, snapshots, start, end)
    if producers.states:
        _recall(producers, segments, offset)
    for segment, found in headers_from(segments, offset):
        feed_found(producers, segment, found)


def _recall(producers: ProducerStates, segments: Sequence[Segment], offset: Offset) -> None:
    """Add batches from not long before a snapshot at `offset`."""
    for _, found in headers_from(segments, _retried_from(segments, offset)):
        if found.header.base_offset >= offset:
            return
        if found.header.producer_id in producers.states:
            producers.recall(found.header.to_model())


def feed_found(
    producers: ProducerStates, segment: Segment, found: FoundHeader
) -> AbortedTransaction | None:
    """`feed` a batch in a file; reads only control batches."""
    header = found.header
    if header.producer_id < 0:
        return None
    batch = Batch(segment.file.read(found.position, header.size)) if header.is_control else None
    return feed(producers, header, batch)


def feed(
    producers: ProducerStates, header: RecordBatchHeader, control: Batch | None
) -> AbortedTransaction | None:
    """Add a batch to the producer states, a control batch with its bytes.

    Returns the transaction that it aborts, for the transaction index.
    """
    marker = _marker_in(control) if control is not None else None
    ended = producers.append(header.to_model(), marker)
    if ended is None or not ended.is_aborted:
        return None
    numbers = (ended.first_offset, ended.last_offset, ended.last_stable_offset)
    return AbortedTransaction(ended.producer_id, *numbers)


def _marker_in(batch: Batch) -> EndMarker | None:
    """The transaction marker in a control batch; None if it has none.

    None also for a batch that cannot be parsed: its CRC matches, so the log is not damaged.
    """
    header = batch.header
    try:
        for record in read_records(batch):
            marker = read_end_marker(record, header.producer_id, header.producer_epoch)
            if marker is not None:
                return marker
    except MalformedBatchError:
        pass
    return None


def _retried_from(segments: Sequence[Segment], offset: Offset) -> int:
    """The offset of a batch about RETRIED_BYTES before this one."""
    left = RETRIED_BYTES
    for segment in reversed(segments):
        if segment.base_offset >= offset:
            continue
        found = segment.find(offset)
        size = segment.size if found is None else found.position
        if size > left:
            entry = segment.index().last_start(size - left)
            return segment.base_offset if entry is None else entry.offset + 1
        left -= size
    return segments[0].base_offset if segments else offset


def headers_from(segments: Sequence[Segment], offset: int) -> Iterator[tuple[Segment, FoundHeader]]:
    """The batches at or after an offset, headers only.

    A damaged segment ends at the damage: below the recovery point it cannot be repaired here, and
    a start must not fail because of it. Log verification finds and reports it.
    """
    following = [*segments[1:], None]
    for segment, after in zip(segments, following, strict=False):
        if after is not None and after.base_offset <= offset:
            continue
        try:
            first = segment.find(max(offset, segment.base_offset))
            if first is None:
                continue
            for found in walk_headers(segment.file, first.position, segment.size):
                yield segment, found
        except BadBatchError:
            continue
