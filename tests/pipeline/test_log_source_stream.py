"""The streaming source without Spark: offsets, boundaries, restarts, truncation."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

from holdfast.pipeline.logs import columns
from holdfast.pipeline.logs.stream import LogStreamReader
from tests.pipeline import log_files as files

VALUES = 3


def follower(root: Path, **options: str) -> LogStreamReader:
    schema = columns.chosen("offset,leader_epoch,error", columns.LOG)
    return LogStreamReader({"path": f"b1={root}", **options}, schema)


def between(one: LogStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[files.Row]:
    splits = one.partitions(json.loads(json.dumps(start)), json.loads(json.dumps(end)))
    return [row for split in splits for part in one.read(split) for row in part.to_pylist()]


def end_of(offset: int) -> dict[str, Any]:
    return {"b1": {files.DIRECTORY: offset}}


def append(root: Path, count: int, first: int, epoch: int = 0) -> None:
    *_, file = files.segment_files(root)
    with file.open("ab") as log:
        for one in files.plain_batches(count, first=first, epoch=epoch):
            log.write(one)


def test_every_micro_batch_begins_where_the_last_one_ended(tmp_path: Path) -> None:
    files.write_log(tmp_path, files.plain_batches(20), segment_bytes=1_000)
    one = follower(tmp_path)
    start = one.initialOffset()
    seen: list[int] = []
    for count in (0, 1, 5, 0, 30):
        append(tmp_path, count, len(seen) or 60)
        end = one.latestOffset()
        seen += files.offsets(between(one, start, end))
        assert end == end_of(len(seen))
        start = end
    assert seen == list(range(60 + 36 * VALUES))


def test_a_restart_reads_the_same_rows_between_the_same_offsets(tmp_path: Path) -> None:
    files.write_log(tmp_path, files.plain_batches(40), segment_bytes=1_000)
    for first in range(0, 120, VALUES):
        for last in range(first, 121, 30):
            # Another reader, which knows nothing, and small splits.
            rows = between(follower(tmp_path, splitBytes="300"), end_of(first), end_of(last))
            assert files.offsets(rows) == list(range(first, last))


def test_an_append_under_way_is_left_for_the_next_time(tmp_path: Path) -> None:
    files.write_log(tmp_path, files.plain_batches(2))
    [file] = files.segment_files(tmp_path)
    one = follower(tmp_path)
    [more] = files.plain_batches(1, first=6)
    before = file.read_bytes()
    for size in range(0, len(more), 7):
        file.write_bytes(before + more[:size])
        assert one.latestOffset() == end_of(6)
    file.write_bytes(before + more)
    assert one.latestOffset() == end_of(9)
    assert files.offsets(between(one, end_of(6), end_of(9))) == [6, 7, 8]


def test_an_empty_new_segment_has_an_end(tmp_path: Path) -> None:
    files.write_log(tmp_path, files.plain_batches(2))
    (tmp_path / files.DIRECTORY / f"{6:020d}.log").touch()
    one = follower(tmp_path)
    assert one.latestOffset() == end_of(6)
    assert files.offsets(between(one, {}, end_of(6))) == list(range(6))


def test_damage_is_shown_once(tmp_path: Path) -> None:
    files.write_log(tmp_path, files.plain_batches(3))
    [file] = files.segment_files(tmp_path)
    one = follower(tmp_path)
    first = one.latestOffset()
    with file.open("ab") as log:
        log.write(Random(1).randbytes(500))
    # No good batch follows yet.
    assert one.latestOffset() == first
    append(tmp_path, 2, 9)
    second = one.latestOffset()
    rows = between(one, {}, first) + between(one, first, second)
    assert files.offsets(rows) == list(range(15))
    assert len(files.errors(rows)) == 1


def test_a_truncated_replica_goes_back(tmp_path: Path) -> None:
    files.write_log(tmp_path, files.plain_batches(5))
    [file] = files.segment_files(tmp_path)
    one = follower(tmp_path)
    first = one.latestOffset()
    os.truncate(file, file.stat().st_size // 5 * 2)
    second = one.latestOffset()
    assert second == end_of(6)
    assert between(one, first, second) == []
    append(tmp_path, 1, 6, epoch=1)
    rows = between(one, second, one.latestOffset())
    assert [(row["offset"], row["leader_epoch"]) for row in rows] == [(6, 1), (7, 1), (8, 1)]


def test_a_log_that_was_truncated_and_has_grown_again_is_walked_again(tmp_path: Path) -> None:
    files.write_log(tmp_path, files.plain_batches(5))
    files.drop_indexes(tmp_path)
    [file] = files.segment_files(tmp_path)
    one = follower(tmp_path)
    first = one.latestOffset()
    os.truncate(file, file.stat().st_size // 5)
    with file.open("ab") as log:
        for batch in files.plain_batches(8, values=2, first=3, epoch=1):  # Of another size.
            log.write(batch)
    second = one.latestOffset()
    assert second == end_of(19)
    rows = between(one, first, second)
    assert files.offsets(rows) == [15, 16, 17, 18]
    assert files.errors(rows) == []


def test_a_partition_that_appears_or_vanishes_is_no_error(tmp_path: Path) -> None:
    files.write_log(tmp_path, files.plain_batches(1))
    one = follower(tmp_path)
    first = one.latestOffset()
    (tmp_path / files.DIRECTORY).rename(tmp_path / "other-0")
    second = one.latestOffset()
    assert second == {"b1": {"other-0": 3}}
    assert files.offsets(between(one, first, second)) == [0, 1, 2]
