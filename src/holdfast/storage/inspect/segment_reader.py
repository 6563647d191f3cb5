"""Reads segment files that may be damaged, and that another process may be changing.

All that only read a log use it: log verification, the Spark data source and the audit. They get
runs of good batches, and damage by name (`segment.damage`), and decide what follows from it.

A batch is found by the length of the one before it. Two facts keep the reader from following a
damaged length: a batch with a correct CRC has a correct length, and the next batch continues its
offsets. Where neither holds, the reader continues at the next position where a whole batch with a
correct CRC begins, so one bad batch costs its own records and no others.

Where batches start depends on the file alone, never on where reading started: two readers of two
byte ranges agree on who reads what. That is why the fast walk along the headers checks a CRC
wherever offsets do not continue.

Files are read, not mapped: a broker may truncate one, and a mapping would then crash the process.
Memory is bounded by a chunk or one good batch.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, NamedTuple

from holdfast.protocol.records import RecordBatchHeader
from holdfast.protocol.records.batch_header import (
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    MAGIC_POSITION,
)
from holdfast.storage.disk import Disk, File, read_whole
from holdfast.storage.file_names import LOG, OFFSET_INDEX
from holdfast.storage.inspect.batch_order import BatchOrder, Span
from holdfast.storage.inspect.log_files import LogFiles
from holdfast.storage.real_disk import RealDisk
from holdfast.storage.segment.batch_scan import (
    BadBatchError,
    FoundHeader,
    Run,
    crc_matches,
    verified_runs,
    walk_headers,
)
from holdfast.storage.segment.damage import TAILS, Damage, Fault
from holdfast.storage.segment.offset_and_time_index import OFFSET_ENTRY_BYTES, OffsetEntry

RUN_BYTES: Final = 8 << 20
"""Read and verified at a time."""
FAR: Final = 1 << 62
"""After every offset."""
_PIECE_BYTES = 1 << 20
_SUMS = 4
"""A search for the next batch may check this many times the bytes it looks through: enough for any
accident, and a limit for bytes that were made to look like batches everywhere.
"""
_ENTRY = struct.Struct(">II")


class SegmentFile(NamedTuple):
    """A segment as it was listed. Its broker may have truncated, replaced or removed it since."""

    path: str
    span: Span
    size: int
    inode: int

    @property
    def base(self) -> int:
        return self.span.base


def segment_at(path: str, upper: int | None = None) -> SegmentFile:
    """A `.log` file by its name."""
    status = os.stat(path)  # noqa: PTH116  # a plain string
    base = int(os.path.basename(path).removesuffix(LOG))  # noqa: PTH119
    return SegmentFile(path, Span(base, upper), status.st_size, status.st_ino)


def list_segments(disk: RealDisk, files: LogFiles) -> tuple[SegmentFile, ...]:
    """The segments of a log, oldest first, without those that have just been removed."""
    found = []
    for base in files.bases:
        with suppress(FileNotFoundError):
            found.append(segment_at(disk.full(files.path(base, LOG))))
    uppers = [*(one.base for one in found[1:]), None]
    return tuple(
        one._replace(span=Span(one.base, upper))
        for one, upper in zip(found, uppers, strict=bool(found))
    )


@contextmanager
def opened(segment: SegmentFile) -> Iterator[SegmentReader | None]:
    """A reader up to the listed size; None if the file has been removed.

    The cleaner may have replaced the file: then the reader gets all of the new one.
    """
    folder, _, name = segment.path.rpartition("/")
    disk = RealDisk(folder, read_only=True)
    try:
        file = disk.open(name)
    except FileNotFoundError:
        yield None
        return
    try:
        is_replaced = os.fstat(file.descriptor()).st_ino != segment.inode
        index = partial(read_whole, disk, name.removesuffix(LOG) + OFFSET_INDEX)
        end = file.size if is_replaced else segment.size
        yield SegmentReader(file, segment.span, end, index, is_replaced=is_replaced)
    finally:
        file.close()


def read_segment(
    disk: Disk, files: LogFiles, base: int, order: BatchOrder | None = None
) -> Iterator[Run | Damage]:
    """All of one segment of a log, on any disk."""
    upper = next((one for one in files.bases if one > base), None)
    file = disk.open(files.path(base, LOG))
    try:
        yield from SegmentReader(file, Span(base, upper), file.size).read(0, file.size, order=order)
    finally:
        file.close()


class SegmentReader:
    """The batches of a file up to a position."""

    def __init__(
        self,
        file: File,
        span: Span,
        end: int,
        index: Callable[[], bytes | None] = bytes,
        *,
        is_replaced: bool = False,
    ) -> None:
        self.file = file
        self.span = span
        self.end = end
        self._index = index
        """Reads the offset index; only called by readers that do not start at the beginning."""
        self.is_replaced = is_replaced
        """It is another file than the one that was listed."""

    def read(
        self,
        start: int,
        stop: int,
        *,
        order: BatchOrder | None = None,
        run_bytes: int = RUN_BYTES,
    ) -> Iterator[Run | Damage]:
        """Good batches and damage between two positions where batches start.

        `order` is what the segments before lead to expect.
        """
        order = order or BatchOrder(self.span.base if start == 0 else None)
        while start < stop:  # Each round passes a batch or a damaged place.
            try:
                for run in verified_runs(self.file, start, stop, run_bytes):
                    start = run.end
                    yield order.doubted(run, self.span, self.base_at)
                    del run  # As in `verified_runs`.
            except BadBatchError as bad:
                damage = self._damage(bad.position, bad.fault, bad.reason)
                yield damage
                start = damage.end

    def align(self, position: int, origin: int = 0) -> int:
        """Where the first batch at or after a position starts; one starts at `origin`."""
        if position <= origin:
            return origin
        start = self._verified_position(self._hint(1, position), origin)
        if start == position:
            return start
        return next((one.end for one in self.headers(start) if one.end >= position), self.end)

    def start_below(self, offset: int) -> int:
        """Where a batch before this offset starts, as near as the index allows; or 0."""
        return self._verified_position(self._hint(0, offset - 1 - self.span.base), 0)

    def _hint(self, field: int, most: int) -> OffsetEntry | None:
        """The last index entry whose relative offset (0) or position (1) is not above `most`.

        The index may be damaged, and of a running Kafka it ends with zeros.
        """
        content = self._index() or b""

        def key(nth: int) -> int:
            entry: tuple[int, int] = _ENTRY.unpack_from(content, nth * OFFSET_ENTRY_BYTES)
            return entry[field] if entry[1] else FAR

        nth = bisect_right(range(len(content) // OFFSET_ENTRY_BYTES), most, key=key) - 1
        if nth < 0:
            return None
        relative, position = _ENTRY.unpack_from(content, nth * OFFSET_ENTRY_BYTES)
        return OffsetEntry(self.span.base + relative, position)

    def _verified_position(self, entry: OffsetEntry | None, origin: int) -> int:
        """An index entry's position, if a good batch there ends at its offset; otherwise the
        origin.
        """
        if entry is None or entry.position <= origin:
            return origin
        header = self.header_at(entry.position)
        if header is None or header.end_offset - 1 != entry.offset:
            return origin
        return entry.position if crc_matches(self.file, entry.position, header) else origin

    def headers(self, here: int = 0) -> Iterator[FoundHeader | Damage]:
        """Batches and damage, without reading the batches where nothing is unusual."""
        while here < self.end:  # Each round ends at a damaged place, or with the file.
            last: FoundHeader | None = None
            fault = Fault.CRC
            try:
                for found in walk_headers(self.file, here, self.end):
                    if last is not None:
                        if self._is_broken_off(last, found.header.base_offset):
                            break
                        yield last
                    last = found
                else:
                    if last is not None:
                        yield last
                    return
            except BadBatchError as bad:
                fault, here = bad.fault, bad.position
                if last is not None and crc_matches(self.file, *last):
                    yield last
                    last = None
            damage = self._damage(here if last is None else last.position, fault, "")
            if damage.fault in TAILS:
                return
            yield damage
            here = damage.end

    def _is_broken_off(self, last: FoundHeader, base_offset: int) -> bool:
        """Whether a length is wrong. Compaction leaves gaps, too: then the CRC is correct."""
        is_continued = base_offset == last.header.end_offset
        return not is_continued and not crc_matches(self.file, *last)

    def header_at(self, position: int) -> RecordBatchHeader | None:
        """A header whose length can be true."""
        data = self.file.read(position, HEADER_BYTES)
        if len(data) < HEADER_BYTES:
            return None
        header = RecordBatchHeader._make(HEADER.unpack(data))
        is_whole = HEADER_BYTES <= header.size <= self.end - position
        return header if header.magic == MAGIC and is_whole else None

    def base_at(self, position: int) -> int | None:
        """The base offset of what looks like a batch, perhaps an incomplete one at the end."""
        data = self.file.read(position, MAGIC_POSITION + 1)
        if position >= self.end or len(data) <= MAGIC_POSITION or data[MAGIC_POSITION] != MAGIC:
            return None
        return int.from_bytes(data[:8], "big", signed=True)

    # Damage.

    def _damage(self, position: int, fault: Fault, reason: str) -> Damage:
        """How far the damage at a position reaches, and whether it is a tail."""
        header = self.header_at(position)
        after = self.end
        if header is not None:
            by_length = position + header.size
            base = self.base_at(by_length)
            if base == header.end_offset or crc_matches(self.file, position, header):
                return Damage(position, by_length, fault, reason, header)
            if base is not None and base > header.base_offset:
                after = by_length
        end = self._next_good(position + 1, after) or after
        if end == self.end and not self.file.read(self.end - 1, 1):
            fault = Fault.SHRUNK
        elif header is None and end == self.end and self._is_torn(position):
            fault = Fault.TORN_TAIL
        return Damage(position, end, fault, reason, header)

    def _is_torn(self, position: int) -> bool:
        """In a log's last segment, bytes that begin an incomplete batch, or that are all zero."""
        if self.span.upper is not None:
            return False
        data = self.file.read(position, HEADER_BYTES)[: self.end - position]
        if len(data) <= MAGIC_POSITION:
            return True
        size = int.from_bytes(data[8:LENGTH_END], "big", signed=True) + LENGTH_END
        if data[MAGIC_POSITION] == MAGIC and size >= HEADER_BYTES:
            return size > self.end - position
        return self._is_zero(position)

    def _is_zero(self, position: int) -> bool:
        while position < self.end:  # At most size / piece rounds.
            piece = self.file.read(position, min(_PIECE_BYTES, self.end - position))
            if not piece:
                break
            if piece.count(0) != len(piece):
                return False
            position += len(piece)
        return True

    def _next_good(self, start: int, stop: int) -> int | None:
        """The first position in [start, stop) where a batch with a correct CRC begins a chain."""
        credit = _SUMS * (stop - start) + _PIECE_BYTES
        while start < stop:  # At most size / piece rounds.
            size = min(_PIECE_BYTES, stop - start)
            window = self.file.read(start, size + HEADER_BYTES)
            for place in self._candidates(window, size):
                header = self.header_at(start + place)
                if header is None or header.last_offset_delta < 0:
                    continue
                credit -= header.size
                if credit < 0:
                    return None
                is_good = crc_matches(self.file, start + place, header)
                if is_good and self._leads_on(start + place, header):
                    return start + place
            start += size
        return None

    def _candidates(self, window: bytes, size: int) -> Iterator[int]:
        """Places where the magic and a possible base offset fit."""
        end = min(len(window) - HEADER_BYTES + 1, size) + MAGIC_POSITION
        low, high = (bound.to_bytes(8, "big") for bound in (self.span.base, self.span.limit))
        at = window.find(MAGIC, MAGIC_POSITION, end)
        while at >= 0:  # At most once per byte.
            place = at - MAGIC_POSITION
            if low <= window[place : place + 8] < high:
                yield place
            at = window.find(MAGIC, at + 1, end)

    def _leads_on(self, position: int, header: RecordBatchHeader) -> bool:
        """A record's value may hold a batch; no batch follows that one."""
        after = position + header.size
        if after == self.end:
            return True
        base = self.base_at(after)
        return base is not None and base >= header.end_offset
