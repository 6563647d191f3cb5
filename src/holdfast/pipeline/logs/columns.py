"""The columns of the log tables: names, types, and which ones are wanted.

The names are those of the pipeline's tables. Types are the Kafka connector's where it has the
column. Unsigned 32-bit sums are longs, since Spark has no unsigned numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from holdfast.pipeline.errors import PipelineError
from holdfast.protocol.records.arrow.rows import HEADER_TYPE

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
"""Spark's own timestamps, so that nothing has to be converted on the way."""

LOG: Final[dict[str, Any]] = {
    "broker": pa.string(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "leader_epoch": pa.int32(),
    "timestamp": TIMESTAMP,
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(HEADER_TYPE),
    "value_crc": pa.int64(),
    "producer_id": pa.int64(),
    "producer_epoch": pa.int16(),
    "sequence": pa.int32(),
    "is_control": pa.bool_(),
    "is_transactional": pa.bool_(),
    "segment": pa.string(),
    "position": pa.int64(),
    "below_high_watermark": pa.bool_(),
    "flushed": pa.bool_(),
    "error": pa.string(),
}
"""One row per record and replica."""

ON_REQUEST: Final[dict[str, Any]] = {
    "key_crc": pa.int64(),
    "key_len": pa.int32(),
    "value_len": pa.int32(),
}
"""Columns of LOG that must be named to be included."""

BATCHES: Final[dict[str, Any]] = {
    "broker": pa.string(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "base_offset": pa.int64(),
    "last_offset": pa.int64(),
    "records": pa.int32(),
    "crc": pa.int64(),
    "leader_epoch": pa.int32(),
    "max_timestamp": TIMESTAMP,
    "producer_id": pa.int64(),
    "producer_epoch": pa.int16(),
    "base_sequence": pa.int32(),
    "is_control": pa.bool_(),
    "is_transactional": pa.bool_(),
    "segment": pa.string(),
    "position": pa.int64(),
    "size": pa.int32(),
    "below_high_watermark": pa.bool_(),
    "flushed": pa.bool_(),
    "error": pa.string(),
}
"""One row per batch and replica."""


def chosen(text: str | None, table: dict[str, Any], more: dict[str, Any] | None = None) -> Any:
    """The Arrow schema of the columns that an option names, in its order; all without it."""
    known = {**table, **(more or {})}
    names = [name.strip() for name in text.split(",")] if text is not None else list(table)
    unknown = [name for name in names if name not in known]
    if unknown or len(set(names)) < len(names):
        raise PipelineError(
            f"columns: there is no '{unknown[0]}'" if unknown else f"columns: twice in '{text}'",
            hint=f"There are: {', '.join(known)}",
        )
    return pa.schema([(name, known[name]) for name in names])


def spark_schema(schema: Any) -> StructType:
    """The same for Spark. Every column may be null: in a row about damage most are."""
    return StructType(
        [StructField(field.name, from_arrow_type(field.type), nullable=True) for field in schema]
    )


def split_bytes(options: Mapping[str, str]) -> int | None:
    """The option `splitBytes`: how much a task reads; without it the source decides."""
    text = options.get("splitBytes")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text)):
        raise PipelineError(f"splitBytes: '{text}' is not a number of bytes above 0")
    return int(text)
