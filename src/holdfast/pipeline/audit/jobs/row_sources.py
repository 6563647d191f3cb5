"""Turns ledgers and tables into packs of ROWs, each for one stretch of one partition.

Runs in executors. A pack holds as many rows as are available, so Spark moves a few thousand
binaries, not millions of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.ledger import CONSUMED, LedgerError, read_file
from holdfast.ledger import SENT as SENDS
from holdfast.pipeline.audit.jobs.row_types import (
    ACKED,
    NO_OFFSET,
    NOBODY,
    RESULTS,
    ROW,
    Ints,
    Table,
    content,
    pack,
)
from holdfast.protocol.records.crc import crc32c_parts

SENT, READ, DELIVERED, PRESENT, ERROR = range(5)
"""The content of a pack: sends, rows of the table, deliveries; nothing, so that the stretch is
judged; or a sentence about what cannot be read.
"""
NO_STRETCH: Final = -1
"""The stretch of sends without a known offset."""

PACKS: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("stretch", pa.int64()),
        ("source", pa.int32()),
        ("rows", pa.binary()),
    ]
)
PACKS_DDL: Final = "topic string, partition int, stretch long, source int, rows binary"
_RECORD: Final = (
    "topic",
    "partition",
    "offset",
    "sequence",
    "key_crc",
    "key_len",
    "value_crc",
    "value_len",
)
SEND_COLUMNS: Final = (
    *_RECORD,
    "partition_asked",
    "sent_ms",
    "acked_ms",
    "error",
    "result",
)
DELIVERY_COLUMNS: Final = (*_RECORD, "polled_ms", "assignment")
ENOUGH_ROWS: Final = 1 << 20
"""Rows that are collected before they are sorted into packs."""


class LedgerFile(NamedTuple):
    path: str
    who: int


class Gathered:
    """Rows of one topic after the other, until there are enough."""

    def __init__(self, source: int, span: int) -> None:
        self.source, self.span = source, span
        self._rows: dict[str, list[tuple[Ints, Table]]] = {}
        self._count = 0

    def add(self, topic: str, partitions: Ints, rows: Table) -> Iterator[Any]:
        if not len(rows):
            return
        self._rows.setdefault(topic, []).append((partitions, rows))
        self._count += len(rows)
        if self._count >= ENOUGH_ROWS:
            yield from self.packs()

    def packs(self) -> Iterator[Any]:
        """The remaining rows, one pack per stretch."""
        for topic, parts in self._rows.items():
            partitions = np.concatenate([part[0] for part in parts])
            rows = np.concatenate([part[1] for part in parts])
            stretches = rows["offset"] // self.span
            stretches[rows["offset"] < 0] = NO_STRETCH
            order = np.lexsort((stretches, partitions))
            is_new = np.diff(partitions[order], prepend=-9) != 0
            is_new |= np.diff(stretches[order], prepend=-9) != 0
            starts = np.flatnonzero(is_new)
            ends = np.append(starts[1:], len(order))
            made = [
                (topic, int(partitions[at[0]]), int(stretches[at[0]]), pack(rows[at]))
                for at in (order[s:e] for s, e in zip(starts, ends, strict=True))
            ]
            yield from (_batch([(*one[:3], self.source, one[3])]) for one in made)
        self._rows.clear()
        self._count = 0


def _batch(rows: Sequence[tuple[str, int, int, int, bytes]]) -> Any:
    columns = list(zip(*rows, strict=True))
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, PACKS, strict=True)],
        schema=PACKS,
    )


def ledger_packs(
    files: Iterable[LedgerFile],
    source: int,
    topics: Sequence[str],
    span: int,
    is_wanted: Callable[[str, Ints, Table], npt.NDArray[np.bool_]] | None = None,
) -> Iterator[Any]:
    """Sends (SENT) or deliveries (DELIVERED). A file that cannot be read becomes a sentence."""
    gathered = Gathered(source, span)
    to_rows = send_rows if source == SENT else delivery_rows
    kind, columns = (SENDS, SEND_COLUMNS) if source == SENT else (CONSUMED, DELIVERY_COLUMNS)
    for file in files:
        try:
            for batch in read_file(Path(file.path), kind, columns=columns):
                for topic, part in _by_topic(batch, topics):
                    partitions, rows = to_rows(part, file.who)
                    if is_wanted is not None:
                        chosen = is_wanted(topic, partitions, rows)
                        partitions, rows = partitions[chosen], rows[chosen]
                    yield from gathered.add(topic, partitions, rows)
        except (LedgerError, OSError, pa.ArrowException) as error:
            text = f"the ledger file {file.path}: {error}"
            yield _batch([("", NO_STRETCH, NO_STRETCH, ERROR, text.encode())])
    yield from gathered.packs()


def _by_topic(batch: Any, topics: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Nearly always the batch has one topic."""
    column = batch.column("topic")
    for topic in pc.unique(column).to_pylist():
        if topic in topics:
            is_alone = batch.num_rows and pc.all(pc.equal(column, topic)).as_py()
            yield topic, batch if is_alone else batch.filter(pc.equal(column, topic))


