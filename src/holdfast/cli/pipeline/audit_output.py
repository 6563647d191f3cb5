"""Output of an audit: tables and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.pipeline.audit import Audit, Finding, Verdict
from holdfast.pipeline.audit.findings.findings import KINDS, Exit, Severity

MOST_ROWS: Final = 30
_STYLES: Final = {
    Severity.LOSS: "bold red",
    Severity.UNDECIDED: "yellow",
    Severity.WRONG: "red",
    Severity.ORDER: "yellow",
    Severity.NOTE: "dim",
}


def headline(verdict: Verdict, code: int) -> str:
    """The verdict in one sentence."""
    match Exit(code):
        case Exit.GOOD:
            return f"nothing is wrong: all {verdict.acked:,} acknowledged records are there"
        case Exit.LOSS:
            return f"{verdict.lost:,} of {verdict.acked:,} acknowledged records are lost"
        case Exit.ORDER:
            return "nothing is lost; some records are duplicated or out of order"
        case Exit.WRONG:
            return "nothing acknowledged is gone, but copies or readers contradict each other"
        case Exit.UNDECIDED:
            return "cannot decide; see below what is missing"


def show(audit: Audit, console: Console) -> None:
    """Print tables on stdout."""
    verdict = audit.verdict
    is_good = verdict.exit_code == Exit.GOOD
    console.print(
        Text(headline(verdict, verdict.exit_code), style="bold green" if is_good else "bold red")
    )
    console.print(_numbers(audit))
    if audit.findings:
        console.print(findings_table(audit.findings))
    more = audit.left_out + max(0, len(audit.findings) - MOST_ROWS)
    if more:
        console.print(f"… and {more:,} findings more: --json, --html or --findings has them")
    for sentence in causes(audit.findings):
        console.print(Text(sentence))
    for sentence in audit.missing:
        console.print(Text(f"missing: {sentence}", style="yellow"))
    for sentence in audit.notes:
        console.print(Text(f"note: {sentence}", style="dim"))


def _numbers(audit: Audit) -> Table:
    verdict = audit.verdict
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    rows: list[tuple[str, int | None]] = [
        ("sent", verdict.sent),
        ("acknowledged", verdict.acked),
        ("refused", verdict.refused),
        ("unknown", verdict.unknown),
        *((f"of the acknowledged, on {broker}", n) for broker, n in verdict.found.items()),
        ("in the leader's log", verdict.in_truth),
        ("in the table", verdict.in_table),
        ("delivered to consumers", verdict.in_consumed),
        ("of other producers", verdict.foreign or None),
        *((kind, verdict.counts.get(kind, 0) or None) for kind in KINDS if kind != "lost"),
    ]
    for name, number in rows:
        if number is not None:
            table.add_row(name, f"{number:,}")
    table.add_row("lost", f"{verdict.lost:,}", style="bold red" if verdict.lost else "green")
    return table


def findings_table(findings: Sequence[Finding]) -> Table:
    """The first findings, one per row."""
    table = Table(box=None, pad_edge=False)
    for name in ("finding", "where", "offsets", "records", "has it", "lacks it", "detail"):
        table.add_column(name, justify="right" if name == "records" else "left")
    for one in findings[:MOST_ROWS]:
        table.add_row(
            Text(one.kind, style=_STYLES[one.severity]),
            Text(f"{one.topic}-{one.partition} {one.place}"),
            offsets(one),
            f"{one.count:,}",
            Text(" ".join(one.has)),
            Text(" ".join(one.lacks)),
            Text(one.detail),
        )
    return table


def offsets(finding: Finding) -> str:
    if finding.offset is None:
        return "none"
    if finding.last_offset in (None, finding.offset):
        return str(finding.offset)
    return f"{finding.offset}–{finding.last_offset}"


def causes(findings: Sequence[Finding]) -> list[str]:
    """Each cause once, with its remedy."""
    sentences: dict[str, None] = {}
    for one in findings:
        if one.cause is not None:
            remedy = (
                f" (prevented by {one.remedy.setting}={one.remedy.value})" if one.remedy else ""
            )
            sentences[f"{one.kind}: {one.cause.sentence}{remedy}"] = None
    return list(sentences)


def as_data(audit: Audit) -> dict[str, Any]:
    """The JSON output: documented in docs/audit.md, and kept stable."""
    verdict = audit.verdict
    return {
        "schema": "holdfast-audit/1",
        "verdict": {
            **asdict(verdict),
            "lost": verdict.lost,
            "unseen_tail": verdict.unseen_tail,
            "duplicates": verdict.duplicates,
            "reordered": verdict.reordered,
            "diverged": verdict.diverged,
            "phantom": verdict.phantom,
        },
        "missing": list(audit.missing),
        "notes": list(audit.notes),
        "findings": [{**asdict(one), "severity": one.severity} for one in audit.findings],
        "left_out": audit.left_out,
        "partitions": [asdict(one) for one in audit.partitions],
        "timeline": [asdict(one) for one in audit.timeline],
        "inputs": dict(audit.inputs),
    }
