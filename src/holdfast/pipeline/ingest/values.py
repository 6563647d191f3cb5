"""Values with fields: parses them, and decides which are bad.

A bad value is never lost and never stops the stream: it goes to the quarantine with a reason. A
value of null (a tombstone) is not bad; it has no fields.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from holdfast.pipeline.errors import PipelineError

CORRUPT: Final = "_holdfast_corrupt"
"""The field for a text that the parser could not read."""
LONG_NUMBER: Final = r"(^|[\[:,\s])[-+.eE0-9]{1001}"
"""Valid JSON, and more than any of Spark's parsers reads (Jackson's limit): the table could not
hold the value with any schema."""
HINT: Final = "write the fields as 'carrier STRING, delay INT', or as the JSON of a Spark schema"


def read_schema(path: Path) -> StructType:
    """Fields of a value, from a file: Spark's DDL, or a schema in Spark's JSON."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"the schema {path} cannot be read: {error}") from None
    try:
        schema = (
            StructType.fromJson(json.loads(text))
            if text.startswith("{")
            else StructType.fromDDL(text)
        )
    except (PySparkException, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "nothing known")
        raise PipelineError(f"{path} is not a schema: {reason.strip()}", hint=HINT) from None
    if not isinstance(schema, StructType) or not schema.fields:
        raise PipelineError(f"{path} is a schema without fields", hint=HINT)
    return schema


def parsed(rows: DataFrame, schema: StructType) -> DataFrame:
    """The rows with what the parser made of each value, in `parsed`, `is_json` and `is_strict`.

    Keep it (`persist`) before `judged`: Spark would put the parser in the place of every mention of
    `parsed`, and parse each value once for every field.
    """
    wanted = StructType([*schema.fields, StructField(CORRUPT, StringType())])
    text = f.col("value").cast("string")
    # The parser reads one value and ignores what follows; inside brackets nothing may follow.
    inside = f.concat(f.lit("["), text, f.lit("]"))
    options = {"columnNameOfCorruptRecord": CORRUPT, "allowSingleQuotes": "false"}
    return rows.withColumns(
        {
            "parsed": f.from_json(text, wanted, options),
            "is_json": f.coalesce(f.json_array_length(inside) == 1, f.lit(False)),
            # Only this parser accepts standard JSON alone, and refuses an object with a duplicate
            # key.
            "is_strict": f.try_parse_json(inside).isNotNull(),
        }
    )


def judged(rows: DataFrame, schema: StructType) -> DataFrame:
    """Rows with their fields alone in `parsed`, and `reason`: why a value is bad, or null."""
    is_corrupt = f.col(f"parsed.{CORRUPT}").isNotNull()
    is_strict = f.col("is_strict")
    reason = (
        f.when(f.col("value").isNull(), f.lit(None).cast("string"))
        .when(~f.is_valid_utf8(f.col("value").cast("string")), "the value is not UTF-8")
        .when(
            ~is_strict & f.col("value").cast("string").rlike(LONG_NUMBER),
            "a number has more than 1,000 digits",
        )
        .when(~f.col("is_json") | (~is_strict & is_corrupt), "the value is not JSON")
        .when(~is_strict, "a key is twice in one object")
        .when(f.col("parsed").isNull(), "the value is not a JSON object")
        .when(is_corrupt, "the value does not fit the schema")
        .otherwise(_lacking(schema))
    )
    return (
        rows.withColumn("reason", reason)
        .withColumn("parsed", f.col("parsed").dropFields(CORRUPT))
        .drop("is_json", "is_strict")
    )


def _lacking(schema: StructType) -> Column:
    """The first null field that may not be null; the parser takes all for optional."""
    found = f.lit(None).cast("string")
    for field in reversed([field for field in schema.fields if not field.nullable]):
        name = f"parsed.`{field.name}`"
        found = f.when(f.col(name).isNull(), f"the field {field.name} is missing").otherwise(found)
    return found
