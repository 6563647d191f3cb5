"""Output of a chaos run: tables and JSON."""

from __future__ import annotations

from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.cli.pipeline.audit_output import as_data as audit_data
from holdfast.cli.pipeline.audit_output import causes, findings_table, headline
from holdfast.pipeline.audit.findings.findings import DUPLICATE, KINDS, LOST, REORDERED, Exit
from holdfast.pipeline.chaos_check import Checked

SCHEMA: Final = "holdfast-chaos/1"


def show(checked: Checked) -> None:
    """Print tables on stdout."""
    console = Console(highlight=False)
    is_good = checked.exit_code == Exit.GOOD
    console.print(Text(_headline(checked), style="bold green" if is_good else "bold red"))
    console.print(_numbers(checked))
    console.print(_faults(checked))
    wrong = [one for one in checked.audit.findings if checked.counts.get(one.kind)]
    if wrong:
        console.print(findings_table(wrong))
        for sentence in causes(wrong):
            console.print(Text(sentence))
    for sentence in (*checked.problems, *checked.audit.missing):
        console.print(Text(sentence, style="red"))


def _headline(checked: Checked) -> str:
    if checked.problems and checked.exit_code == Exit.WRONG:
        return "nothing acknowledged is gone, but something is wrong; see below"
    return headline(checked.audit.verdict, checked.exit_code)


def _numbers(checked: Checked) -> Table:
    verdict = checked.audit.verdict
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    rows: list[tuple[str, int | None]] = [
        ("sent", verdict.sent),
        ("acknowledged", verdict.acked),
        ("refused", verdict.refused),
        ("unknown", verdict.unknown),
        ("delivered to the group", verdict.in_consumed),
        ("duplicated by retries (allowed)", checked.allowed.get(DUPLICATE, 0)),
        ("out of order by retries (allowed)", checked.allowed.get(REORDERED, 0)),
        *((kind, checked.counts[kind]) for kind in KINDS if checked.counts.get(kind)),
    ]
    for name, number in rows:
        table.add_row(name, f"{number or 0:,}")
    if not checked.counts.get(LOST):
        table.add_row("lost", "0", style="green")
    if checked.counts.get(LOST):
        table.add_row("losses that the trace does not explain", f"{len(checked.unexplained):,}")
    worst = checked.partition_silence
    table.add_row("longest without an acknowledgement", _seconds(checked.silence.milliseconds))
    table.add_row(f"… of one partition ({worst.where})", _seconds(worst.milliseconds))
    return table


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.1f} s"


def _faults(checked: Checked) -> Text:
    faults = ", ".join(f"{kind} {count}" for kind, count in checked.happened.faults.items())
    return Text(f"{checked.happened.phases} phases; faults: {faults or 'none'}")


def as_data(checked: Checked) -> dict[str, Any]:
    """The JSON output: documented in docs/chaos.md, and kept stable."""
    happened = checked.happened
    return {
        "schema": SCHEMA,
        "seed": happened.plan.seed,
        "is_safe": happened.plan.is_safe,
        "exit_code": int(checked.exit_code),
        "phases": happened.phases,
        "faults": dict(happened.faults),
        "counts": dict(checked.counts),
        "allowed": dict(checked.allowed),
        "unexplained": len(checked.unexplained),
        "problems": list(checked.problems),
        "longest_silence_ms": checked.silence.milliseconds,
        "longest_partition_silence_ms": checked.partition_silence.milliseconds,
        "longest_partition_silence_of": checked.partition_silence.where,
        "audit": audit_data(checked.audit),
    }
