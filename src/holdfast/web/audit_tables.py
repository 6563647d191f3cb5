"""The tables of the audit page: findings, partitions, inputs. All are bounded and escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from holdfast.pipeline.audit import Audit, Finding, PartitionFacts, ReplicaFacts
from holdfast.pipeline.audit.causes import HEADLINES
from holdfast.web.cause_chapters import last_offset

MOST_FINDINGS: Final = 200
MOST_PARTITIONS: Final = 200
_FINDING: Final = ("Finding", "Where", "#Records", "acks", "Who has it", "What", "Why")
_PARTITION: Final = ("Partition", "#Acknowledged", "#Found", "#Lost", "Copies")
"""Column titles; # marks a column of numbers."""


def findings_table(audit: Audit) -> str:
    """The worst findings first, and the number of those not shown."""
    if not audit.findings:
        return ""
    shown = audit.findings[:MOST_FINDINGS]
    more = len(audit.findings) - len(shown) + audit.left_out
    rest = f'<p class="soft">And {more:,} more findings.</p>' if more else ""
    return (
        "<section><h2>Findings</h2>"
        '<p class="lead">One row per run of neighbouring offsets with the same outcome.</p>'
        f"{_table(_FINDING, map(_finding, shown))}{rest}</section>"
    )


def _finding(finding: Finding) -> str:
    row = finding.ledger
    has = ", ".join(finding.has) or "nobody"
    lacks = f'<br><span class="soft">not {escape(", ".join(finding.lacks))}</span>'
    why = "" if finding.cause is None else HEADLINES.get(finding.cause.kind, finding.cause.kind)
    partition = f"{finding.topic}-{finding.partition}"
    cells = (
        f'<span class="tag {escape(finding.severity)}">{escape(finding.kind)}</span>',
        f'<code>{escape(partition)}</code><br><span class="soft">{_offsets(finding)}</span>',
        f"{finding.count:,}",
        "" if row is None else escape(row.acks),
        escape(has) + (lacks if finding.lacks else ""),
        escape(finding.detail),
        escape(why),
    )
    return _row(_FINDING, cells, texts=(5,))


def _offsets(finding: Finding) -> str:
    last = last_offset(finding)
    if finding.offset is None or last is None:
        return "no offset"
    if last == finding.offset:
        return f"offset {finding.offset:,}"
    return f"offsets {finding.offset:,} to {last:,}"


def partitions_table(audit: Audit) -> str:
    """All partitions, those with losses first."""
    ordered = sorted(audit.partitions, key=lambda one: (-one.lost, one.topic, one.partition))
    if not ordered:
        return ""
    shown = ordered[:MOST_PARTITIONS]
    more = len(ordered) - len(shown)
    rest = f'<p class="soft">And {more:,} more partitions.</p>' if more else ""
    return (
        f"<section><h2>Partitions</h2>{_table(_PARTITION, map(_partition, shown))}{rest}</section>"
    )


def _partition(facts: PartitionFacts) -> str:
    share = 100 * facts.found / facts.acked if facts.acked else 100
    cells = (
        f"<code>{escape(facts.topic)}-{facts.partition}</code>",
        f"{facts.acked:,}",
        f'{facts.found:,}<span class="fill"><i style="width:{share:.2f}%"></i></span>',
        f"{facts.lost:,}",
        "<br>".join(_replica(one, is_truth=one.broker == facts.leader) for one in facts.replicas),
    )
    return _row(_PARTITION, cells, texts=(4,))


def _replica(replica: ReplicaFacts, *, is_truth: bool) -> str:
    epoch = f", epoch {replica.epochs[-1].epoch}" if replica.epochs else ""
    flushed = "" if replica.flushed is None else f", flushed below {replica.flushed:,}"
    truth = " · the leader's log" if is_truth else ""
    errors = "".join(f"<br>⚠ {escape(one)}" for one in replica.errors)
    return (
        f"<b>{escape(replica.broker)}</b> {replica.log_start_offset:,} to "
        f'{replica.log_end_offset:,}<span class="soft">{epoch}{flushed}{truth}</span>{errors}'
    )


def inputs_list(audit: Audit) -> str:
    """The inputs of the audit."""
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd><code>{escape(value)}</code></dd>"
        for name, value in audit.inputs.items()
    )
    return f'<section><h2>Inputs</h2><dl class="inputs">{rows}</dl></section>' if rows else ""


def _table(head: Iterable[str], rows: Iterable[str]) -> str:
    titles = "".join(
        f'<th class="num">{one[1:]}</th>' if one.startswith("#") else f"<th>{one}</th>"
        for one in head
    )
    body = "".join(rows)
    return (
        f'<div class="table" tabindex="0"><table><thead><tr>{titles}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(head: Iterable[str], cells: Iterable[str], texts: tuple[int, ...]) -> str:
    """A row; each cell has its column's title, because on a narrow screen cells are stacked."""
    drawn = []
    for place, (title, cell) in enumerate(zip(head, cells, strict=True)):
        kind = ' class="num"' if title.startswith("#") else ""
        kind = ' class="text"' if place in texts else kind
        drawn.append(f'<td{kind} data-title="{title.removeprefix("#")}"><div>{cell}</div></td>')
    return f"<tr>{''.join(drawn)}</tr>"