def send_rows(batch: Any, who: int) -> tuple[Ints, Table]:
    """The partitions (the record's; otherwise the requested one, or -1), and the rows."""
    rows = _content_rows(batch, who)
    result = batch.column("result")
    for number, name in RESULTS.items():
        rows["result"][_numpy(pc.equal(result, name), 0).astype(np.bool_)] = number
    is_acked = rows["result"] == ACKED
    rows["offset"] = np.where(is_acked, _numbers(batch, "offset", NO_OFFSET), NO_OFFSET)
    rows["time"] = _numbers(batch, "sent_ms", 0)
    delays = _numbers(batch, "acked_ms", 0) - rows["time"]
    rows["delay"] = np.where(is_acked, np.clip(delays, 0, (1 << 31) - 1), 0)
    rows["error"] = _numbers(batch, "error", 0)
    partitions = _numbers(batch, "partition", -1)
    asked = _numbers(batch, "partition_asked", -1)
    return np.where(partitions >= 0, partitions, asked), rows


def delivery_rows(batch: Any, who: int) -> tuple[Ints, Table]:
    rows = _content_rows(batch, who)
    rows["offset"] = _numbers(batch, "offset", NO_OFFSET)
    rows["time"] = _numbers(batch, "polled_ms", 0)
    rows["delay"] = _numbers(batch, "assignment", 0)
    return _numbers(batch, "partition", -1), rows


def _content_rows(batch: Any, who: int) -> Table:
    rows = np.zeros(batch.num_rows, ROW)
    rows["key"] = content(_numbers(batch, "key_crc", 0), _numbers(batch, "key_len", -1))
    rows["value"] = content(_numbers(batch, "value_crc", 0), _numbers(batch, "value_len", -1))
    rows["sequence"] = _numbers(batch, "sequence", 0)
    rows["who"] = who
    return rows


def _numbers(batch: Any, name: str, null: int) -> Ints:
    return _numpy(batch.column(name), null).astype(np.int64, copy=False)


def _numpy(column: Any, null: int) -> npt.NDArray[Any]:
    filled = pc.fill_null(column, null) if column.null_count else column
    array: npt.NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return array


def table_packs(batches: Iterable[Any], span: int) -> Iterator[Any]:
    """Rows of the table: topic, partition, offset, key, value."""
    gathered = Gathered(READ, span)
    for batch in batches:
        rows = np.zeros(batch.num_rows, ROW)
        rows["key"] = _measured(batch.column("key"))
        rows["value"] = _measured(batch.column("value"))
        rows["offset"] = _numbers(batch, "offset", NO_OFFSET)
        rows["who"] = NOBODY
        partitions = _numbers(batch, "partition", -1)
        names = batch.column("topic")
        for topic in pc.unique(names).to_pylist():
            is_mine = _numpy(pc.equal(names, topic), 0).astype(np.bool_)
            yield from gathered.add(topic, partitions[is_mine], rows[is_mine])
    yield from gathered.packs()


def _measured(column: Any) -> Ints:
    """The content numbers of byte strings, computed in place."""
    array = column.cast(pa.large_binary())
    validity, offsets, data = array.buffers()
    count = len(array)
    if not count:
        return np.empty(0, np.int64)
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + count + 1]
    lengths = np.diff(bounds)
    spans = np.stack([bounds[:-1], lengths], 1).astype(np.uint64).reshape(-1)
    view = memoryview(data) if data is not None else memoryview(b"")
    sums = np.array(crc32c_parts(view, spans.data), np.int64)
    if validity is not None and array.null_count:
        is_null = array.is_null().to_numpy(zero_copy_only=False)
        lengths = np.where(is_null, -1, lengths)
    return content(sums, lengths)
