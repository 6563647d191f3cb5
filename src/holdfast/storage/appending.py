"""What an append looks at before it writes: do the batches follow, and do they fit?"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.records import RecordBatchHeader, parse_header
from holdfast.storage.disk import Buffer
from holdfast.storage.errors import AppendRefusedError
from holdfast.storage.index import OFFSET_ENTRY_BYTES
from holdfast.storage.segment import LARGEST_RELATIVE_OFFSET, Segment
from holdfast.storage.settings import LogSettings


def headers_of(buffers: Sequence[Buffer]) -> tuple[list[RecordBatchHeader], int]:
    """The headers of all batches, and how many bytes they are together."""
    headers = []
    total = 0
    for buffer in buffers:
        position, size = 0, len(buffer)
        while position < size:  # Each round passes a batch, 61 bytes at least.
            header = parse_header(buffer, position)
            headers.append(header)
            position += header.length + 12
        total += size
    if not headers:
        raise AppendRefusedError("nothing to append")
    return headers, total


def end_after(end: int, headers: list[RecordBatchHeader]) -> int:
    """Where a log that ends at `end` will end with these batches; they must not go back."""
    for header in headers:
        if header.base_offset < end:
            raise AppendRefusedError(f"a batch at offset {header.base_offset} behind the end {end}")
        end = header.base_offset + header.last_offset_delta + 1
    return end


def needs_roll(
    segment: Segment, settings: LogSettings, size: int, last: RecordBatchHeader, age_ms: int
) -> bool:
    """Whether the active segment is too full or too old for `size` bytes that end with `last`.

    `age_ms` counts where the records have no time of their own.
    """
    room = settings.segment_bytes - size
    if room < 0:
        raise AppendRefusedError(f"{size} bytes, a segment has {settings.segment_bytes}")
    last_offset = last.base_offset + last.last_offset_delta
    if last_offset - segment.base_offset > LARGEST_RELATIVE_OFFSET:
        return True
    held = segment.file.size
    if not held:
        return False
    if held > room:
        return True
    if (len(segment.index()) + 1) * OFFSET_ENTRY_BYTES > settings.segment_index_bytes:
        return True
    since = segment.first_timestamp
    if since is None or since < 0:
        since = segment.age_starts_at()
    # By the records' own clock, so that a mirror of an old log rolls as the log did.
    return (age_ms if since is None else last.max_timestamp - since) > settings.segment_ms
