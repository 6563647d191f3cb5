"""Brings the packs of every source together by stretch, and judges every stretch once.

One shuffle moves the rows of ledgers and tables, some fifty bytes per row, in packs. Logs are not
moved at all: the task that judges a stretch reads that stretch of every copy's files, because a log
is sorted by offset already. Each copy is read once, and only the truth's records are decoded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from holdfast.pipeline.audit.findings.details import AT_CONSUMED, AT_TABLE
from holdfast.pipeline.audit.jobs.row_sources import (
    DELIVERED,
    ERROR,
    NO_STRETCH,
    PACKS_DDL,
    PRESENT,
    READ,
    SENT,
    LedgerFile,
    ledger_packs,
    table_packs,
)
from holdfast.pipeline.audit.jobs.row_types import ROW, Bools, Ints, Table, pack, unpack
from holdfast.pipeline.audit.judge.stretch_verdict import Expectation, Judged, Reading, Rules, judge
from holdfast.pipeline.audit.replicas.side_by_side import Copies
from holdfast.pipeline.audit.replicas.truth import Replica

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FACTS, FOUND_ROWS, LEFT, OPENED, SENTENCE = range(5)
_OUT: Final = pa.schema(
    [("what", pa.int32()), ("topic", pa.string()), ("partition", pa.int32()), ("rows", pa.binary())]
)
_OUT_DDL: Final = "what int, topic string, partition int, rows binary"
_TASKS_PER_CORE: Final = 8
"""An empty task costs some tens of milliseconds, so small files share one."""


class Context(NamedTuple):
    """What every task needs."""

    partitions: Mapping[tuple[str, int], Sequence[Replica]]
    bits: Mapping[str, int]
    is_partial: bool
    min_insync: int | None
    is_acks_all: Bools
    table: Mapping[tuple[str, int], Expectation] | None
    """None: no table is audited. A partition that is missing here has no row."""
    consumed: Mapping[tuple[str, int], Expectation] | None
    span: int

    def rules(self, replicas: Sequence[Replica]) -> Rules:
        likely = 2 if len(replicas) >= 3 else 1
        needed = likely if self.min_insync is None else self.min_insync
        return Rules(self.is_partial, needed, self.is_acks_all)


Pack = tuple[str, int, int, int, bytes]
"""Topic, partition, stretch, source, rows: as in PACKS."""
Packs = dict[tuple[str, int], list[bytes]]
"""By topic and partition."""


class Results:
    """The judgements of all stretches."""

    def __init__(self) -> None:
        self.facts: list[tuple[str, int, dict[str, Any]]] = []
        self.found: Packs = {}
        self.left: Packs = {}
        self.opened: Packs = {}
        self.sentences: list[str] = []

    def add(self, what: int, topic: str, partition: int, rows: bytes) -> None:
        if what == FACTS:
            self.facts.append((topic, partition, json.loads(rows)))
        elif what == SENTENCE:
            self.sentences.append(rows.decode())
        else:
            home = {FOUND_ROWS: self.found, LEFT: self.left, OPENED: self.opened}[what]
            home.setdefault((topic, partition), []).append(rows)


def scan(
    spark: SparkSession,
    files: Sequence[LedgerFile],
    topics: Sequence[str],
    source: int,
    span: int,
    is_wanted: Callable[..., Bools] | None = None,
) -> DataFrame:
    """Ledger files as packs, a few files per task."""

    def packs(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            mine = [files[number] for number in batch.column(0).to_pylist()]
            yield from ledger_packs(mine, source, topics, span, is_wanted)

    enough = _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    tasks = max(1, min(len(files), enough))
    return spark.range(0, len(files), 1, tasks).mapInArrow(packs, PACKS_DDL)


def table_scan(table: DataFrame, span: int) -> DataFrame:
    """The table's rows as packs."""

    def packs(batches: Iterable[Any]) -> Iterator[Any]:
        return table_packs(batches, span)

    columns = table.select("topic", "partition", "offset", "key", "value")
    return columns.mapInArrow(packs, PACKS_DDL)


