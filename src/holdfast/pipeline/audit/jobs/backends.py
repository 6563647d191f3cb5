"""Runs the audit's job: through Spark, or within this process.

The rules do not depend on it. Spark is for ledgers that one machine cannot hold, and for tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from holdfast.pipeline.audit.jobs import stretch_job
from holdfast.pipeline.audit.jobs.row_sources import (
    DELIVERED,
    PACKS,
    PACKS_DDL,
    SENT,
    LedgerFile,
    ledger_packs,
)
from holdfast.pipeline.audit.jobs.row_types import Bools
from holdfast.pipeline.audit.jobs.stretch_job import Context, Pack, Results, judge_packs, present
from holdfast.pipeline.audit.judge.stretch_verdict import Expectation
from holdfast.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Wanted = Callable[..., Bools]
Ends = Mapping[tuple[str, int], Expectation]
Files = Sequence[LedgerFile]


class Here:
    """Everything in this process, one stretch after the other."""

    versions: Mapping[str, str] = {}
    """Versions of the software that does the work."""

    def open_table(self, path: str, topics: Sequence[str]) -> Ends:
        """Also audit a table; returns what it should have of every partition."""
        raise PipelineError(f"the table {path} of {topics} can be read by Spark only")

    def packs(
        self,
        files: Files,
        topics: Sequence[str],
        source: int,
        span: int,
        is_wanted: Wanted | None = None,
    ) -> Iterator[Pack]:
        """Ledger files as packs in this process."""
        read = _read(ledger_packs(files, source, topics, span, is_wanted))
        return (pack for pack in read if pack[3] == source)

    def judged(
        self, context: Context, topics: Sequence[str], sent: Files, delivered: Files | None
    ) -> Results:
        """The judgement of every stretch."""
        packs = chain(
            _read(ledger_packs(sent, SENT, topics, context.span)),
            _read(ledger_packs(delivered or (), DELIVERED, topics, context.span)),
            present(context),
        )
        return judged_here(packs, context)


def _read(batches: Iterable[Any]) -> Iterator[Pack]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def judged_here(packs: Iterable[Pack], context: Context) -> Results:
    """Every stretch of these packs."""
    by_stretch: dict[tuple[str, int, int], list[Pack]] = {}
    for pack in packs:
        by_stretch.setdefault(pack[:3], []).append(pack)
    results = Results()
    for group in by_stretch.values():
        columns = zip(*group, strict=True)
        arrays = [pa.array(one, field.type) for one, field in zip(columns, PACKS, strict=True)]
        for made in judge_packs(pa.table(arrays, schema=PACKS), context).to_pylist():
            results.add(made["what"], made["topic"], made["partition"], made["rows"])
    return results


class BySpark:
    """As `Here`, by one Spark job with one shuffle."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._table: DataFrame | None = None

    @property
    def versions(self) -> Mapping[str, str]:
        return {"spark": self._spark.version}

    def open_table(self, path: str, topics: Sequence[str]) -> Ends:
        from pyspark.errors import AnalysisException
        from pyspark.sql.functions import col

        try:
            table = self._spark.read.format("delta").load(path)
        except AnalysisException:
            raise PipelineError(
                f"{path} is no Delta table", hint="give the path that `holdfast ingest` fills"
            ) from None
        lacking = sorted({"topic", "partition", "offset", "key", "value"} - set(table.columns))
        if lacking:
            raise PipelineError(
                f"the table {path} has no column {lacking[0]!r}",
                hint="give a table that `holdfast ingest` made",
            )
        self._table = table.where(col("topic").isin(*topics))
        return _table_ends(self._table)

    def packs(
        self,
        files: Files,
        topics: Sequence[str],
        source: int,
        span: int,
        is_wanted: Wanted | None = None,
    ) -> Iterator[Pack]:
        packs = stretch_job.scan(self._spark, files, topics, source, span, is_wanted)
        for row in packs.where(f"source = {source}").toLocalIterator():
            yield row.topic, row.partition, row.stretch, row.source, bytes(row.rows)

    def judged(
        self, context: Context, topics: Sequence[str], sent: Files, delivered: Files | None
    ) -> Results:
        spark, span = self._spark, context.span
        packs = stretch_job.scan(spark, sent, topics, SENT, span)
        packs = packs.unionAll(spark.createDataFrame(present(context), PACKS_DDL))
        if self._table is not None:
            packs = packs.unionAll(stretch_job.table_scan(self._table, span))
        if delivered is not None:
            packs = packs.unionAll(stretch_job.scan(spark, delivered, topics, DELIVERED, span))
        return stretch_job.judged(packs, context)


def _table_ends(table: DataFrame) -> Ends:
    from pyspark.sql.functions import max as greatest

    ends = table.groupBy("topic", "partition").agg(greatest("offset").alias("last")).collect()
    return {(row.topic, row.partition): Expectation(0, row["last"] + 1) for row in ends}
