"""Finds the causes of findings: groups records with one fate, then asks traces or checkpoints.

A finding that is a run of offsets is split where the fates of its records differ, so thousands of
records of one election have one cause, and two power failures are two causes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from holdfast.pipeline.audit.causes import kinds
from holdfast.pipeline.audit.causes.case import Asked
from holdfast.pipeline.audit.causes.from_checkpoints import (
    reason_from_epochs,
    reason_of_difference,
    reason_of_shortage,
)
from holdfast.pipeline.audit.causes.from_traces import Reason, reason_of
from holdfast.pipeline.audit.causes.history import History, Span, histories
from holdfast.pipeline.audit.causes.leader_epochs import names_of, newest
from holdfast.pipeline.audit.causes.partition_history import NO_PAST, Past
from holdfast.pipeline.audit.causes.remedies import (
    ALL,
    COMMIT_AFTER,
    IDEMPOTENT,
    TRANSACTIONAL,
    TWO,
    remedy_of,
)
from holdfast.pipeline.audit.causes.traces import read_traces, trace_files
from holdfast.pipeline.audit.findings import findings as words
from holdfast.pipeline.audit.findings.findings import (
    Cause,
    Finding,
    LedgerRow,
    PartitionFacts,
    Remedy,
    ReplicaFacts,
)

_ACKS: Final = {"all": -1, "-1": -1, "1": 1, "0": 0}


@dataclass(frozen=True, slots=True)
class _Sources:
    """The available evidence."""

    histories: Mapping[str, History]
    names: Mapping[int, str]
    replicas: Mapping[str, tuple[ReplicaFacts, ...]]
    pasts: Mapping[tuple[str, int], Past]


def explain(
    findings: Iterable[Finding],
    logs: Mapping[str, Path],
    traces: Sequence[Path] = (),
    partitions: Iterable[PartitionFacts] = (),
    pasts: Mapping[tuple[str, int], Past] | None = None,
) -> list[Finding]:
    """The findings with cause, remedy and evidence, as far as these are known.

    `logs`: a broker's log directory by its name; `traces`: trace files, or directories of them;
    `partitions`: what the audit has read from the files, for cases that the trace does not cover;
    `pasts`: what else is known of a partition (topic and number).
    """
    given = _runs(findings)
    wanted: dict[str, list[int]] = {}
    for finding in given:
        if finding.kind in _EXPLAINED:
            starts = wanted.setdefault(_partition(finding), [])
            starts += [] if finding.offset is None else [finding.offset]
    events = read_traces(trace_files(traces), wanted)
    replicas = {f"{one.topic}-{one.partition}": one.replicas for one in partitions}
    sources = _Sources(histories(events, wanted), names_of(logs), replicas, pasts or {})
    text = [one for finding in given for one in _explained(finding, sources)]
    return _merged_by_event(text, sources)


def _runs(findings: Iterable[Finding]) -> list[Finding]:
    """Merge neighbours that differ only in offset and ledger row."""
    runs: list[Finding] = []
    for finding in findings:
        if runs and _goes_on(runs[-1], finding):
            runs[-1] = replace(
                runs[-1],
                last_offset=_span(finding).end - 1,
                count=runs[-1].count + finding.count,
                last_ledger=finding.last_ledger or finding.ledger,
            )
        else:
            runs.append(finding)
    return runs


def _goes_on(run: Finding, finding: Finding) -> bool:
    if run.kind not in _IN_RUNS or run.offset is None or finding.offset is None:
        return False
    return _span(run).end == finding.offset and _alike(run) == _alike(finding)


def _alike(finding: Finding) -> object:
    """The finding without the fields that may differ in a run."""
    row = finding.ledger
    sender = None if row is None else (row.run, row.producer, row.result, row.acks)
    bare = replace(finding, offset=None, last_offset=None, count=0, ledger=None, last_ledger=None)
    return bare, sender


def _partition(finding: Finding) -> str:
    return f"{finding.topic}-{finding.partition}"


def _explained(finding: Finding, sources: _Sources) -> list[Finding]:
    explainer = _EXPLAINED.get(finding.kind)
    return [finding] if explainer is None else explainer(finding, sources)


def _merged_by_event(findings: list[Finding], sources: _Sources) -> list[Finding]:
    """One event in one partition is one cause for all its records."""
    groups: dict[object, list[int]] = {}
    for place, finding in enumerate(findings):
        if finding.cause is not None and finding.cause.event_id is not None:
            event = (finding.cause.kind, finding.cause.event_id, finding.evidence[0])
            groups.setdefault((_partition(finding), finding.kind, event), []).append(place)
    for places in groups.values():
        members = [findings[place] for place in places]
        if len(members) > 1:
            first = min(members, key=_span)
            end = max(_span(one).end for one in members)
            count = sum(one.count for one in members)
            row = next((one.ledger for one in members if one.ledger is not None), None)
            whole = replace(first, last_offset=end - 1, count=count, ledger=row)
            cause = _with(whole, _Asking(whole, sources).reason(_span(whole))).cause
            for place, one in zip(places, members, strict=True):
                findings[place] = replace(one, cause=cause)
    return findings


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


# Records that are gone or were replaced.


def _gone(finding: Finding, sources: _Sources) -> list[Finding]:
    if finding.kind == words.LOST and finding.place != words.LOG:
        return [_unread(finding, sources) or _passed_over(finding)]
    if finding.offset is None:
        return [_never_placed(finding)]
    asking = _Asking(finding, sources)
    return [_with(_narrowed_to(finding, piece), asking.reason(piece)) for piece in asking.pieces()]


class _Asking:
    """Explains why the records of one finding are gone, piece by piece."""

    def __init__(self, finding: Finding, sources: _Sources) -> None:
        self._finding = finding
        self._span = _span(finding)
        self._history = sources.histories[_partition(finding)]
        self._replicas = sources.replicas.get(_partition(finding), ())
        self._names = sources.names
        self._past = sources.pasts.get((finding.topic, finding.partition), NO_PAST)

    def pieces(self) -> list[Span]:
        """The offsets in as few parts as possible with one cause each."""
        if self._span.size != self._finding.count:
            return [self._span]  # It has holes at unknown offsets.
        merged: list[Span] = []
        last: object = None
        for piece in self._history.pieces(self._span):
            cause = _identity(self.reason(piece))
            if merged and cause == last:
                merged[-1] = Span(merged[-1].start, piece.end)
            else:
                merged.append(piece)
            last = cause
        return merged

    def reason(self, piece: Span) -> Reason | None:
        """The reason for all records of a piece, judged by the first.

        The ledger's row belongs to the first record of the finding. Where it explains nothing,
        later records may be of another producer, and only the trace counts.
        """
        reason = self._traced(piece, self._finding.ledger)
        if piece.start != self._span.start and (reason is None or reason.kind == kinds.ELECTION):
            reason = self._traced(piece, None) or reason
        kind = self._finding.kind
        asked = self._asked(piece, self._finding.ledger)
        if kind == words.DIFFER or (reason is None and kind != words.LOST):
            short = reason_of_shortage(asked, self._replicas, self._finding.lacks)
            return short or reason_of_difference(piece.start, self._replicas) or reason
        return reason or reason_from_epochs(
            asked, self._replicas, self._finding.has, self._past, self._names
        )

    def _traced(self, piece: Span, row: LedgerRow | None) -> Reason | None:
        return reason_of(self._history, self._asked(piece, row), self._names)

    def _asked(self, piece: Span, row: LedgerRow | None) -> Asked:
        return Asked(
            span=piece,
            count=self._finding.count if piece == self._span else piece.size,
            acks=None if row is None else _ACKS.get(row.acks),
            acked_ms=None if row is None else row.acked_ms,
        )


def _identity(reason: Reason | None) -> object:
    """Two causes are one if they have the same event; without an event, the same kind."""
    if reason is None:
        return None
    return reason.kind, None if reason.root is None else reason.root.place


def _span(finding: Finding) -> Span:
    assert finding.offset is not None
    last = finding.offset if finding.last_offset is None else finding.last_offset
    return Span(finding.offset, last + 1)


def _narrowed_to(finding: Finding, piece: Span) -> Finding:
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


def _never_placed(finding: Finding) -> Finding:
    """A send that never got an offset: acks=0."""
    text = "No broker acknowledged it: with acks=0 a producer counts every send as written."
    return _with(finding, Reason(kind=kinds.NEVER_WRITTEN, sentence=text, acks=0), ALL)


def _unread(finding: Finding, sources: _Sources) -> Finding | None:
    """The record left the log before the reader reached it; None if the log has it."""
    replicas = sources.replicas.get(_partition(finding), ())
    truth = newest(replicas)
    if truth is None or finding.offset is None or finding.offset >= truth.log_start_offset:
        return None
    reader = "the table" if finding.place == words.TABLE else "the consumer"
    start = truth.log_start_offset
    # Retention removes whole files of the leader; a follower may keep the file a little longer.
    if any(one.first_segment == start for one in replicas):
        kind, who = kinds.RETENTION, "Retention deleted"
    else:
        kind, who = kinds.DELETED_RECORDS, "A DeleteRecords request removed"
    text = (
        f"{who} everything below offset {start} before {reader} had read it: the log of "
        f"{truth.broker} begins there."
    )
    return _with(finding, Reason(kind=kind, sentence=text, evidence=(truth.path,)))


def _passed_over(finding: Finding) -> Finding:
    reader = "the table" if finding.place == words.TABLE else "the consumer"
    text = f"The log has what was acknowledged; {reader} went on without it."
    remedy = COMMIT_AFTER if finding.place == words.CONSUMED else None
    return _with(finding, Reason(kind=kinds.PASSED_OVER, sentence=text), remedy)


# Duplicates, and records in another order.


def _resent(finding: Finding, _sources: _Sources) -> list[Finding]:
    if finding.place != words.LOG:
        text = "It was read again: a reader that restarts begins at its last commit."
        return [_with(finding, Reason(kind=kinds.READ_AGAIN, sentence=text))]
    row = finding.ledger
    again = "" if finding.kind == words.DUPLICATE else ", after records that were sent later"
    if row is not None and row.idempotent:
        text = (
            f"The record was sent again{again}. An idempotent producer's own retries are "
            "recognised, so the application sent it twice, perhaps after a restart."
        )
        return [_with(finding, Reason(kind=kinds.RESENT, sentence=text), TRANSACTIONAL)]
    text = (
        f"The producer sent the record again{again}, most likely because the first answer did not "
        "come. Without idempotence a broker cannot recognise a retry."
    )
    return [_with(finding, Reason(kind=kinds.RESENT, sentence=text), IDEMPOTENT)]


def _too_few(finding: Finding, _sources: _Sources) -> list[Finding]:
    lacking = ", ".join(finding.lacks) or "others"
    text = f"{lacking} did not have a copy: the leader answered while fewer replicas were in sync."
    return [_with(finding, Reason(kind=kinds.FEW_COPIES, sentence=text), TWO)]


_IN_RUNS: Final = (words.LOST, words.INCONSISTENT, words.PHANTOM, words.DIFFER)
_EXPLAINED: Final = {
    words.LOST: _gone,
    words.INCONSISTENT: _gone,
    words.PHANTOM: _gone,
    words.DIFFER: _gone,
    words.DUPLICATE: _resent,
    words.REORDERED: _resent,
    words.TOO_FEW: _too_few,
}
