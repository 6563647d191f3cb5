"""The checks before an append (offsets follow, sizes fit) and the producer states after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.core import ProducerStates
from holdfast.model import Offset
from holdfast.protocol.records import Batch, RecordBatchHeader, parse_header
from holdfast.protocol.records.batch_header import CONTROL, LENGTH_END
from holdfast.storage.disk import Buffer
from holdfast.storage.errors import AppendRefusedError
from holdfast.storage.log_settings import LogSettings
from holdfast.storage.producers.replay import feed
from holdfast.storage.segment.offset_and_time_index import OFFSET_ENTRY_BYTES
from holdfast.storage.segment.segment import LARGEST_RELATIVE_OFFSET, Segment


class Appended(NamedTuple):
    """The result of an append."""

    base_offset: Offset
    end_offset: Offset
    size: int
    has_rolled: bool


def headers_of(buffers: Sequence[Buffer]) -> list[RecordBatchHeader]:
    """The headers of all batches, for a caller that has not parsed them."""
    headers = []
    for buffer in buffers:
        position, size = 0, len(buffer)
        while position < size:  # Each round passes a batch, 61 bytes at least.
            header = parse_header(buffer, position)
            headers.append(header)
            position += header.length + LENGTH_END
    return headers


def span_of(headers: Sequence[RecordBatchHeader], end: int) -> tuple[Offset, Offset, int, bool]:
    """The first offset of these batches, the log end offset after them, and their size in bytes.

    Also whether offsets are missing, before them or between them. The log ends at `end` now, and
    offsets must not fall. Runs once for every append, so it reads fields by position.
    """
    if not headers:
        raise AppendRefusedError("nothing to append")
    size = 0
    has_gap = False
    for header in headers:
        base = header[0]
        if base != end:
            has_gap = True
            if base < end:
                raise AppendRefusedError(f"a batch at offset {base}, below the end {end}")
        end = base + header[6] + 1
        size += header[1] + LENGTH_END
    return Offset(headers[0][0]), Offset(end), size, has_gap


def feed_producers(
    producers: ProducerStates,
    segment: Segment,
    buffers: Sequence[Buffer],
    headers: Sequence[RecordBatchHeader],
) -> None:
    """Add these batches to the producer states, and aborted transactions to the index."""
    if not any(header.attributes & CONTROL for header in headers):
        for header in headers:
            producers.append(header.to_model())
        return
    for buffer in buffers:
        position = 0
        while position < len(buffer):  # As in `headers_of`.
            batch = Batch(buffer, position)
            aborted = feed(producers, batch.header, batch if batch.header.is_control else None)
            if aborted is not None:
                segment.add_aborted(aborted)
            position += batch.header.size


def needs_roll(
    segment: Segment, settings: LogSettings, size: int, last: RecordBatchHeader, age_ms: int
) -> bool:
    """Whether the active segment is too full or too old for `size` bytes that end with `last`.

    `age_ms` counts if the records have no timestamps.
    """
    if last[0] + last[6] - segment.base_offset > LARGEST_RELATIVE_OFFSET:
        return True
    held = segment.file.size
    if not held:
        return False
    # A batch larger than a segment gets its own segment: the leader may have accepted it under
    # other settings.
    if held > settings.segment_bytes - size or _is_index_full(
        segment, held, settings.segment_index_bytes
    ):
        return True
    since = segment.first_timestamp
    if since is None or since < 0:
        since = segment.age_starts_at()
    # By the records' timestamps, so that a mirror of an old log rolls as the log did.
    age_ms = age_ms if since is None else last[8] - since
    if age_ms > settings.max_compaction_lag_ms and settings.is_compacted:
        return True  # The cleaner takes only sealed segments, so roll in time for the maximal lag.
    return age_ms > settings.segment_ms


def _is_index_full(segment: Segment, held: int, index_bytes: int) -> bool:
    # An entry covers more than `interval_bytes` of log, so usually there is nothing to count.
    if held * OFFSET_ENTRY_BYTES < (index_bytes - OFFSET_ENTRY_BYTES) * segment.interval_bytes:
        return False
    return (len(segment.index()) + 1) * OFFSET_ENTRY_BYTES > index_bytes
