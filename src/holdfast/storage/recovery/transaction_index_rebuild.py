"""Rebuilds a damaged transaction index of a sealed segment from the batches."""

from __future__ import annotations

from holdfast.core import ProducerStates
from holdfast.storage.disk import write_whole
from holdfast.storage.file_names import TRANSACTION_INDEX
from holdfast.storage.log import Log
from holdfast.storage.producers.replay import (
    feed_found,
    headers_from,
    restore_snapshot,
    snapshot_offsets,
)
from holdfast.storage.segment.segment import Segment
from holdfast.storage.segment.transaction_index import AbortedTransaction


def rebuild_transactions(log: Log, segment: Segment) -> list[AbortedTransaction]:
    """Rebuild the index of one segment, from the snapshot at its start or an earlier one."""
    disk, directory = log.disk, log.directory
    producers = ProducerStates()
    bounds = log.log_start_offset, segment.base_offset
    snapshots = snapshot_offsets(disk, directory)
    offset = restore_snapshot(producers, disk, directory, snapshots, *bounds)
    place = log.segments.index(segment)
    aborted: list[AbortedTransaction] = []
    for holder, found in headers_from(log.segments[: place + 1], offset):
        ended = feed_found(producers, holder, found)
        if holder is segment and ended is not None:
            aborted.append(ended)
    content = b"".join(one.to_bytes() for one in aborted)
    write_whole(disk, segment.path(TRANSACTION_INDEX), content)
    segment.set_aborted(aborted)
    return aborted
