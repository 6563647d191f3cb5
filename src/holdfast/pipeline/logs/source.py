"""The two data sources that Spark sees: one row per record, and one row per batch.

Spark 4.0 does not pass the needed columns to a Python source, so the option `columns` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from holdfast.pipeline.logs import columns
from holdfast.pipeline.logs.rows import batch_rows, record_rows
from holdfast.pipeline.logs.splits import Piece, Split, replicas, segments, splits
from holdfast.pipeline.logs.stream import LogStreamReader


class LogReader(DataSourceReader):
    """Reads everything there is when the query is planned."""

    def __init__(
        self,
        options: Mapping[str, str],
        schema: Any,
        rows: Callable[[Piece, Any], Iterator[Any]],
    ) -> None:
        self._options = options
        self._schema = schema
        self._rows = rows

    def partitions(self) -> list[Split]:
        found = [piece for one in replicas(self._options) for piece in segments(one)]
        return splits(found, columns.split_bytes(self._options))

    def read(self, partition: Split | None) -> Iterator[Any]:  # type: ignore[override]
        # Spark passes None where nothing was planned.
        for piece in partition.pieces if partition is not None else ():
            yield from self._rows(piece, self._schema)


class LogSource(DataSource):
    """Every record of every replica, and every damaged batch."""

    @classmethod
    def name(cls) -> str:
        return "holdfast-log"

    def schema(self) -> StructType:
        return columns.spark_schema(self._columns(self.options.get("columns")))

    def reader(self, schema: StructType) -> DataSourceReader:
        return LogReader(self.options, self._columns(",".join(schema.names)), record_rows)

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802  # Spark's name
        return LogStreamReader(self.options, self._columns(",".join(schema.names)))

    @staticmethod
    def _columns(names: str | None) -> Any:
        return columns.chosen(names, columns.LOG, columns.ON_REQUEST)


class BatchSource(DataSource):
    """Every batch of every replica, by its header, its CRC checked."""

    @classmethod
    def name(cls) -> str:
        return "holdfast-batches"

    def schema(self) -> StructType:
        return columns.spark_schema(columns.chosen(self.options.get("columns"), columns.BATCHES))

    def reader(self, schema: StructType) -> DataSourceReader:
        names = ",".join(schema.names)
        return LogReader(self.options, columns.chosen(names, columns.BATCHES), batch_rows)
