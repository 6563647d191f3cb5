"""Log directories as rows: what good logs say, and that splits change nothing."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.pipeline import PipelineError
from holdfast.pipeline.logs import columns, parse_paths
from holdfast.pipeline.logs.splits import Split
from holdfast.protocol.records import batches
from tests.pipeline import log_files as files
from tests.unit.storage.support import NOW, batch

MARKS = ("below_high_watermark", "flushed")


def test_every_kind_of_batch_reads_as_the_plain_reader_reads_it(tmp_path: Path) -> None:
    files.write_log(tmp_path, files.odd_batches(), segment_bytes=1_600)
    assert len(files.segment_files(tmp_path)) > 2
    found = files.rows(tmp_path)
    for row, plain in zip(found, files.plain_rows(tmp_path), strict=True):
        time = plain.pop("timestamp")
        expected = None if time < 0 else datetime.fromtimestamp(time / 1000, UTC)
        assert row.pop("timestamp") == expected
        assert files.without(row, MARKS) == plain


def test_a_timestamp_that_spark_cannot_hold_is_null(tmp_path: Path) -> None:
    files.write_log(tmp_path, [batch(0, [b"x"], timestamp=2**62)])
    [row] = files.rows(tmp_path, "offset", "timestamp")
    assert row == {"offset": 0, "timestamp": None}


def test_only_the_columns_asked_for_come_in_the_order_asked_for(tmp_path: Path) -> None:
    files.write_log(tmp_path, files.plain_batches(2))
    found = files.rows(tmp_path, "value_len", "offset")
    assert [list(row.items()) for row in found][:1] == [[("value_len", 11), ("offset", 0)]]


def test_checkpoints_say_what_is_committed_and_what_is_flushed(tmp_path: Path) -> None:
    files.write_log(tmp_path, files.plain_batches(2))
    files.checkpoint(tmp_path, high_watermark=4, recovery_point=2)
    found = files.rows(tmp_path)
    assert [row["below_high_watermark"] for row in found] == [True] * 4 + [False] * 2
    assert [row["flushed"] for row in found] == [True] * 2 + [False] * 4


@pytest.mark.parametrize("content", [None, b"0\n7\nnonsense\n"])
def test_a_checkpoint_that_is_missing_or_damaged_makes_nulls(
    tmp_path: Path, content: bytes | None
) -> None:
    files.write_log(tmp_path, files.plain_batches(1))
    if content is not None:
        (tmp_path / "replication-offset-checkpoint").write_bytes(content)
    assert {row["below_high_watermark"] for row in files.rows(tmp_path)} == {None}


def test_topics_and_brokers_are_distinguished(tmp_path: Path) -> None:
    for name in ("one", "two"):
        files.write_log(tmp_path / name, files.plain_batches(1))
    other = tmp_path / "two" / "other.topic-12"
    shutil.copytree(tmp_path / "two" / files.DIRECTORY, other)
    shutil.copytree(other, tmp_path / "two" / f"gone-0.{'a' * 32}-delete")
    paths = f"b1={tmp_path / 'one'}, b2={tmp_path / 'two'}"
    names = ("broker", "topic", "partition")

    def seen(**options: str) -> set[tuple[object, ...]]:
        found = files.rows(tmp_path, *names, path=paths, **options)
        return {tuple(row[name] for name in names) for row in found}

    assert seen() == {("b1", "events", 0), ("b2", "events", 0), ("b2", "other.topic", 12)}
    assert seen(topics="other.topic, absent") == {("b2", "other.topic", 12)}
    assert seen(topics="absent") == set()


def test_batches_are_rows_from_their_headers(tmp_path: Path) -> None:
    made = files.odd_batches()
    headers = [next(batches(one)).header for one in made]
    files.write_log(tmp_path, made)
    files.checkpoint(tmp_path, high_watermark=19, recovery_point=20)
    found = files.read(files.batch_reader(tmp_path))
    assert [row["base_offset"] for row in found] == [one.base_offset for one in headers]
    assert [row["last_offset"] for row in found] == [one.end_offset - 1 for one in headers]
    assert [row["records"] for row in found] == [one.record_count for one in headers]
    assert [row["crc"] for row in found] == [one.crc for one in headers]
    assert [row["is_control"] for row in found] == [one.is_control for one in headers]
    assert [row["size"] for row in found] == [one.size for one in headers]
    # A batch is committed or flushed if all of it is.
    assert [row["below_high_watermark"] for row in found[:2]] == [False, False]
    assert [row["flushed"] for row in found[:2]] == [True, False]
    assert found[0]["max_timestamp"] == datetime.fromtimestamp((NOW + 19) / 1000, UTC)


# Splits.


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two good logs in three segments, with and without indexes, and damaged twins of them."""
    made = files.odd_batches() + files.plain_batches(60, first=200)
    folder = tmp_path_factory.mktemp("logs")
    found = {name: folder / name for name in ("indexed", "bare", "damaged", "damaged-bare")}
    for root in found.values():
        files.write_log(root, made, segment_bytes=4_000)
    for name in ("damaged", "damaged-bare"):
        for file in files.segment_files(found[name]):
            data = bytearray(file.read_bytes())
            for position in range(150, len(data), 997):
                data[position] ^= 0xFF
            file.write_bytes(data)
    for name in ("bare", "damaged-bare"):
        files.drop_indexes(found[name])
    return found


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(["indexed", "bare", "damaged", "damaged-bare"]),
    split_bytes=st.integers(100, 5_000),
)
def test_splits_give_the_rows_of_one_split(
    logs: dict[str, Path], name: str, split_bytes: int
) -> None:
    whole = files.reader(logs[name], splitBytes=str(1 << 30))
    assert len(whole.partitions()) == 1
    reader = files.reader(logs[name], splitBytes=str(split_bytes))
    assert len(reader.partitions()) > 1
    assert files.read(reader) == files.read(whole)


def test_splits_are_few_and_about_equal(tmp_path: Path) -> None:
    files.write_log(tmp_path, files.plain_batches(50), segment_bytes=500)
    assert len(files.segment_files(tmp_path)) > 10
    assert len(files.reader(tmp_path).partitions()) == 1  # An empty task costs more than all this.
    for file in files.segment_files(tmp_path):
        os.truncate(file, 30 << 20)
    sizes = [_bytes(split) for split in files.reader(tmp_path).partitions()]
    assert 16 <= len(sizes) <= 17
    assert set(sizes[:-1]) == {max(sizes)}


def _bytes(split: Split) -> int:
    return sum(piece.stop - piece.start for piece in split.pieces)


# Options.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not BROKER=DIR"),
        ("b1", "'b1' is not BROKER=DIR"),
        ("b1=.,=x", "'=x' is not BROKER=DIR"),
        ("b1=no-such-place", "no-such-place (of b1) is not a directory on this machine"),
    ],
)
def test_a_path_that_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(PipelineError) as refusal:
        parse_paths(text)
    assert refusal.value.message == message
    assert refusal.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [("offset,size", "there is no 'size'"), ("offset,offset", "twice in 'offset,offset'")],
)
def test_columns_that_do_not_exist_are_refused(text: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        columns.chosen(text, columns.LOG, columns.ON_REQUEST)


@pytest.mark.parametrize("text", ["0", "-1", "much"])
def test_a_split_size_is_a_number(tmp_path: Path, text: str) -> None:
    with pytest.raises(PipelineError, match="splitBytes"):
        files.reader(tmp_path, splitBytes=text).partitions()
