"""The whole audit on Spark: plants mixed in logs, ledger, table and a consumer's ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from holdfast.pipeline.audit import AuditInputs, Finding, run
from holdfast.pipeline.audit.findings.findings import Exit
from holdfast.pipeline.errors import PipelineError
from tests.pipeline.audit_plants import RECORDS, Estate, make_estate
from tests.pipeline.audit_reference import Content, Findings, Line
from tests.pipeline.audit_world import TOPIC
from tests.support.spark import SPARKS_SOCKETS, session

pytestmark = [pytest.mark.slow, *SPARKS_SOCKETS]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session("test audit") as made:
        yield made


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return make_estate(tmp_path_factory.mktemp("estate") / "original")


def write_table(spark: SparkSession, path: Path, rows: list[tuple[int, Content]]) -> None:
    columns = {
        "topic": [TOPIC] * len(rows),
        "partition": pa.array([0] * len(rows), pa.int32()),
        "offset": [offset for offset, _ in rows],
        "key": pa.array([key for _, (key, _) in rows], pa.binary()),
        "value": pa.array([what for _, (_, what) in rows], pa.binary()),
    }
    frame = spark.createDataFrame(pa.table(columns))
    frame.repartition(2).write.format("delta").save(str(path))


def records(findings: Iterable[Finding]) -> Findings:
    found: Findings = Counter()
    for one in findings:
        assert one.offset is not None
        assert one.last_offset is not None
        assert one.count == one.last_offset - one.offset + 1
        for offset in range(one.offset, one.last_offset + 1):
            found[one.kind, one.place, offset] += 1
    return found


def spoil(estate: Estate) -> tuple[list[tuple[int, Content]], list[tuple[int, Content]]]:
    """Several anomalies together; returns what the table and the consumer then have."""

    def everywhere(line: Line) -> None:
        del line[10], line[11]
        line[20], line[21] = line[21], line[20]
        line[RECORDS] = line[5]

    def on_one(line: Line) -> None:
        line[30] = (line[30][0], (None, b"something else"))

    def forget(rows: list[dict[str, Any]]) -> None:
        rows[40] |= {"result": "refused", "offset": None, "acked_ms": None, "error": 20}

    estate.edit(everywhere)
    estate.edit(on_one, estate.followers[0])
    estate.edit_ledger(forget)
    rows = [(offset, what) for offset, (_, what) in estate.line().items()]
    table = [one for one in rows if one[0] != 50]
    return [*table, (99, (None, b"from nowhere"))], rows[:-3]


def test_mixed_plants_are_all_found_and_nothing_else(
    spark: SparkSession, estate: Estate, tmp_path: Path
) -> None:
    spoiled = estate.copy(tmp_path / "estate")
    table, polls = spoil(spoiled)
    write_table(spark, tmp_path / "table", table)
    audit = run(
        spark,
        AuditInputs(
            ledger=spoiled.ledger,
            logs=spoiled.logs,
            table=str(tmp_path / "table"),
            consumed=spoiled.consumed(polls),
            span=16,
        ),
    )
    tail = range(RECORDS - 2, RECORDS)
    assert records(audit.findings) == Counter(
        [
            *(("lost", "log", offset) for offset in (10, 11)),
            *(("reordered send", "log", offset) for offset in (20, 21)),
            ("duplicate", "log", RECORDS),
            ("inconsistent offset", "log", 30),
            ("refused but read", "log", 40),
            ("lost", "table", 50),
            ("phantom", "table", 99),
            *(("unseen tail", "consumed", offset) for offset in tail),
        ]
    )
    verdict = audit.verdict
    assert verdict.exit_code == Exit.LOSS
    assert (verdict.sent, verdict.acked, verdict.refused) == (RECORDS, RECORDS - 1, 1)
    assert (verdict.lost, verdict.in_truth) == (3, RECORDS - 1 - 2)
    assert verdict.in_table == RECORDS - 1 - 2 - 2 - 1
    lost = audit.findings[0]
    assert (lost.count, lost.offset, lost.last_offset) == (2, 10, 11)
    assert (lost.has, sorted(lost.lacks)) == ((), ["b1", "b2", "b3", "consumed", "table"])
    assert lost.ledger is not None
    assert (lost.ledger.sequence, lost.ledger.acks) == (10, "all")
    assert sum(point.acked - point.found for point in audit.timeline) == 4  # two stand elsewhere
    assert audit.records.num_rows == len(records(audit.findings)) - 1  # a tail is one run
    [facts] = audit.partitions
    assert (facts.acked, facts.lost, facts.table_end) == (RECORDS - 1, 2, 100)
    assert "are after its end" in audit.missing[0]


def test_a_topic_that_no_ledger_has_is_refused(spark: SparkSession, estate: Estate) -> None:
    inputs = AuditInputs(ledger=estate.ledger, logs=estate.logs, topics=("other",))
    with pytest.raises(PipelineError, match="has the topic 'other'"):
        run(spark, inputs)


def test_a_table_that_is_none_is_refused(
    spark: SparkSession, estate: Estate, tmp_path: Path
) -> None:
    inputs = AuditInputs(ledger=estate.ledger, logs=estate.logs, table=str(tmp_path))
    with pytest.raises(PipelineError, match="is no Delta table"):
        run(spark, inputs)


def test_a_torn_ledger_is_reported(spark: SparkSession, estate: Estate, tmp_path: Path) -> None:
    spoiled = estate.copy(tmp_path / "estate")
    [file] = spoiled.ledger.rglob("*.arrows")
    content = bytearray(file.read_bytes())
    content[:8] = b"nonsense"
    file.with_name("t-00001.arrows").write_bytes(content)
    audit = run(spark, AuditInputs(ledger=spoiled.ledger, logs=spoiled.logs))
    assert audit.verdict.exit_code == Exit.UNDECIDED
    assert "t-00001.arrows" in audit.missing[0]