def present(context: Context) -> list[Pack]:
    """One empty pack for every stretch of a log: it is judged even without sends."""
    return [
        (topic, partition, number, PRESENT, b"")
        for (topic, partition), replicas in context.partitions.items()
        for number in range(
            min(one.start for one in replicas) // context.span,
            max(one.end for one in replicas) // context.span + 1,
        )
    ]


def judged(packs: DataFrame, context: Context) -> Results:
    """Run it."""
    from pyspark import StorageLevel

    def one(table: Any) -> Any:
        return judge_packs(table, context)

    grouped = packs.groupBy("topic", "partition", "stretch")
    made = grouped.applyInArrow(one, _OUT_DDL).persist(StorageLevel.DISK_ONLY)
    results = Results()
    try:
        made.count()  # Judge all stretches on all cores; after that they are only fetched.
        for row in made.toLocalIterator(prefetchPartitions=True):
            results.add(row.what, row.topic, row.partition, bytes(row.rows))
    finally:
        made.unpersist()
    return results


def judge_packs(table: Any, context: Context) -> Any:
    """All packs of one stretch, in one task."""
    topic = table.column("topic")[0].as_py()
    partition = table.column("partition")[0].as_py()
    stretch = table.column("stretch")[0].as_py()
    packs: dict[int, list[bytes]] = {}
    for source, rows in zip(
        table.column("source").to_pylist(), table.column("rows").to_pylist(), strict=True
    ):
        packs.setdefault(source, []).append(rows)
    if stretch == NO_STRETCH:
        made = [(OPENED, rows) for rows in packs.get(SENT, [])]
        made += [(SENTENCE, rows) for rows in packs.get(ERROR, [])]
    else:
        result = _judged(topic, partition, stretch, packs, context)
        made = [
            (FACTS, json.dumps(result.facts).encode()),
            *(((FOUND_ROWS, pack(result.found)),) if len(result.found) else ()),
            *(((LEFT, pack(result.left)),) if len(result.left) else ()),
        ]
    count = len(made)
    return pa.table(
        [
            pa.array([what for what, _ in made], pa.int32()),
            pa.array([topic] * count, pa.string()),
            pa.array([partition] * count, pa.int32()),
            pa.array([rows for _, rows in made], pa.binary()),
        ],
        schema=_OUT,
    )


def _judged(
    topic: str, partition: int, stretch: int, packs: Mapping[int, list[bytes]], context: Context
) -> Judged:
    replicas = context.partitions.get((topic, partition), ())
    sends, read, delivered = (unpack(packs.get(one, []), ROW) for one in (SENT, READ, DELIVERED))
    first = stretch * context.span
    last = max(
        [int(rows["offset"].max(initial=first)) for rows in (sends, read, delivered)]
        + [replica.end for replica in replicas]
    )
    until = min(first + context.span, last + 1)
    copies = Copies(replicas, first, until, context.bits)
    readings = [
        Reading(place, _by_offset(rows), expected.get((topic, partition), Expectation(0, 0)))
        for place, rows, expected in (
            (AT_TABLE, read, context.table),
            (AT_CONSUMED, delivered, context.consumed),
        )
        if expected is not None
    ]
    result = judge(copies, sends, readings, context.rules(replicas))
    result.facts["stretch"] = stretch
    return result


def _by_offset(rows: Table) -> Table:
    ordered: Table = rows[np.argsort(rows["offset"], kind="stable")]
    return ordered


def all_rows(packs: Packs, topic: str, kind: Any) -> tuple[Table, Ints]:
    """All rows of a topic, and the partition of each."""
    tables, partitions = [np.empty(0, kind)], [np.empty(0, np.int64)]
    for (name, partition), parts in sorted(packs.items()):
        if name == topic:
            table = unpack(parts, kind)
            tables.append(table)
            partitions.append(np.full(len(table), partition, np.int64))
    return np.concatenate(tables), np.concatenate(partitions)
