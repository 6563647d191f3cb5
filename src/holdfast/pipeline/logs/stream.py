"""The streaming source: reads what was appended to the logs since the last time.

The stream's offset is the log end offset of every replica, `{"b1": {"events-0": 1042}}`, always
after a whole batch, so a batch is read in one micro-batch or in the next, never in both. A
micro-batch is planned from its two offsets alone: after a restart the same two give the same rows.

Bytes after the last good batch may be an append in progress; they are read again next time. Damage
is shown together with the first good batch after it. A replica that truncates its log goes back in
the stream, too: it then copies other records, and they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader

from holdfast.pipeline.logs.columns import split_bytes
from holdfast.pipeline.logs.rows import record_rows
from holdfast.pipeline.logs.splits import Piece, Replica, Split, replicas, segments, splits
from holdfast.protocol.records import RecordBatchHeader
from holdfast.storage.inspect.segment_reader import FAR, SegmentReader, opened
from holdfast.storage.segment.batch_scan import FoundHeader

Ends = dict[str, dict[str, int]]
"""Log end offsets by broker and partition."""


class Place(NamedTuple):
    """A boundary between two batches: after this one."""

    segment: int
    position: int
    header: RecordBatchHeader

    @property
    def after(self) -> int:
        return self.position + self.header.size

    @property
    def offset(self) -> int:
        return self.header.end_offset


class LogStreamReader(DataSourceStreamReader):
    """Follows the logs by their ends."""

    def __init__(self, options: Mapping[str, str], schema: Any) -> None:
        self._options = options
        self._schema = schema
        self._places: dict[tuple[str, str], list[Place]] = {}
        """The last ends, so that a walk along the headers need not start at 0."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """The beginning: nothing was read of any log."""
        return {}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        ends: Ends = {}
        for replica in replicas(self._options):
            found = segments(replica)
            if found:
                place = self._place(found[-1], FAR)
                end = place.offset if place is not None else found[-1].segment.base
                ends.setdefault(replica.broker, {})[replica.directory] = end
        return ends

    def partitions(self, start: Ends, end: Ends) -> list[Split]:
        pieces = [
            piece
            for replica in replicas(self._options)
            for piece in self._between(replica, start, end)
        ]
        return splits(pieces, split_bytes(self._options))

    def read(self, partition: Split) -> Iterator[Any]:  # type: ignore[override]
        for piece in partition.pieces:
            yield from record_rows(piece, self._schema)

    def _between(self, replica: Replica, start: Ends, end: Ends) -> Iterator[Piece]:
        first = start.get(replica.broker, {}).get(replica.directory, 0)
        last = end.get(replica.broker, {}).get(replica.directory, 0)
        for piece in segments(replica):
            base, upper = piece.segment.span
            if base >= last or (upper is not None and upper <= first):
                continue
            begin = self._position(piece, first) if base < first else 0
            stop = self._position(piece, last) if upper is None or last < upper else piece.stop
            segment = piece.segment._replace(size=stop)
            yield replace(piece, segment=segment, start=begin, origin=begin, stop=stop)

    def _position(self, piece: Piece, offset: int) -> int:
        """Where in a segment the batches below an offset end."""
        place = self._place(piece, offset)
        return place.after if place is not None else 0

    def _place(self, piece: Piece, below: int) -> Place | None:
        """The place after the last good batch of a segment whose offsets are all below this one."""
        known = self._places.setdefault((piece.replica.broker, piece.replica.directory), [])
        with opened(piece.segment) as reader:
            if reader is None:
                return None
            place = _remembered(reader, known, below)
            for found in reader.headers(place.after if place else reader.start_below(below)):
                if isinstance(found, FoundHeader):
                    if found.header.end_offset > below:
                        break
                    place = Place(piece.segment.base, *found)
        if place is not None and place not in known:
            known.append(place)
            del known[:-2]
        return place


def _remembered(reader: SegmentReader, known: list[Place], below: int) -> Place | None:
    """The last place that still exists: a truncated log may have grown again."""
    for place in reversed(known):
        is_here = place.segment == reader.span.base and place.offset <= below
        if is_here and reader.header_at(place.position) == place.header:
            return place
    return None
