"""Reads the records of one file of KRaft's metadata log, piece by piece.

A controller writes an empty record twice per second, each in a batch of its own, so nearly all
records of an old log are irrelevant. They are sorted out before any of them is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.protocol.kraft_records import MetadataRecord, decode_record
from holdfast.protocol.kraft_records.codec import FRAME_VERSION
from holdfast.protocol.kraft_records.definitions import KINDS
from holdfast.protocol.records import Batch, MalformedBatchError
from holdfast.protocol.records.arrow.reader import read_runs
from holdfast.storage import RealDisk
from holdfast.storage.inspect.batch_order import Span
from holdfast.storage.inspect.segment_reader import FAR, SegmentReader
from holdfast.storage.segment.batch_scan import Run
from holdfast.storage.segment.damage import TAILS, Damage, Fault

PIECE_BYTES: Final = 1 << 20
COLUMNS: Final = ("offset", "timestamp", "value", "is_control")
_OTHERS: Final = pa.array(
    [bytes([FRAME_VERSION, key]) for key in range(128) if key not in KINDS], pa.binary()
)
"""First bytes of records that are not about topics and partitions."""


def read_records(path: Path, *, is_complete: bool) -> Iterator[tuple[int, int, MetadataRecord]]:
    """Offset, time and content of the records about topics and partitions.

    A controller may be writing into the last segment: an incomplete batch at its end is left out.
    A snapshot gets its name when it is complete, and all other segments are complete
    (`is_complete`). MalformedBatchError, MalformedMessage or UnsupportedVersionError if the file
    cannot be read.
    """
    file = RealDisk(path.parent, read_only=True).open(path.name)
    try:
        reader = SegmentReader(file, Span(0, FAR if is_complete else None), file.size)
        for found in reader.read(0, reader.end, run_bytes=PIECE_BYTES):
            try:
                if isinstance(found, Run):
                    for rows in read_runs(found.view, check_crc=False, columns=COLUMNS):
                        yield from _decoded(rows)
                elif found.fault not in TAILS:
                    _refuse(found, reader)
            except MalformedBatchError as error:
                position = found.start if isinstance(found, Run) else found.position
                where = position + error.position
                raise MalformedBatchError(where, error.reason, error.error_code) from None
    finally:
        file.close()


def _refuse(damage: Damage, reader: SegmentReader) -> None:
    if damage.fault is Fault.CRC and damage.header is not None:
        Batch(reader.file.read(damage.position, damage.header.size)).check_crc()
    raise MalformedBatchError(0, damage.reason)


def _decoded(run: Any) -> Iterator[tuple[int, int, MetadataRecord]]:
    values = run.column("value")
    is_other = pc.is_in(pc.binary_slice(values, 0, 2), _OTHERS)
    is_wanted = pc.invert(pc.or_(pc.or_(is_other, run.column("is_control")), values.is_null()))
    wanted = run.filter(is_wanted)
    columns = (wanted.column(name).to_pylist() for name in ("offset", "timestamp", "value"))
    for offset, time_ms, value in zip(*columns, strict=True):
        record = decode_record(value)
        if record is not None:
            yield offset, time_ms, record
