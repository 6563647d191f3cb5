"""Turns good batches and damage into Arrow batches with the requested columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.pipeline.logs.open_segment import read_piece
from holdfast.pipeline.logs.segment_batches import Damage, Span
from holdfast.pipeline.logs.splits import Piece
from holdfast.protocol.records import MalformedBatchError, RecordBatchHeader
from holdfast.protocol.records.arrow.batch_walk import HEADER_FIELDS
from holdfast.protocol.records.arrow.reader import read_runs
from holdfast.protocol.records.arrow.rows import FIELDS
from holdfast.protocol.records.batch_header import CONTROL, LENGTH_END, TRANSACTIONAL
from holdfast.storage.file_names import LOG, file_name
from holdfast.storage.segment.batch_scan import Run

_MOST_MS: Final = (1 << 63) // 1_000 - 1
"""What Spark, which counts microseconds, can hold."""

Ints = npt.NDArray[np.int64]
Making = Callable[["_Table", "_Stretch"], Iterator[Any]]


def record_rows(piece: Piece, schema: Any) -> Iterator[Any]:
    """One row per record."""
    return _rows(piece, schema, _decoded)


def batch_rows(piece: Piece, schema: Any) -> Iterator[Any]:
    """One row per batch."""
    return _rows(piece, schema, _rows_from_headers)


def _rows(piece: Piece, schema: Any, make: Making) -> Iterator[Any]:
    table = _Table(piece, schema)
    for found in read_piece(piece):
        for part in _stretches(found, piece.span) if isinstance(found, Run) else (found,):
            yield from (table.damaged(part),) if isinstance(part, Damage) else make(table, part)


class _Stretch(NamedTuple):
    """Good batches in sequence, without a gap."""

    run: Run
    first: int
    last: int
    """After the last one, as an index among the batches of the run."""
    places: list[int]
    """Where the batches of the run start in its chunk, and where the last one ends."""

    @property
    def view(self) -> memoryview:
        return memoryview(self.run.chunk)[self.places[self.first] : self.places[self.last]]

    @property
    def position(self) -> int:
        """The position in the file."""
        return self.run.start + self.places[self.first]

    def single(self, nth: int) -> _Stretch:
        return self._replace(first=nth, last=nth + 1)

    def damage(self, reason: str) -> Damage:
        """The damage, if the first of them is bad."""
        header = RecordBatchHeader._make(self.run.batches[self.first])
        return Damage(self.position, self.position + header.size, reason, header)


def _stretches(run: Run, span: Span) -> Iterator[_Stretch | Damage]:
    """A run without the batches whose offsets cannot be in this segment.

    The CRC does not cover the base offset: a batch with a wrong one looks good otherwise.
    """
    places = [0]
    strays = []
    for nth, fields in enumerate(run.batches):
        places.append(places[-1] + fields[1] + LENGTH_END)
        if not span.holds(fields[0], fields[0] + fields[6]):
            strays.append(nth)
    first = 0
    for stray in strays:
        if first < stray:
            yield _Stretch(run, first, stray, places)
        base, delta = run.batches[stray][0], run.batches[stray][6]
        reason = f"offsets {base} to {base + delta} do not belong in this segment"
        yield _Stretch(run, stray, stray + 1, places).damage(reason)
        first = stray + 1
    if first < len(run.batches):
        yield _Stretch(run, first, len(run.batches), places)


def _decoded(table: _Table, stretch: _Stretch) -> Iterator[Any]:
    """Records. If one of the batches has a wrong record count, the others are read one by one."""
    last = -1
    try:
        for rows in read_runs(stretch.view, check_crc=False, columns=table.decoded):
            if rows.num_rows:
                yield table.records(rows, stretch.position)
                last = rows.column("position")[-1].as_py()
    except MalformedBatchError as error:
        if stretch.last - stretch.first == 1:
            yield table.damaged(stretch.damage(error.reason))
            return
        begin = stretch.places[stretch.first]
        for nth in range(stretch.first, stretch.last):
            if stretch.places[nth] - begin > last:
                yield from _decoded(table, stretch.single(nth))


def _rows_from_headers(table: _Table, stretch: _Stretch) -> Iterator[Any]:
    batches = stretch.run.batches[stretch.first : stretch.last]
    headers = np.array(batches, HEADER_FIELDS.newbyteorder("="))
    positions = np.array(stretch.places[stretch.first : stretch.last]) + stretch.run.start
    last_offsets = headers["base_offset"] + headers["last_offset_delta"]
    columns = {
        "base_offset": headers["base_offset"],
        "last_offset": last_offsets,
        "records": headers["record_count"],
        "crc": headers["crc"].astype(np.int64),
        "leader_epoch": headers["leader_epoch"],
        "max_timestamp": _timestamps(headers["max_timestamp"]),
        "producer_id": headers["producer_id"],
        "producer_epoch": headers["producer_epoch"],
        "base_sequence": headers["base_sequence"],
        "is_control": (headers["attributes"] & CONTROL) != 0,
        "is_transactional": (headers["attributes"] & TRANSACTIONAL) != 0,
        "position": positions,
        "size": headers["length"] + LENGTH_END,
    }
    yield table.batch(columns, last_offsets)


def _timestamps(milliseconds: Ints) -> Any:
    """Null if there is none, or if Spark could not hold it."""
    is_none = (milliseconds < 0) | (milliseconds > _MOST_MS)
    if not is_none.any():
        return pa.array(milliseconds * 1_000)
    return pa.array(np.where(is_none, 0, milliseconds) * 1_000, mask=is_none)


class _Table:
    """The wanted columns, and the values that are equal in all rows of a piece."""

    def __init__(self, piece: Piece, schema: Any) -> None:
        replica = piece.replica
        self.schema = schema
        self.span = piece.span
        self.same: dict[str, object] = {
            "broker": replica.broker,
            "topic": replica.topic,
            "partition": replica.partition,
            "segment": file_name(piece.span.base, LOG),
            "error": None,
        }
        self.limits: dict[str, int | None] = {
            "below_high_watermark": replica.high_watermark,
            "flushed": replica.recovery_point,
        }
        names = [name for name in schema.names if name in FIELDS]
        self.decoded = [*dict.fromkeys([*names, "offset", "position"])]

    def records(self, rows: Any, position: int) -> Any:
        """What the Arrow reader made of bytes that lie at a position of the file."""
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        if "timestamp" in columns:
            columns["timestamp"] = _timestamps(columns["timestamp"].to_numpy())
        columns["position"] = columns["position"].to_numpy() + position
        return self.batch(columns, columns["offset"].to_numpy())

    def batch(self, columns: Mapping[str, Any], offsets: Ints) -> Any:
        """An Arrow batch; `offsets` are compared with the high watermark and the flushed point."""
        arrays = []
        for field in self.schema:
            if field.name in columns:
                column = columns[field.name]
            elif (limit := self.limits.get(field.name)) is not None:
                column = offsets < limit
            else:
                value = pa.scalar(self.same.get(field.name), field.type)
                column = pa.repeat(value, len(offsets))
            made = column if isinstance(column, pa.Array) else pa.array(column)
            arrays.append(made if made.type == field.type else made.view(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def damaged(self, damage: Damage) -> Any:
        """One row: what, where, and as much of the offset as is known."""
        where = f"{self.same['topic']}-{self.same['partition']}/{self.same['segment']}"
        header = damage.header
        base = header.base_offset if header is not None else -1
        is_known = self.span.holds(base, base)
        values: dict[str, object] = {
            **self.same,
            "position": damage.position,
            "error": f"{where}: bytes {damage.position} to {damage.end}: {damage.reason}",
        }
        if is_known:
            values |= {"offset": base, "base_offset": base}
            limits = self.limits.items()
            values |= {name: base < limit for name, limit in limits if limit is not None}
        arrays = [pa.array([values.get(field.name)], field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
