"""Renders the audit as one self-contained page: no server, no network, no script.

From top to bottom: the verdict in words and numbers, acknowledged and found records over time, a
chapter for each cause with the logs around the loss, all findings, all partitions, and what was
audited. Text from ledgers, logs and traces is escaped where it is written.
"""

from __future__ import annotations

from html import escape
from typing import Final

from holdfast.pipeline.audit import Audit, PartitionFacts
from holdfast.pipeline.audit.causes import HEADLINES
from holdfast.pipeline.audit.findings.findings import KINDS, LOST, Exit, Severity, Step
from holdfast.web import acked_chart, log_lanes
from holdfast.web.acked_chart import chart
from holdfast.web.audit_tables import findings_table, inputs_list, partitions_table
from holdfast.web.cause_chapters import Chapter, chapters
from holdfast.web.log_lanes import lanes, window_of
from holdfast.web.theme import filled
from holdfast.web.time_format import clock

MOST_CHAPTERS: Final = 20
MOST_EVIDENCE: Final = 40
_LOOKS: Final = {
    Exit.GOOD: ("✓", "good"),
    Exit.WRONG: ("⚠", "warn"),
    Exit.LOSS: ("✖", "bad"),
    Exit.ORDER: ("⚠", "warn"),
    Exit.UNDECIDED: ("⚠", "warn"),
}
_FAULTS: Final = ("lost", "duplicates", "reordered", "diverged", "phantom", "unseen_tail")
_LANES_LEGEND: Final = (
    '<ul class="legend"><li>colour: the leader epoch that wrote it</li>'
    '<li><i class="l"></i>lost</li><li><i class="h"></i>committed, as last checkpointed</li>'
    '<li><i class="d"></i>surely on the disk</li></ul>'
)


def page(audit: Audit) -> str:
    """The whole report."""
    found = chapters(audit.findings)
    body = [
        _verdict(audit),
        _tiles(audit),
        _timeline(audit, found),
        _causes(audit, found),
        findings_table(audit),
        partitions_table(audit),
        inputs_list(audit),
    ]
    return filled("audit.html", f"Audit: {headline(audit)}", {"<!--BODY-->": "\n".join(body)})


# The verdict.


def headline(audit: Audit) -> str:
    """The verdict in one short sentence."""
    verdict = audit.verdict
    match Exit(verdict.exit_code):
        case Exit.GOOD:
            return "Nothing acknowledged is lost"
        case Exit.LOSS:
            if verdict.lost == 1:
                return "1 acknowledged record is lost"
            return f"{verdict.lost:,} acknowledged records are lost"
        case Exit.ORDER:
            return "Nothing is lost; some records are duplicated or out of order"
        case Exit.WRONG:
            return "Nothing is lost, but copies contradict each other"
        case Exit.UNDECIDED:
            return "Cannot decide: something is missing"


def _verdict(audit: Audit) -> str:
    verdict = audit.verdict
    sign, look = _LOOKS[Exit(verdict.exit_code)]
    summary = (
        f"Producers sent {_records(verdict.sent)}. {verdict.acked:,} were acknowledged, "
        f"{verdict.refused:,} refused, {verdict.unknown:,} never answered. Of the acknowledged, "
        f"{verdict.in_truth:,} are in the log at the offset that was acknowledged"
    )
    if verdict.in_table is not None:
        summary += f", and {verdict.in_table:,} are in the table"
    missing = "".join(f"<li>{escape(one)}</li>" for one in audit.missing)
    notes = "".join(f"<li>{escape(one)}</li>" for one in audit.notes)
    return (
        f'<section class="verdict {look}"><p class="kicker">Holdfast audit</p>'
        f"<h1><span>{sign}</span> {escape(headline(audit))}.</h1><p>{summary}.</p>"
        f"{f'<p>Missing for a sure answer:</p><ul>{missing}</ul>' if missing else ''}"
        f"{f'<p>Worth knowing:</p><ul>{notes}</ul>' if notes else ''}</section>"
    )


def _tiles(audit: Audit) -> str:
    verdict = audit.verdict
    tiles = [("sent", verdict.sent, ""), ("acknowledged", verdict.acked, "")]
    for name in _FAULTS:
        amount = getattr(verdict, name)
        look = ("bad" if name == "lost" else "warn") if amount else "good"
        if amount or name in ("lost", "duplicates"):
            tiles.append((name.replace("_", " "), amount, look))
    places = [(f"in the log of {name}", amount, "") for name, amount in verdict.found.items()]
    if verdict.in_table is not None:
        places.append(("in the table", verdict.in_table, ""))
    if verdict.in_consumed is not None:
        places.append(("consumed", verdict.in_consumed, ""))
    return _tile_row("tiles", tiles) + _tile_row("tiles small", places)


def _tile_row(classes: str, tiles: list[tuple[str, int, str]]) -> str:
    drawn = [
        f'<div class="{look}"><dt>{escape(name)}</dt><dd>{amount:,}</dd></div>'
        for name, amount, look in tiles
    ]
    return f'<dl class="{classes}">{"".join(drawn)}</dl>' if drawn else ""


# Over time.


