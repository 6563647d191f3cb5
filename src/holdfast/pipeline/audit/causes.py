"""From findings to their causes: groups what shares a fate, asks the trace, else the checkpoints.

A finding that is a run of offsets is cut where the fates of its records differ, so that thousands
of records of one election are one cause, and two power failures are two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from holdfast.model import TopicPartition
from holdfast.pipeline.audit import findings as words
from holdfast.pipeline.audit.case import Asked
from holdfast.pipeline.audit.epochs import reason_from_epochs, reason_of_difference
from holdfast.pipeline.audit.findings import Cause, Finding, Remedy, ReplicaFacts
from holdfast.pipeline.audit.history import History, Span, histories
from holdfast.pipeline.audit.reasons import NEVER_WRITTEN, Reason, reason_of
from holdfast.pipeline.audit.remedies import (
    ALL,
    COMMIT_AFTER,
    IDEMPOTENT,
    TRANSACTIONAL,
    TWO,
    remedy_of,
)
from holdfast.pipeline.audit.replicas import broker_id, read_replicas
from holdfast.pipeline.audit.traces import read_traces, trace_files

RESENT: Final = "resent"
READ_AGAIN: Final = "read-again"
PASSED_OVER: Final = "passed-over"
FEW_COPIES: Final = "few-copies"
_ACKS: Final = {"all": -1, "-1": -1, "1": 1, "0": 0}


@dataclass(slots=True)
class _Sources:
    """What can be asked, read once a partition."""

    logs: Mapping[str, Path]
    histories: Mapping[str, History]
    names: Mapping[int, str]
    _replicas: dict[str, list[ReplicaFacts]] = field(default_factory=dict)

    def replicas(self, partition: TopicPartition) -> list[ReplicaFacts]:
        name = str(partition)
        if name not in self._replicas:
            self._replicas[name] = read_replicas(self.logs, partition)
        return self._replicas[name]


def explain(
    findings: Iterable[Finding], logs: Mapping[str, Path], traces: Sequence[Path] = ()
) -> list[Finding]:
    """The findings with cause, remedy and evidence, as far as these can be told.

    `logs`: a broker's log directory by its name; `traces`: trace files, or directories of them.
    """
    given = list(findings)
    partitions = dict.fromkeys(str(_partition(one)) for one in given if one.kind in _EXPLAINED)
    events = read_traces(trace_files(traces), partitions)
    ids = {broker_id(name, Path(folder)): name for name, folder in logs.items()}
    names = {broker: name for broker, name in ids.items() if broker is not None}
    sources = _Sources(logs, histories(events, partitions), names)
    return [told for finding in given for told in _explained(finding, sources)]


def _partition(finding: Finding) -> TopicPartition:
    return TopicPartition(finding.topic, finding.partition)


def _explained(finding: Finding, sources: _Sources) -> list[Finding]:
    explainer = _EXPLAINED.get(finding.kind)
    return [finding] if explainer is None else explainer(finding, sources)


def _with(finding: Finding, reason: Reason | None, remedy: Remedy | None = None) -> Finding:
    if reason is None:
        return finding
    cause = Cause(
        event_id=None if reason.root is None else reason.root.event.id,
        kind=reason.kind,
        sentence=reason.sentence,
        chain=reason.chain,
    )
    evidence = tuple(dict.fromkeys((*reason.evidence, *finding.evidence)))
    return replace(finding, cause=cause, remedy=remedy or remedy_of(reason), evidence=evidence)


# Records that are gone, or were replaced.


def _gone(finding: Finding, sources: _Sources) -> list[Finding]:
    if finding.kind == words.LOST and finding.place != words.LOG:
        return [_passed_over(finding)]
    if finding.offset is None:
        return [_never_placed(finding)]
    history = sources.histories[str(_partition(finding))]
    merged: list[Finding] = []
    for piece in _pieces(finding, history):
        told = _gone_piece(finding, piece, history, sources)
        if merged and _same_cause(merged[-1], told):
            merged[-1] = _joined(merged[-1], told, finding)
        else:
            merged.append(told)
    return merged


def _pieces(finding: Finding, history: History) -> list[Span]:
    """Where fates differ; a run with holes stays whole, since nobody knows what is where in it."""
    span = _span(finding)
    return history.pieces(span) if span.size == finding.count else [span]


def _span(finding: Finding) -> Span:
    assert finding.offset is not None
    last = finding.offset if finding.last_offset is None else finding.last_offset
    return Span(finding.offset, last + 1)


def _gone_piece(finding: Finding, piece: Span, history: History, sources: _Sources) -> Finding:
    row = finding.ledger
    is_whole = piece == _span(finding)
    asked = Asked(
        span=piece,
        count=finding.count if is_whole else piece.size,
        acks=None if row is None else _ACKS.get(row.acks),
        acked_ms=None if row is None else row.acked_ms,
    )
    replicas = sources.replicas(_partition(finding))
    reason = reason_of(history, asked, sources.names)
    if reason is None and finding.kind == words.LOST:
        reason = reason_from_epochs(asked, replicas, finding.has)
    elif reason is None or finding.kind == words.DIFFER:
        reason = reason_of_difference(piece.start, replicas) or reason
    return _with(_cut_to(finding, piece), reason)


def _cut_to(finding: Finding, piece: Span) -> Finding:
    whole = _span(finding)
    if piece == whole:
        return finding
    return replace(
        finding,
        offset=piece.start,
        last_offset=piece.end - 1,
        count=piece.size,
        ledger=finding.ledger if piece.start == whole.start else None,
        last_ledger=finding.last_ledger if piece.end == whole.end else None,
    )


def _same_cause(one: Finding, other: Finding) -> bool:
    """Whether the same event did it; without an event, whether the same can be said."""
    if one.cause is None or other.cause is None:
        return one.cause is other.cause
    known = one.cause.event_id is not None
    alike = (one.cause.kind, one.cause.event_id, one.remedy) == (
        (other.cause.kind, other.cause.event_id, other.remedy)
    )
    return alike and known and one.evidence[:1] == other.evidence[:1]


def _joined(one: Finding, other: Finding, whole: Finding) -> Finding:
    """Two neighbours with one cause, as one finding again."""
    assert one.offset is not None
    assert one.cause is not None
    assert other.cause is not None
    ends = _span(other).end
    return replace(
        one,
        last_offset=ends - 1,
        count=one.count + other.count,
        last_ledger=whole.last_ledger if ends == _span(whole).end else None,
        evidence=tuple(dict.fromkeys((*one.evidence, *other.evidence))),
    )


def _never_placed(finding: Finding) -> Finding:
    """A send that was never given an offset: acks=0."""
    told = "Nobody answered for it: with acks=0 a producer takes every send for written."
    return _with(finding, Reason(kind=NEVER_WRITTEN, sentence=told, acks=0), ALL)


def _passed_over(finding: Finding) -> Finding:
    reader = "the table" if finding.place == words.TABLE else "the consumer"
    told = f"The log has what was acknowledged; {reader} went on without it."
    remedy = COMMIT_AFTER if finding.place == words.CONSUMED else None
    return _with(finding, Reason(kind=PASSED_OVER, sentence=told), remedy)


# Records that are there too often, or in another order.


def _resent(finding: Finding, _sources: _Sources) -> list[Finding]:
    if finding.place != words.LOG:
        told = "It was read again: a reader that starts anew begins at its last commit."
        return [_with(finding, Reason(kind=READ_AGAIN, sentence=told))]
    row = finding.ledger
    again = "" if finding.kind == words.DUPLICATE else ", behind records that were sent later"
    if row is not None and row.idempotent:
        told = (
            f"The record was sent anew{again}. An idempotent producer's own retries are "
            "recognised, so the application sent it twice, perhaps after a restart."
        )
        return [_with(finding, Reason(kind=RESENT, sentence=told), TRANSACTIONAL)]
    told = (
        f"The producer sent the record again{again}, most likely because the first answer did not "
        "come. Without idempotence a broker cannot recognise a retry."
    )
    return [_with(finding, Reason(kind=RESENT, sentence=told), IDEMPOTENT)]


def _too_few(finding: Finding, _sources: _Sources) -> list[Finding]:
    lacking = ", ".join(finding.lacks) or "others"
    told = f"{lacking} did not have a copy: the leader answered while fewer replicas were in sync."
    return [_with(finding, Reason(kind=FEW_COPIES, sentence=told), TWO)]


_EXPLAINED: Final = {
    words.LOST: _gone,
    words.INCONSISTENT: _gone,
    words.PHANTOM: _gone,
    words.DIFFER: _gone,
    words.DUPLICATE: _resent,
    words.REORDERED: _resent,
    words.TOO_FEW: _too_few,
}
