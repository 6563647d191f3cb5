"""The Delta table and its quarantine: creates, checks and maintains them.

A table's source is one of its properties. An ingest with other topics, another format or another
cluster is refused: the checkpoint's offsets would mean something else.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any, Final

from delta import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from holdfast.pipeline.errors import PipelineError
from holdfast.pipeline.ingest.options import Ingest
from holdfast.pipeline.ingest.topics import Topics

PROPERTY: Final = "holdfast.ingest"
RECORD: Final = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
WRITTEN: Final = "batch_id BIGINT, ingested_at TIMESTAMP"
ANOTHER: Final = "take another --table"
DAMAGED: Final = re.compile(
    r'\{"cluster": "(?P<cluster>[^"]*)", "topics": "(?P<topics>.*)", '
    r'"value_format": "(?P<value_format>raw|json)", "schema": "(?P<schema>.*)"\}',
    re.DOTALL,
)
"""A property whose escapes an SQL literal has resolved: every value is plain text by then."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a table."""

    cluster: str
    topics: str
    value_format: str
    schema: str
    """Spark's JSON of the fields; empty for raw values."""

    def to_json(self) -> str:
        """The property's value."""
        return json.dumps(asdict(self))

    @classmethod
    def parsed(cls, text: str) -> Source:
        """From a property; also one that an older release wrote as SQL text."""
        try:
            return cls(**json.loads(text))
        except ValueError:
            damaged = DAMAGED.fullmatch(text)
            if damaged is None:
                raise PipelineError(f"the table's property {PROPERTY} cannot be read") from None
            return cls(**damaged.groupdict())


def prepare(spark: SparkSession, asked: Ingest, cluster: str, fields: StructType | None) -> None:
    """Create both tables if needed; PipelineError if one has another source."""
    source = Source(
        cluster=cluster,
        topics=str(asked.topics),
        value_format=asked.value_format,
        schema="" if fields is None else fields.json(),
    )
    columns = _columns(RECORD)
    if fields is not None:
        columns = columns.add(StructField("parsed", _optional(fields)))
    if DeltaTable.isDeltaTable(spark, asked.table):
        _compare(spark, asked, source)
    else:
        _create(spark, asked.table, StructType([*columns, *_columns(WRITTEN)]), source)
    # Second: Delta creates no table in a folder that is not empty.
    if fields is not None:
        quarantine = StructType([*_columns(RECORD), *_columns(f"reason STRING, {WRITTEN}")])
        _create(spark, asked.quarantine, quarantine, source)


def _columns(ddl: str) -> StructType:
    columns = StructType.fromDDL(ddl)
    assert isinstance(columns, StructType), "our DDL names columns"
    return columns


def _optional(fields: StructType) -> StructType:
    """All fields may be null: a tombstone has none of them."""
    return StructType([StructField(field.name, field.dataType, True) for field in fields])


def _create(spark: SparkSession, path: str, columns: StructType, source: Source) -> None:
    made = DeltaTable.createIfNotExists(spark).location(path).addColumns(columns)
    made.property(PROPERTY, source.to_json()).execute()


def _compare(spark: SparkSession, asked: Ingest, source: Source) -> None:
    table = _open(spark, asked.table)
    known = table.detail().collect()[0]["properties"].get(PROPERTY)
    if known is None:
        raise PipelineError(
            f"{asked.table} is a Delta table that was not made by an ingest", hint=ANOTHER
        )
    before = Source.parsed(known)
    if before.cluster and source.cluster and before.cluster != source.cluster:
        raise PipelineError(
            f"{asked.table} is fed from cluster {before.cluster}, not from {source.cluster}: "
            "offsets of one mean nothing in the other",
            hint=ANOTHER,
        )
    if (before.value_format, before.schema) != (source.value_format, source.schema):
        raise PipelineError(
            f"{asked.table} was made for values in {before.value_format} with other fields: "
            "a batch that an earlier run left unfinished must be finished with the same fields",
            hint=f"use the same --value-format and --schema, or {ANOTHER}",
        )
    if not asked.topics.hold_all_of(Topics.parsed(before.topics)):
        raise PipelineError(
            f"{asked.table} is fed from {before.topics}; {asked.topics} leaves some of that out",
            hint=f"name at least the same topics, or {ANOTHER}",
        )
    if table.toDF().take(1) and not _exists(spark, f"{asked.checkpoint}/metadata"):
        raise PipelineError(
            f"{asked.table} has rows, but its checkpoint {asked.checkpoint} is gone: "
            "reading again from the start would duplicate every row",
            hint=f"put the checkpoint back, or {ANOTHER}",
        )
    if known != source.to_json():
        _set_property(spark, asked.table, source.to_json())


def _set_property(spark: SparkSession, path: str, value: str) -> None:
    """Through Spark's catalog: SQL text would resolve the value's escapes."""
    assert spark._jvm is not None
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    api = spark._jvm.org.apache.spark.sql.connector.catalog
    namespace = gateway.new_array(spark._jvm.java.lang.String, 1)
    namespace[0] = "delta"
    changes = gateway.new_array(api.TableChange, 1)
    changes[0] = api.TableChange.setProperty(PROPERTY, value)
    catalog = spark._jsparkSession.sessionState().catalogManager().catalog("spark_catalog")
    catalog.alterTable(api.Identifier.of(namespace, path), changes)


def _exists(spark: SparkSession, path: str) -> bool:
    """Whether it exists, on any file system."""
    assert spark._jvm is not None
    where = spark._jvm.org.apache.hadoop.fs.Path(path)
    system = where.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    return bool(system.exists(where))


def _open(spark: SparkSession, path: str) -> DeltaTable:
    if not DeltaTable.isDeltaTable(spark, path):
        raise PipelineError(f"there is no Delta table at {path}")
    return DeltaTable.forPath(spark, path)


def compact(spark: SparkSession, path: str) -> dict[str, Any]:
    """Rewrite many small files as few; readers of older versions are not affected."""
    done = _open(spark, path).optimize().executeCompaction()
    metrics: dict[str, Any] = done.select("metrics.*").collect()[0].asDict(recursive=True)
    return metrics


def history(spark: SparkSession, path: str, limit: int) -> list[dict[str, Any]]:
    """The newest versions, newest first; their times are text, in UTC."""
    versions = _open(spark, path).history(limit)
    # A timestamp that is collected becomes this machine's local time.
    time = f.date_format("timestamp", "yyyy-MM-dd HH:mm:ss")
    rows = versions.withColumn("timestamp", time).collect()
    return [row.asDict(recursive=True) for row in rows]
