"""Groups findings by cause: all losses of one election are one chapter of the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.pipeline.audit import Cause, Finding, Remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """All findings of one kind in one partition that have one cause."""

    kind: str
    topic: str
    partition: int
    cause: Cause
    remedy: Remedy | None
    findings: tuple[Finding, ...]

    @property
    def records(self) -> int:
        return sum(one.count for one in self.findings)

    @property
    def evidence(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for one in self.findings for path in one.evidence))

    @property
    def has(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(broker for one in self.findings for broker in one.has))

    @property
    def span(self) -> tuple[int, int] | None:
        """The first offset and the one after the last; None if no record has an offset."""
        firsts = [one.offset for one in self.findings if one.offset is not None]
        lasts = [last for one in self.findings if (last := last_offset(one)) is not None]
        return (min(firsts), max(lasts) + 1) if firsts else None


def last_offset(finding: Finding) -> int | None:
    return finding.offset if finding.last_offset is None else finding.last_offset


def chapters(findings: Iterable[Finding]) -> list[Chapter]:
    """The chapters, in the order of the findings; findings without a cause are in none."""
    groups: dict[object, list[Finding]] = {}
    for finding in findings:
        if finding.cause is not None:
            groups.setdefault(_identity(finding, finding.cause), []).append(finding)
    return [_chapter(group) for group in groups.values()]


def _identity(finding: Finding, cause: Cause) -> object:
    """The event, identified by its file; without a file, by its sentence."""
    event = cause.sentence if cause.event_id is None else (cause.event_id, finding.evidence[:1])
    return finding.kind, finding.topic, finding.partition, cause.kind, event


def _chapter(group: Sequence[Finding]) -> Chapter:
    first = group[0]
    assert first.cause is not None
    return Chapter(
        kind=first.kind,
        topic=first.topic,
        partition=first.partition,
        cause=first.cause,
        remedy=first.remedy,
        findings=tuple(group),
    )
