"""One segment file as a chain of batches, also where it is damaged or still being written.

A batch is found by the length of the one before it. Two facts keep the chain from following a
damaged length: a batch with a correct CRC has a correct length, and the next batch continues its
offsets. Where neither holds, the chain continues at the next position where a whole batch with a
correct CRC begins, so one bad batch costs its own records and no others.

The chain depends on the file alone, never on where reading started: two readers of two byte ranges
agree on who reads what. That is why the fast walk along the headers checks a CRC wherever offsets
do not continue.

A torn tail is no damage: in the last segment of a log, bytes that begin an incomplete batch, or
that are all zero, are left by an append that is in progress or was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from google_crc32c import extend

from holdfast.protocol.records import RecordBatchHeader
from holdfast.protocol.records.batch_header import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    MAGIC_POSITION,
)
from holdfast.storage.disk import File
from holdfast.storage.segment.batch_scan import (
    BadBatchError,
    FoundHeader,
    Run,
    verified_runs,
    walk_headers,
)
from holdfast.storage.segment.offset_and_time_index import OffsetEntry, OffsetIndex

RUN_BYTES = 8 << 20
"""Read and decoded at a time."""
_PIECE_BYTES = 1 << 20
_SUMS = 4
"""A search for the next batch may check this many times the bytes it looks through: enough for any
accident, and a limit for bytes that were made to look like batches everywhere.
"""


class Span(NamedTuple):
    """The offsets that a segment may hold."""

    base: int
    upper: int | None
    """Where the next segment begins; None for the last one, which may be growing."""

    def holds(self, first: int, last: int) -> bool:
        return self.base <= first <= last and (self.upper is None or last < self.upper)


class Damage(NamedTuple):
    """Bytes that are no batch, or not a good one."""

    position: int
    end: int
    """Where the chain continues."""
    reason: str
    header: RecordBatchHeader | None
    """What the bytes say, if a header can be recognised."""


class Link(NamedTuple):
    """One step of the chain: a batch by its header, or damage."""

    position: int
    after: int
    header: RecordBatchHeader | None


class Chain:
    """The batches of a file up to a position."""

    def __init__(
        self, file: File, end: int, span: Span, index: Callable[[], OffsetIndex | None]
    ) -> None:
        self.file = file
        self.end = end
        self.span = span
        self._index = index
        """Reads the segment's index; only called by readers that do not start at the beginning."""

    def read(self, start: int, stop: int) -> Iterator[Run | Damage]:
        """Good batches and damage between two links."""
        while start < stop:  # Each round passes a batch or a damaged place.
            try:
                for run in verified_runs(self.file, start, stop, RUN_BYTES):
                    start = run.end
                    yield run
            except BadBatchError as bad:
                damage = self._damage(bad.position, bad.reason)
                if damage is None:
                    return
                yield damage
                start = damage.end

    def align(self, position: int, origin: int = 0) -> int:
        """The start of the first link at or after a position; `origin` is a link before it."""
        if position <= origin:
            return origin
        index = self._index()
        entry = index.last_start(position) if index is not None else None
        start = self._verified_position(entry, origin)
        if start == position:
            return start
        return next((one.after for one in self.links(start) if one.after >= position), self.end)

    def start_below(self, offset: int) -> int:
        """A link before all batches from this offset on, as near as the index allows."""
        index = self._index()
        return self._verified_position(
            index.at_or_before(offset - 1) if index is not None else None, 0
        )

    def has(self, position: int, header: RecordBatchHeader) -> bool:
        """Whether this batch still exists."""
        return self._header(position) == header

    def links(self, here: int = 0) -> Iterator[Link]:
        """The links from one on, reading only headers where nothing is unusual."""
        while here < self.end:  # Each round ends at a damaged place, or with the file.
            last: FoundHeader | None = None
            reason = "the CRC does not match"
            try:
                for found in walk_headers(self.file, here, self.end):
                    if last is not None:
                        if self._is_broken_off(last, found.header.base_offset):
                            break
                        yield Link(last.position, found.position, last.header)
                    last = found
                else:
                    if last is not None:
                        yield Link(last.position, self.end, last.header)
                    return
            except BadBatchError as bad:
                reason, here = bad.reason, bad.position
                if last is not None and self._is_true(last.position, last.header):
                    yield Link(last.position, bad.position, last.header)
                    last = None
            damage = self._damage(here if last is None else last.position, reason)
            if damage is None:
                return
            yield Link(damage.position, damage.end, None)
            here = damage.end

    def _is_broken_off(self, last: FoundHeader, base_offset: int) -> bool:
        """Whether a length is wrong. Compaction leaves gaps, too: then the CRC is correct."""
        is_continued = base_offset == last.header.end_offset
        return not is_continued and not self._is_true(last.position, last.header)

    def _verified_position(self, entry: OffsetEntry | None, origin: int) -> int:
        """An index entry's position, if a good batch ends there at its offset; otherwise the
        origin.
        """
        if entry is None or entry.position <= origin:
            return origin
        header = self._header(entry.position)
        if header is None or header.end_offset - 1 != entry.offset:
            return origin
        return entry.position if self._is_true(entry.position, header) else origin

    def _damage(self, position: int, reason: str) -> Damage | None:
        """What is wrong there and how far it reaches; None for a torn tail."""
        header = self._header(position)
        after = self.end
        if header is not None:
            by_length = position + header.size
            base = self._base_at(by_length)
            if base == header.end_offset or self._is_true(position, header):
                return Damage(position, by_length, reason, header)
            if base is not None and base > header.base_offset:
                after = by_length
        end = self._next_true(position + 1, after) or after
        if header is None and end == self.end and self._is_torn(position):
            return None
        return Damage(position, end, reason, header)

    def _header(self, position: int) -> RecordBatchHeader | None:
        """A header that can be walked over."""
        data = self.file.read(position, HEADER_BYTES)
        if len(data) < HEADER_BYTES:
            return None
        header = RecordBatchHeader._make(HEADER.unpack(data))
        is_whole = HEADER_BYTES <= header.size <= self.end - position
        return header if header.magic == MAGIC and is_whole else None

    def _base_at(self, position: int) -> int | None:
        """The base offset of what looks like a batch, perhaps an incomplete one at the end."""
        data = self.file.read(position, MAGIC_POSITION + 1)
        if position >= self.end or len(data) <= MAGIC_POSITION or data[MAGIC_POSITION] != MAGIC:
            return None
        return int.from_bytes(data[:8], "big", signed=True)

    def _is_true(self, position: int, header: RecordBatchHeader) -> bool:
        """Verify a batch's CRC, in pieces: a damaged length may claim a gigabyte."""
        crc, at, end = 0, position + ATTRIBUTES_POSITION, position + header.size
        while at < end:  # At most size / piece rounds.
            piece = self.file.read(at, min(_PIECE_BYTES, end - at))
            if not piece:
                return False
            crc = extend(crc, piece)
            at += len(piece)
        return crc == header.crc

    def _is_torn(self, position: int) -> bool:
        data = self.file.read(position, HEADER_BYTES)[: self.end - position]
        if not data:  # A follower has truncated its log since.
            return True
        if self.span.upper is not None:
            return False
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

    # Recovery.

    def _next_true(self, start: int, stop: int) -> int | None:
        """The first position in [start, stop) where a batch with a correct CRC begins a chain."""
        credit = _SUMS * (stop - start) + _PIECE_BYTES
        while start < stop:  # At most size / piece rounds.
            size = min(_PIECE_BYTES, stop - start)
            window = np.frombuffer(self.file.read(start, size + HEADER_BYTES), np.uint8)
            for place in self._candidates(window, size):
                header = self._header(start + place)
                if header is None or header.last_offset_delta < 0:
                    continue
                credit -= header.size
                if credit < 0:
                    return None
                if self._is_true(start + place, header) and self._leads_on(start + place, header):
                    return start + place
            start += size
        return None

    def _candidates(self, window: npt.NDArray[np.uint8], size: int) -> list[int]:
        """Positions where the magic and a possible base offset fit."""
        room = len(window) - HEADER_BYTES
        if room < 0:
            return []
        room = min(room + 1, size)
        at = np.flatnonzero(window[MAGIC_POSITION : MAGIC_POSITION + room] == MAGIC)
        bases = window[at[:, None] + np.arange(8)].view(">i8")[:, 0]
        is_held = bases >= self.span.base
        if self.span.upper is not None:
            is_held &= bases < self.span.upper
        places: list[int] = at[is_held].tolist()
        return places

    def _leads_on(self, position: int, header: RecordBatchHeader) -> bool:
        """A record's value may hold a batch; no batch follows that one."""
        after = position + header.size
        if after == self.end:
            return True
        base = self._base_at(after)
        return base is not None and base >= header.end_offset
