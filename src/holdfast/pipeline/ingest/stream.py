"""The query: writes the connector's batches into the tables.

A batch may be written again after a crash. Its offsets are then the same (they were in the
checkpoint before it was read), and so are its good and its bad values, because the fields cannot
change (`tables`). Delta skips each of the two tables that has the batch already.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from holdfast.pipeline.ingest.options import Ingest
from holdfast.pipeline.ingest.values import judged, parsed

OFFSETS_PER_BATCH: Final = 500_000
"""So that a batch of 1 KiB values stays below half a gigabyte, and progress is visible."""
PAUSE: Final = "1 second"
"""Between the starts of batches of a continuous ingest: fewer, larger files."""
RECORD: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
QUERY_ID: Final = "sql.streaming.queryId"
"""Spark's local property: the query's permanent id, kept in its checkpoint."""


class Stream:
    """One ingest's query."""

    def __init__(self, asked: Ingest, fields: StructType | None) -> None:
        self._asked = asked
        self._fields = fields
        self.failure: Exception | None = None
        """Why the last batch failed. Spark passes on only the text."""

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Start, or continue from the checkpoint."""
        name, value = self._asked.topics.option
        rows = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self._asked.bootstrap)
            .option("kafka.isolation.level", "read_committed")
            .option(name, value)
            .option("startingOffsets", "earliest")
            .option("includeHeaders", "true")
            .option("failOnDataLoss", str(self._asked.stops_on_data_loss).lower())
            .option("maxOffsetsPerTrigger", OFFSETS_PER_BATCH)
            .load()
        )
        writer = rows.select(*RECORD).writeStream.foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", self._asked.checkpoint)
        if self._asked.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=PAUSE).start()

    def _batch(self, rows: DataFrame, batch: int) -> None:
        try:
            self._write(rows, batch)
        except Exception as error:
            self.failure = error
            raise

    def _write(self, rows: DataFrame, batch: int) -> None:
        if self._fields is None:
            _append(rows, batch, self._asked.table)
            return
        # Persisted: the brokers are read once, for both tables.
        read = parsed(rows, self._fields).persist()
        try:
            checked = judged(read, self._fields)
            is_bad = f.col("reason").isNotNull()
            _append(checked.where(~is_bad).drop("reason"), batch, self._asked.table)
            bad = checked.where(is_bad).drop("parsed")
            if not bad.isEmpty():
                _append(bad, batch, self._asked.quarantine)
        finally:
            read.unpersist()


def _append(rows: DataFrame, batch: int, table: str) -> None:
    query = rows.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    assert query is not None, "a batch is written by its query"
    stamped = rows.withColumn("batch_id", f.lit(batch).cast("bigint"))
    (
        stamped.withColumn("ingested_at", f.current_timestamp())
        .write.format("delta")
        .mode("append")
        .option("txnAppId", query)
        .option("txnVersion", batch)
        .save(table)
    )
