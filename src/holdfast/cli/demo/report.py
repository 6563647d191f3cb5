"""The end of the demo: the audit, and a query of the table's real data."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from holdfast.cli.demo.driver import conf_options
from holdfast.cli.demo.flights import airlines
from holdfast.cli.pipeline.audit_output import show
from holdfast.cli.pipeline.spark_options import spark_session
from holdfast.cluster import Cluster
from holdfast.pipeline.audit.findings.findings import Audit, Exit

QUESTION: Final = """
    SELECT parsed.carrier AS carrier, count(*) AS flights, round(avg(parsed.dep_delay), 1) AS delay
    FROM delta.`{table}` WHERE parsed.dep_delay IS NOT NULL
    GROUP BY 1 ORDER BY delay DESC
"""
SHOWN: Final = 5


def report(console: Console, folder: Path, cluster: Cluster, is_safe: bool) -> bool:
    """Whether the audit's result fits the settings: nothing lost, or a loss with its cause."""
    page = folder / "report.html"
    table = folder / "table"
    with spark_session("holdfast demo", None, conf_options()[1::2]) as spark:
        from holdfast.pipeline.audit import AuditInputs, run
        from holdfast.web.audit_page import page as html

        logs = {f"b{one}": cluster.files(one).log for one in cluster.brokers}
        audit = run(
            spark,
            AuditInputs(
                ledger=folder / "ledger",
                logs=logs,
                table=str(table),
                traces=(cluster.data_dir / "traces",),
            ),
        )
        rows = spark.sql(QUESTION.format(table=table)).collect()
    page.write_text(html(audit), encoding="utf-8")
    console.print()
    show(audit, console)
    console.print()
    console.print(_answer(rows))
    console.print(f"\nThe report: {page}", soft_wrap=True)
    return _is_as_expected(audit, is_safe)


def _answer(rows: list[Any]) -> Table:
    names = airlines()
    table = Table(
        box=None, pad_edge=False, title="Who leaves late? (from the table)", title_justify="left"
    )
    table.add_column("carrier")
    table.add_column("flights", justify="right")
    table.add_column("mean delay, minutes", justify="right")
    for row in rows[:SHOWN]:
        table.add_row(names.get(row.carrier, row.carrier), f"{row.flights:,}", f"{row.delay}")
    return table


def _is_as_expected(audit: Audit, is_safe: bool) -> bool:
    if is_safe:
        return audit.verdict.exit_code == Exit.GOOD
    return audit.verdict.exit_code == Exit.LOSS and any(one.cause for one in audit.findings)
