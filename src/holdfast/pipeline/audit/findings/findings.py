"""The results of an audit: its kinds of anomaly (`KINDS`), its findings, and its verdict.

Without Spark: the page, the terminal and the search for causes use only these types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any


class Exit(IntEnum):
    """Exit codes of `holdfast audit run`."""

    GOOD = 0
    WRONG = 1
    """Nothing acknowledged is gone, but copies or readings contradict each other."""
    LOSS = 2
    ORDER = 3
    """Duplicates or order only."""
    UNDECIDED = 4


class Severity(StrEnum):
    LOSS = "loss"
    WRONG = "wrong"
    ORDER = "order"
    UNDECIDED = "undecided"
    NOTE = "note"
    """Worth knowing, not an error."""


EXIT_OF = {
    Severity.LOSS: Exit.LOSS,
    Severity.UNDECIDED: Exit.UNDECIDED,
    Severity.WRONG: Exit.WRONG,
    Severity.ORDER: Exit.ORDER,
    Severity.NOTE: Exit.GOOD,
}
"""Worst first. A sure loss is a loss whatever else is missing; "order only" and "wrong" claim that
nothing is lost, which cannot be claimed while something is undecided.
"""


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    severity: Severity
    meaning: str


LOST = "lost"
UNSEEN_TAIL = "unseen tail"
DUPLICATE = "duplicate"
INCONSISTENT = "inconsistent offset"
REFUSED_BUT_READ = "refused but read"
REORDERED = "reordered send"
SKIPPED = "skipped"
NON_MONOTONIC = "non-monotonic poll"
PHANTOM = "phantom"
DIFFER = "replicas differ"
TOO_FEW = "too few copies"
GAP = "gap"
UNDECIDED = "undecided"
EXPIRED = "expired"
COMPACTED = "compacted"

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(LOST, Severity.LOSS, "acknowledged, and the leader's log or the reader lacks it"),
        Kind(UNSEEN_TAIL, Severity.UNDECIDED, "acknowledged and in the log, but the reader ends"),
        Kind(DUPLICATE, Severity.ORDER, "one write at two offsets, or one offset read twice"),
        Kind(INCONSISTENT, Severity.WRONG, "two different records at one offset"),
        Kind(REFUSED_BUT_READ, Severity.NOTE, "the producer got an error, the log has the record"),
        Kind(REORDERED, Severity.ORDER, "follows a record that was sent later"),
        Kind(
            SKIPPED, Severity.WRONG, "in the log, acknowledged to no producer, skipped by a reader"
        ),
        Kind(NON_MONOTONIC, Severity.ORDER, "given to a consumer after the same or a later offset"),
        Kind(PHANTOM, Severity.WRONG, "a reader has it; no log and no ledger does"),
        Kind(DIFFER, Severity.WRONG, "a copy lacks or adds records below its high watermark"),
        Kind(TOO_FEW, Severity.WRONG, "acks=all, and fewer copies than min.insync.replicas"),
        Kind(GAP, Severity.WRONG, "offsets inside the log that no batch covers"),
        Kind(
            UNDECIDED,
            Severity.UNDECIDED,
            "acknowledged, and a copy of it cannot be read or may be too old",
        ),
        Kind(
            EXPIRED,
            Severity.NOTE,
            "acknowledged, below the log start offset: retention or deletion",
        ),
        Kind(COMPACTED, Severity.NOTE, "acknowledged, cleaned away for a later record of its key"),
    )
}
"""The anomalies of docs/audit.md; the severity of each decides the exit code."""

ORDER_OF_KINDS = {name: at for at, name in enumerate(KINDS)}

LOG = "log"
TABLE = "table"
CONSUMED = "consumed"
"""The places where a record may be missing or wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """The result of one send, as its producer received it."""

    run: str
    producer: str
    sequence: int
    result: str
    """acked, refused or unknown."""
    acks: str
    idempotent: bool
    sent_ms: int
    acked_ms: int | None = None
    error: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One event: on the way to a loss, or a fault that was survived."""

    time_ms: int
    kind: str
    """As in `model.trace`."""
    broker: str | None
    offset: int | None
    """Its offset in the log: the end after a truncation, the start of a leader epoch."""
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    event_id: int | None
    """The event that caused it, in the first file of the evidence; None without a trace."""
    kind: str
    sentence: str
    chain: tuple[Step, ...] = ()
    """Events before and after it, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    setting: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One anomaly, or a run of neighbours that differ only in their offset."""

    kind: str
    topic: str
    partition: int
    place: str = LOG
    offset: int | None
    """The first offset of the run; None for a send that never got one."""
    last_offset: int | None = None
    """The last one, inclusive."""
    count: int = 1
    """The number of records: at most last_offset - offset + 1."""
    ledger: LedgerRow | None = None
    """The row of the first record."""
    last_ledger: LedgerRow | None = None
    """The row of the last record."""
    leader: str | None = None
    """The replica whose log was taken for the truth."""
    has: tuple[str, ...] = ()
    """Brokers whose log holds the record with the content that was sent (and "table")."""
    lacks: tuple[str, ...] = ()
    """Brokers that have a log of this partition without this record (and "table")."""
    detail: str = ""
    """One sentence: what was expected, and what was found instead."""
    cause: Cause | None = None
    remedy: Remedy | None = None
    evidence: tuple[str, ...] = ()
    """Paths, with line or position where that helps."""

    @property
    def severity(self) -> Severity:
        return KINDS[self.kind].severity


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochStart:
    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Offsets whose bytes are wrong in one copy."""

    first: int
    until: int
    place: str
    """File and byte."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFacts:
    """One broker's copy of one partition, from its files."""

    broker: str
    path: str
    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None
    flushed: int | None
    """The recovery point: everything below it was flushed."""
    epochs: tuple[EpochStart, ...] = ()
    """leader-epoch-checkpoint, oldest first."""
    errors: tuple[str, ...] = ()
    """What could not be read, and where."""
    damages: tuple[Damage, ...] = ()
    is_absent: bool = False
    """The broker should have the copy, but has no folder of it."""
    first_segment: int = 0
    """The base offset of the oldest file. The log start offset may be higher (DeleteRecords)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    topic: str
    partition: int
    leader: str | None
    """The replica taken for the truth: highest leader epoch, then the longest log."""
    replicas: tuple[ReplicaFacts, ...]
    acked: int
    found: int
    """Acknowledged records that are in the truth."""
    lost: int
    table_end: int | None = None
    """The offset after the last row of the table; None without a table, or without rows."""
    consumed_end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePoint:
    """One second of one partition, by the time of sending."""

    topic: str
    partition: int
    second: int
    """Seconds since 1970."""
    acked: int
    found: int


def _count_of(*kinds: str) -> property:
    """Of a verdict: the records with a finding of one of these kinds."""
    return property(lambda verdict: sum(verdict.counts.get(kind, 0) for kind in kinds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    sent: int = 0
    acked: int = 0
    refused: int = 0
    unknown: int = 0
    found: Mapping[str, int] = field(default_factory=dict)
    """Acknowledged records at their offset, per replica."""
    in_truth: int = 0
    """Acknowledged records in the leader's log."""
    in_table: int | None = None
    """Acknowledged records in the table; None without a table."""
    in_consumed: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    """Records by kind of finding; a missing kind is zero."""
    foreign: int = 0
    """Records in the log that no ledger has: another producer's. Not an error."""
    exit_code: int = 0

    lost = _count_of(LOST)
    unseen_tail = _count_of(UNSEEN_TAIL)
    duplicates = _count_of(DUPLICATE)
    reordered = _count_of(REORDERED)
    diverged = _count_of(INCONSISTENT, DIFFER)
    phantom = _count_of(PHANTOM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    verdict: Verdict
    findings: tuple[Finding, ...]
    """The worst first; bounded."""
    left_out: int
    """Findings beyond the bound."""
    partitions: tuple[PartitionFacts, ...]
    timeline: tuple[TimelinePoint, ...]
    faults: tuple[Step, ...]
    """What happened to the brokers, from their traces; empty without traces."""
    missing: tuple[str, ...]
    """What was missing for a verdict, in sentences."""
    notes: tuple[str, ...] = ()
    """Notes that change no verdict, in sentences."""
    inputs: Mapping[str, str]
    """What was audited: option -> value, and versions."""
    records: Any = None
    """A Spark DataFrame of all findings, one row per record; None after the session has ended."""


def exit_code(counts: Mapping[str, int], *, is_undecided: bool) -> Exit:
    """The exit code for these counts by kind."""
    severities = {KINDS[kind].severity for kind, count in counts.items() if count}
    if is_undecided:
        severities.add(Severity.UNDECIDED)
    return next((code for severity, code in EXIT_OF.items() if severity in severities), Exit.GOOD)
