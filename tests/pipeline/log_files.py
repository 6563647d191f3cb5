"""Log directories for the tests of the data source, and a slow obvious reader of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.model import TopicPartition
from holdfast.pipeline.logs import columns
from holdfast.pipeline.logs.rows import batch_rows, record_rows
from holdfast.pipeline.logs.source import LogReader
from holdfast.protocol.records import (
    BatchBuilder,
    BatchOptions,
    Compression,
    NewRecord,
    batches,
    build_batch,
    crc32c,
    read_records,
)
from holdfast.storage import Log, LogSettings, RealDisk
from holdfast.storage.checkpoints.checkpoint_file import write_offsets
from holdfast.storage.file_names import HIGH_WATERMARKS, RECOVERY_POINTS
from tests.unit.storage.support import CLEAN, NOW, batch, marker, opened, produced

TOPIC = "events"
DIRECTORY = "events-0"

Row = dict[str, Any]


def odd_batches() -> list[bytearray]:
    """Every kind of batch that a log may hold, at rising offsets."""
    made: list[bytearray] = []

    def end() -> int:
        return next(batches(made[-1])).header.end_offset if made else 0

    for codec in Compression:
        values = [f"{codec.name} {nth} ".encode() * 9 for nth in range(20)]
        made.append(batch(end(), values, epoch=3, options=BatchOptions(compression=codec)))
    made.append(produced(end(), 7, 2**31 - 2, [b"a", b"b", b"c"]))  # Sequences start again at 0.
    made.append(produced(end(), 8, 0, [b"in", b"doubt"], is_transactional=True, epoch=4))
    made.append(marker(end(), 8, is_commit=False, epoch=4))
    made.append(batch(end(), [None, b"", b"x"], keys=[b"tombstone", None, b""]))
    headers = [("name", b"value"), ("name", None), ("", b"")]
    made.append(build_batch([NewRecord(b"v", b"k", NOW, headers)], BatchOptions(base_offset=end())))
    made.append(build_batch([NewRecord(b"no time")], BatchOptions(base_offset=end())))
    clock = BatchOptions(base_offset=end(), append_time_ms=NOW + 5)
    made.append(build_batch([NewRecord(b"late", None, NOW), NewRecord(b"too")], clock))
    thinned = BatchBuilder(BatchOptions(base_offset=end()))
    thinned.append(b"kept", b"key", NOW, offset_delta=4)
    made.append(thinned.build(last_offset_delta=9))
    made.append(BatchBuilder(BatchOptions(base_offset=end())).build(last_offset_delta=2))
    made.append(batch(end() + 10, [b"after a gap"], epoch=5))
    return made


def plain_batches(
    count: int, *, values: int = 3, first: int = 0, epoch: int = 0
) -> list[bytearray]:
    """Batches of one size, which is the worst case for a damaged length: it may fit."""
    return [
        batch(
            base := first + nth * values,
            [f"value {base + place:05d}".encode() for place in range(values)],
            keys=[f"key {place}".encode() for place in range(values)],
            epoch=epoch,
        )
        for nth in range(count)
    ]


def write_log(
    root: Path,
    made: Iterable[bytearray],
    *,
    segment_bytes: int = 1 << 20,
    index_interval_bytes: int = 300,
) -> Log:
    """A log made by storage and closed, its indexes written."""
    root.mkdir(parents=True, exist_ok=True)
    settings = LogSettings(segment_bytes=segment_bytes, index_interval_bytes=index_interval_bytes)
    log = opened(RealDisk(root), settings, CLEAN, DIRECTORY).log
    for one in made:
        log.append([one], NOW)
    log.close(NOW)
    return log


def segment_files(root: Path) -> list[Path]:
    return sorted((root / DIRECTORY).glob("*.log"))


def drop_indexes(root: Path) -> None:
    """As a killed broker leaves its last segment."""
    for file in (root / DIRECTORY).glob("*index"):
        file.unlink()


def checkpoint(root: Path, *, high_watermark: int, recovery_point: int) -> None:
    disk, partition = RealDisk(root), TopicPartition(TOPIC, 0)
    write_offsets(disk, HIGH_WATERMARKS, {partition: high_watermark})
    write_offsets(disk, RECOVERY_POINTS, {partition: recovery_point})


# Reading.


def reader(root: Path, *names: str, **options: str) -> LogReader:
    """As Spark makes it; without names it reads every column there is."""
    schema = columns.chosen(
        ",".join(names or [*columns.LOG, *columns.ON_REQUEST]), columns.LOG, columns.ON_REQUEST
    )
    return LogReader({"path": f"b1={root}", **options}, schema, record_rows)


def batch_reader(root: Path, **options: str) -> LogReader:
    schema = columns.chosen(None, columns.BATCHES)
    return LogReader({"path": f"b1={root}", **options}, schema, batch_rows)


def read(one: LogReader) -> list[Row]:
    """All rows of all splits."""
    return [
        row for split in one.partitions() for part in one.read(split) for row in part.to_pylist()
    ]


def rows(root: Path, *names: str, **options: str) -> list[Row]:
    return read(reader(root, *names, **options))


def good(found: Iterable[Row]) -> list[Row]:
    return [row for row in found if row["error"] is None]


def errors(found: Iterable[Row]) -> list[str]:
    return [row["error"] for row in found if row["error"] is not None]


def offsets(found: Iterable[Row]) -> list[int]:
    return [row["offset"] for row in good(found)]


def plain_rows(root: Path) -> Iterator[Row]:
    """What the columns must say of a good log, by the plain reader."""
    for file in segment_files(root):
        for one in batches(file.read_bytes()):
            one.check_crc()
            header = one.header
            for record in read_records(one):
                yield {
                    "broker": "b1",
                    "topic": TOPIC,
                    "partition": 0,
                    "offset": record.offset,
                    "leader_epoch": header.leader_epoch,
                    "key": _bytes(record.key),
                    "value": _bytes(record.value),
                    "headers": [
                        {"key": name, "value": _bytes(value)} for name, value in record.headers
                    ],
                    "value_crc": crc32c(record.value or b""),
                    "producer_id": header.producer_id,
                    "producer_epoch": header.producer_epoch,
                    "sequence": record.sequence,
                    "is_control": header.is_control,
                    "is_transactional": header.is_transactional,
                    "segment": file.name,
                    "position": one.position,
                    "error": None,
                    "key_crc": crc32c(record.key or b""),
                    "key_len": -1 if record.key is None else len(record.key),
                    "value_len": -1 if record.value is None else len(record.value),
                    "timestamp": record.timestamp,
                }


def _bytes(view: memoryview | bytes | None) -> bytes | None:
    return None if view is None else bytes(view)


def without(row: Mapping[str, Any], names: Sequence[str]) -> Row:
    return {name: value for name, value in row.items() if name not in names}
