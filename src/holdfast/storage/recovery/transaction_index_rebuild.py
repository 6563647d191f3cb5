"""Rebuilds a damaged transaction index of a sealed segment from the batches."""

from __future__ import annotations

from holdfast.storage.disk import write_whole
from holdfast.storage.file_names import TRANSACTION_INDEX
from holdfast.storage.log import Log
from holdfast.storage.producers.replay import (
    headers_from,
    marker_of,
    newest_snapshot,
    snapshot_offsets,
)
from holdfast.storage.segment.segment import Segment
from holdfast.storage.segment.transaction_index import AbortedTransaction


def rebuild_transactions(log: Log, segment: Segment) -> list[AbortedTransaction]:
    """Rebuild the index of one segment, from the snapshot at its start or an earlier one."""
    disk, directory = log.disk, log.directory
    offset, book = newest_snapshot(
        disk,
        directory,
        log.log_start_offset,
        segment.base_offset,
        snapshot_offsets(disk, directory),
    )
    place = log.segments.index(segment)
    aborted: list[AbortedTransaction] = []
    for holder, found in headers_from(log.segments[: place + 1], offset):
        if found.header.producer_id < 0:
            continue
        ended = book.append(found.header, marker_of(holder, found))
        if holder is segment and ended is not None and ended.is_aborted:
            numbers = (ended.first_offset, ended.last_offset, ended.last_stable_offset)
            aborted.append(AbortedTransaction(ended.producer_id, *numbers))
    content = b"".join(one.to_bytes() for one in aborted)
    write_whole(disk, segment.path(TRANSACTION_INDEX), content)
    segment.set_aborted(aborted)
    return aborted
