"""The data sources inside Spark: types, queries, failures, and a stream that is restarted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from holdfast.pipeline import logs
from holdfast.pipeline.logs import columns
from tests.pipeline import log_files as files
from tests.support.spark import SPARKS_SOCKETS, session

pytestmark = [pytest.mark.slow, *SPARKS_SOCKETS]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session("test logs") as spark:
        logs.register(spark)
        yield spark


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files.write_log(tmp_path, files.odd_batches(), segment_bytes=1_600)
    files.checkpoint(tmp_path, high_watermark=50, recovery_point=10)
    return tmp_path


def test_a_table_has_the_rows_that_the_files_have(spark: SparkSession, root: Path) -> None:
    table = spark.read.format("holdfast-log").option("splitBytes", "700").load(f"b1={root}")
    assert table.columns == list(columns.LOG)
    assert dict(table.dtypes)["timestamp"] == "timestamp"
    assert dict(table.dtypes)["headers"] == "array<struct<key:string,value:binary>>"
    assert table.rdd.getNumPartitions() > 3
    found = {row.offset: row.asDict(recursive=True) for row in table.collect()}
    plain = files.rows(root, *columns.LOG)
    assert len(found) == len(plain)
    for row in plain:
        row["timestamp"] = row["timestamp"] and row["timestamp"].replace(tzinfo=None)
        assert _with_bytes(found[row["offset"]]) == row


def _with_bytes(value: Any) -> Any:
    """Spark gives bytearrays."""
    match value:
        case bytearray():
            return bytes(value)
        case dict():
            return {name: _with_bytes(one) for name, one in value.items()}
        case list():
            return [_with_bytes(one) for one in value]
        case _:
            return value


def test_damage_is_a_row_and_not_a_dead_job(spark: SparkSession, root: Path) -> None:
    first, *_ = files.segment_files(root)
    data = bytearray(first.read_bytes())
    data[200] ^= 1
    first.write_bytes(data)
    table = spark.read.format("holdfast-log").load(f"b1={root}")
    [bad] = table.where("error is not null").collect()
    assert (bad.offset, bad.position, bad.below_high_watermark, bad.flushed) == (0, 0, True, True)
    assert bad.key is bad.value is bad.headers is bad.timestamp is bad.value_crc is None
    assert table.where("error is null").count() == len(list(files.rows(root))) - 1


def test_few_columns_and_equal_batches(spark: SparkSession, root: Path, tmp_path: Path) -> None:
    other = tmp_path / "b2"
    files.write_log(other, files.odd_batches()[:-1])
    paths = f"b1={root},b2={other}"
    narrow = spark.read.format("holdfast-log").option("columns", "broker,key_crc,value_len")
    assert narrow.load(paths).columns == ["broker", "key_crc", "value_len"]
    spark.read.format("holdfast-batches").load(paths).createOrReplaceTempView("batches")
    lonely = spark.sql(
        "select base_offset from batches group by base_offset, last_offset, crc having count(*) = 1"
    )
    last = max(row["offset"] for row in files.plain_rows(root))
    assert [row.base_offset for row in lonely.collect()] == [last]


def test_an_empty_directory_is_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.read.format("holdfast-log").load(f"b1={tmp_path}").collect() == []


def test_what_cannot_be_read_is_said(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match=r"no-such-place \(of b1\) is not a directory"):
        spark.read.format("holdfast-log").load("b1=no-such-place").collect()


def test_a_stream_that_is_restarted_gives_no_row_twice(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "b1"
    files.write_log(root, files.plain_batches(5), segment_bytes=500)
    seen: dict[int, list[int]] = {}

    def keep(batch: DataFrame, number: int) -> None:
        seen[number] = sorted(row.offset for row in batch.collect())

    def run() -> None:
        stream = spark.readStream.format("holdfast-log").option("columns", "offset,error")
        writer = stream.load(f"b1={root}").writeStream.foreachBatch(keep)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    for count in (0, 3, 0, 4):
        end = sum(len(rows) for rows in seen.values())
        *_, file = files.segment_files(root)
        with file.open("ab") as log:
            log.write(b"".join(files.plain_batches(count, first=end)))
        run()
    assert [one for number in sorted(seen) for one in seen[number]] == list(range(36))
    # A driver that was killed before it could commit does its last micro-batch again.
    before = dict(seen)
    last = max(seen)
    (tmp_path / "checkpoint" / "commits" / str(last)).unlink()
    seen.clear()
    run()
    assert seen[last] == before[last]
    assert [number for number, rows in seen.items() if rows] == [last]
