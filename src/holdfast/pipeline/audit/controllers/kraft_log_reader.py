"""Reads the records of one file of KRaft's metadata log, piece by piece.

A controller writes an empty record twice per second, each in a batch of its own, so nearly all
records of an old log are irrelevant. They are sorted out before any of them is decoded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.pipeline.audit.replicas.segments import opened
from holdfast.protocol.kraft_records import MetadataRecord, decode_record
from holdfast.protocol.kraft_records.codec import FRAME_VERSION
from holdfast.protocol.kraft_records.definitions import KINDS
from holdfast.protocol.records import MalformedBatchError
from holdfast.protocol.records.arrow.batch_walk import Untrue, batch_starts
from holdfast.protocol.records.arrow.reader import read_runs
from holdfast.protocol.records.batch_header import HEADER_BYTES, MAGIC, MAGIC_POSITION, Batch

PIECE_BYTES: Final = 1 << 20
LARGEST_BATCH: Final = 64 << 20
"""Controllers write batches of 8 MiB at most; a greater length is damaged."""
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
    with opened(str(path)) as file:
        for position, piece in _pieces(file, is_complete=is_complete):
            try:
                for run in read_runs(piece, columns=COLUMNS):
                    yield from _decoded(run)
            except MalformedBatchError as error:
                where = position + error.position
                raise MalformedBatchError(where, error.reason, error.error_code) from None


def _pieces(file: int, *, is_complete: bool) -> Iterator[tuple[int, bytes]]:
    """Whole batches, and their positions. Each round takes at least one batch."""
    position, size = 0, PIECE_BYTES
    while data := os.pread(file, size, position):
        try:
            starts, after = batch_starts(memoryview(data), 0, len(data))
        except Untrue:
            yield position, data  # The decoder reports what is wrong.
            return
        if after <= len(data):
            yield position, data
            position += len(data)
        elif starts[-1] > 0:
            yield position, data[: starts[-1]]
            position, size = position + starts[-1], PIECE_BYTES
        elif len(data) < size:  # The end of the file.
            if is_complete or _has_later_batch(data):
                yield position, data  # The decoder reports the batch that does not end.
            return
        else:
            size = _size(after, position)


def _size(size: int, position: int) -> int:
    """How much to read for a batch that is larger than a piece."""
    if size > LARGEST_BATCH:
        raise MalformedBatchError(position, f"a batch cannot be {size} bytes long")
    return size


def _has_later_batch(data: bytes) -> bool:
    """Whether a good batch follows the incomplete one that `data` starts with.

    Then nobody is writing the incomplete one: its length is damaged.
    """
    octets = np.frombuffer(data, np.uint8)
    end = len(octets) - HEADER_BYTES + 1
    if end <= 0:
        return False
    base = int.from_bytes(data[:8], "big")
    is_likely = octets[MAGIC_POSITION : MAGIC_POSITION + end] == MAGIC
    is_likely &= octets[:end] == 0  # No offset is as large as 2 ** 56.
    return any(_is_batch_after(base, data, at) for at in np.flatnonzero(is_likely).tolist())


def _is_batch_after(base: int, data: bytes, position: int) -> bool:
    try:
        batch = Batch(data, position)
    except MalformedBatchError:
        return False
    return batch.header.base_offset > base and batch.crc_matches()


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