def _timeline(audit: Audit, found: list[Chapter]) -> str:
    steps = [*audit.faults, *(step for one in found for step in one.cause.chain)]
    picture = chart(audit.timeline, steps)
    if not picture:
        return ""
    pictures = _for_each_screen(picture, chart(audit.timeline, steps, acked_chart.NARROW))
    return (
        "<section><h2>Acknowledged and found</h2>"
        '<p class="lead">By the second in which the producer sent them.</p>'
        f"{pictures}"
        '<ul class="legend"><li><i class="k"></i>acknowledged and found</li>'
        '<li><i class="m"></i>acknowledged, not found</li>'
        "<li>★ election &nbsp; ✖ a broker was killed &nbsp; ⚡ power failed &nbsp; ■ shut down</li>"
        "</ul></section>"
    )


# Causes.


def _causes(audit: Audit, found: list[Chapter]) -> str:
    if not found:
        return ""
    facts = {(one.topic, one.partition): one for one in audit.partitions}
    sections = [
        _chapter(one, facts.get((one.topic, one.partition))) for one in found[:MOST_CHAPTERS]
    ]
    more = len(found) - len(sections)
    rest = (
        f'<p class="soft">And {more:,} more causes; the table below has them.</p>' if more else ""
    )
    return f"<section><h2>Why</h2>{''.join(sections)}{rest}</section>"


def _chapter(chapter: Chapter, facts: PartitionFacts | None) -> str:
    cause = chapter.cause
    title = HEADLINES.get(cause.kind, cause.kind)
    where = f"{chapter.topic}-{chapter.partition}{_offsets(chapter)}"
    return (
        f'<article class="cause"><header><h3>{escape(title)}</h3>'
        f'<p class="where"><b>{_records(chapter.records)}</b> {escape(chapter.kind)} in '
        f"<code>{escape(where)}</code></p></header><div class='body'>"
        f'<p class="said">{escape(cause.sentence)}</p>{_remedy(chapter)}'
        f"{_lanes(chapter, facts)}{_chain(chapter)}{_evidence(chapter.evidence)}</div></article>"
    )


def _offsets(chapter: Chapter) -> str:
    if chapter.span is None:
        return ""
    start, end = chapter.span
    return f", offset {start:,}" if end == start + 1 else f", offsets {start:,} to {end - 1:,}"


def _remedy(chapter: Chapter) -> str:
    if chapter.remedy is None:
        return ""
    what = "prevented it"
    if chapter.kind == LOST:
        what = "kept it" if chapter.records == 1 else "kept them"
    setting = f"{chapter.remedy.setting}={chapter.remedy.value}"
    return f'<p class="remedy"><b>What would have {what}</b><code>{escape(setting)}</code></p>'


def _lanes(chapter: Chapter, facts: PartitionFacts | None) -> str:
    is_drawn = KINDS[chapter.kind].severity in (Severity.LOSS, Severity.WRONG)
    if facts is None or chapter.span is None or not facts.replicas or not is_drawn:
        return ""
    pictures = [
        lanes(
            facts,
            window_of(facts.replicas, *chapter.span, shape),
            chapter.cause.chain,
            chapter.has,
            chapter.kind,
        )
        for shape in (log_lanes.WIDE, log_lanes.NARROW)
    ]
    return f"{_for_each_screen(*pictures)}{_LANES_LEGEND}"


def _for_each_screen(wide: str, narrow: str) -> str:
    """Two drawings of the same content; the style sheet shows the one that fits."""
    return f'<div class="picture wide">{wide}</div><div class="picture narrow">{narrow}</div>'


def _chain(chapter: Chapter) -> str:
    steps = chapter.cause.chain
    if not steps:
        return ""
    rows = [_step(step, place, steps[0].time_ms, chapter) for place, step in enumerate(steps)]
    return f'<ol class="chain">{"".join(rows)}</ol>'


def _step(step: Step, place: int, begins_ms: int, chapter: Chapter) -> str:
    when = f"+{(step.time_ms - begins_ms) / 1000:.3f} s"
    if place == 0:
        when = f"{clock(begins_ms / 1000, '%Y-%m-%d %H:%M:%S')}.{begins_ms % 1000:03d} UTC"
    root = ' class="root"' if _is_root(step, chapter) else ""
    return f"<li{root}><time>{escape(when)}</time>{escape(step.sentence)}</li>"


_ROOTS: Final = {
    "unclean-election": ("elected",),
    "leader-alone": ("elected",),
    "election": ("elected",),
    "lost-flush": ("power-lost",),
    "lost-disk": ("disk-lost",),
    "truncation": ("truncated",),
}


def _is_root(step: Step, chapter: Chapter) -> bool:
    return step.kind in _ROOTS.get(chapter.cause.kind, ())


def _evidence(paths: tuple[str, ...]) -> str:
    if not paths:
        return ""
    rows = "".join(f"<li><code>{escape(path)}</code></li>" for path in paths[:MOST_EVIDENCE])
    more = len(paths) - MOST_EVIDENCE
    rest = f"<li>and {more:,} more</li>" if more > 0 else ""
    return f"<details><summary>Evidence</summary><ul>{rows}{rest}</ul></details>"


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"
