"""Turns good batches and damage into Arrow batches with the requested columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.pipeline.logs.splits import Piece
from holdfast.protocol.records import MalformedBatchError, RecordBatchHeader
from holdfast.protocol.records.arrow.batch_walk import HEADER_FIELDS
from holdfast.protocol.records.arrow.reader import read_runs
from holdfast.protocol.records.arrow.rows import FIELDS
from holdfast.protocol.records.batch_header import CONTROL, LENGTH_END, TRANSACTIONAL
from holdfast.storage.file_names import LOG, file_name
from holdfast.storage.inspect.segment_reader import opened
from holdfast.storage.segment.batch_scan import Run
from holdfast.storage.segment.damage import TAILS, Damage, Fault

_MOST_MS: Final = (1 << 63) // 1_000 - 1
"""What Spark, which counts microseconds, can hold."""

Ints = npt.NDArray[np.int64]
Making = Callable[["_Table", Run], Iterator[Any]]


def record_rows(piece: Piece, schema: Any) -> Iterator[Any]:
    """One row per record."""
    return _rows(piece, schema, _decoded)


def batch_rows(piece: Piece, schema: Any) -> Iterator[Any]:
    """One row per batch."""
    return _rows(piece, schema, _rows_from_headers)


def _rows(piece: Piece, schema: Any, make: Making) -> Iterator[Any]:
    """The rows of a piece; none if retention has removed the segment.

    Positions in a file that the cleaner has replaced mean nothing in the new one. So the piece that
    begins the segment gets all of the new file, and the others get nothing.
    """
    table = _Table(piece, schema)
    with opened(piece.segment) as reader:
        if reader is None or (reader.is_replaced and piece.start):
            return
        start = reader.align(piece.start, piece.origin)
        is_last = piece.stop == piece.segment.size or reader.is_replaced
        stop = reader.end if is_last else reader.align(piece.stop, start)
        for found in reader.read(start, stop):
            for part in found.without({Fault.STRAY}) if isinstance(found, Run) else (found,):
                if isinstance(part, Run):
                    yield from make(table, part)
                elif part.fault not in TAILS:
                    yield table.damaged(part)


def _decoded(table: _Table, run: Run) -> Iterator[Any]:
    """Records. If one of the batches has a wrong record count, the others are read one by one."""
    last = -1
    try:
        for rows in read_runs(run.view, check_crc=False, columns=table.decoded):
            if rows.num_rows:
                yield table.records(rows, run.start)
                last = rows.column("position")[-1].as_py()
    except MalformedBatchError as error:
        if len(run.batches) == 1:
            header = RecordBatchHeader._make(run.batches[0])
            yield table.damaged(Damage(run.start, run.end, Fault.COUNTS, error.reason, header))
            return
        places = run.places()
        for nth, place in enumerate(places[:-1]):
            if place > last:
                yield from _decoded(table, run.part(places, nth, nth + 1))


def _rows_from_headers(table: _Table, run: Run) -> Iterator[Any]:
    headers = np.array(run.batches, HEADER_FIELDS.newbyteorder("="))
    positions = np.array(run.places()[:-1]) + run.start
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
        self.span = piece.segment.span
        self.same: dict[str, object] = {
            "broker": replica.broker,
            "topic": replica.topic,
            "partition": replica.partition,
            "segment": file_name(piece.segment.base, LOG),
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
        is_known = self.span.holds(base)
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
