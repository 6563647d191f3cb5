"""Rebuilds producer state from the newest valid snapshot and the batches after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from holdfast.model import BatchHeader, Offset
from holdfast.protocol.records import Batch, EndMarker
from holdfast.storage.checkpoints.checkpoint_file import DamagedFileError
from holdfast.storage.disk import Disk
from holdfast.storage.file_names import SNAPSHOT, parse_file_name
from holdfast.storage.producers.producer_snapshot import read_snapshot
from holdfast.storage.producers.producer_state import ProducerBook, marker_in
from holdfast.storage.segment.batch_scan import BadBatchError, FoundHeader, walk_headers
from holdfast.storage.segment.segment import Segment

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


def newest_snapshot(
    disk: Disk, directory: str, start: Offset, end: Offset, offsets: Sequence[int]
) -> tuple[Offset, ProducerBook]:
    """The last valid snapshot at an offset in [start, end].

    Without one, an empty book at the start: then all batches are read. A damaged snapshot keeps its
    file, because its name still proves that everything below it was flushed (`pending_writes`).
    """
    for offset in reversed(offsets):
        if not start <= offset <= end:
            continue
        with suppress(DamagedFileError):
            return Offset(offset), ProducerBook(read_snapshot(disk, directory, offset))
    return start, ProducerBook()


def rebuild_producers(
    disk: Disk,
    directory: str,
    segments: Sequence[Segment],
    start: Offset,
    end: Offset,
) -> ProducerBook:
    """The producer state of a log that ends at `end`."""
    offsets = snapshot_offsets(disk, directory)
    offset, book = newest_snapshot(disk, directory, start, end, offsets)
    for segment, found in headers_from(segments, offset):
        if found.header.producer_id >= 0:
            book.append(found.header, marker_of(segment, found))
    return book


def marker_of(segment: Segment, found: FoundHeader) -> EndMarker | None:
    """The transaction marker of a batch in a file; reads only control batches."""
    if not found.header.is_control:
        return None
    return marker_in(Batch(segment.file.read(found.position, found.header.size)))


def producer_headers(
    disk: Disk, directory: str, segments: Sequence[Segment], start: Offset, end: Offset
) -> Iterator[BatchHeader]:
    """The last batches of each producer in the newest snapshot, then every batch after it.

    A snapshot (Kafka's format) has one batch per producer. A client has up to five in flight, and
    may send any of them again: the log provides the earlier ones.
    """
    offsets = snapshot_offsets(disk, directory)
    offset, book = newest_snapshot(disk, directory, start, end, offsets)
    if book.entries:
        yield from _before(segments, offset, book)
    yield from book.headers()
    for _, found in headers_from(segments, offset):
        if found.header.producer_id >= 0 and not found.header.is_control:
            yield found.header.to_model()


def _before(
    segments: Sequence[Segment], offset: Offset, book: ProducerBook
) -> Iterator[BatchHeader]:
    """Batches not long before a snapshot, of producers that have a later one in it."""
    for _, found in headers_from(segments, _retried_from(segments, offset)):
        header = found.header
        if header.base_offset >= offset:
            return
        last = book.entries.get(header.producer_id)
        if last is None or header.is_control or header.producer_epoch != last.producer_epoch:
            continue
        if header.end_offset <= last.last_offset - last.offset_delta:
            yield header.to_model()


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
    return segments[0].base_offset


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
