"""What an audit says: its words (`KINDS`), its findings, and its verdict.

No Spark in here: the page, the terminal and the search for causes read these types alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any


class Exit(IntEnum):
    """How `holdfast audit run` ends."""

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
    """Worth knowing, no fault."""


EXIT_OF = {
    Severity.LOSS: Exit.LOSS,
    Severity.UNDECIDED: Exit.UNDECIDED,
    Severity.WRONG: Exit.WRONG,
    Severity.ORDER: Exit.ORDER,
    Severity.NOTE: Exit.GOOD,
}
"""Worst first. A sure loss is a loss whatever else is missing; "order only" and "wrong" claim that
nothing is lost, and that cannot be claimed while something could not be decided."""


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
        Kind(LOST, Severity.LOSS, "acknowledged, and the leader's line or the reader lacks it"),
        Kind(UNSEEN_TAIL, Severity.UNDECIDED, "acknowledged and in the log, but the reader ends"),
        Kind(DUPLICATE, Severity.ORDER, "one write at two offsets, or one offset read twice"),
        Kind(INCONSISTENT, Severity.WRONG, "two different records at one offset"),
        Kind(REFUSED_BUT_READ, Severity.NOTE, "the producer got an error, the log has the record"),
        Kind(REORDERED, Severity.ORDER, "stands behind a record that was sent later"),
        Kind(
            SKIPPED, Severity.WRONG, "in the log, not promised to anyone, passed over by a reader"
        ),
        Kind(NON_MONOTONIC, Severity.ORDER, "given to a consumer after the same or a later offset"),
        Kind(PHANTOM, Severity.WRONG, "a reader has it; no log and no ledger does"),
        Kind(DIFFER, Severity.WRONG, "a copy lacks or adds records below its high watermark"),
        Kind(TOO_FEW, Severity.WRONG, "acks=all, and fewer copies than min.insync.replicas"),
        Kind(GAP, Severity.WRONG, "offsets inside the log that no batch covers"),
        Kind(
            UNDECIDED,
            Severity.UNDECIDED,
            "acknowledged, and the place where it would be cannot be read",
        ),
        Kind(
            EXPIRED,
            Severity.NOTE,
            "acknowledged, below the log start offset: retention or deletion",
        ),
        Kind(COMPACTED, Severity.NOTE, "acknowledged, cleaned away for a later record of its key"),
    )
}
"""The names are those of the anomalies in docs/audit.md; what each one leads to is its severity."""

ORDER_OF_KINDS = {name: at for at, name in enumerate(KINDS)}

LOG = "log"
TABLE = "table"
CONSUMED = "consumed"
"""The places where a record may be missing or wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """What a producer was told about one send."""

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
    """Where in the log it happened: the end after a cut, the start of a reign."""
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    event_id: int | None
    """The trace event that did it, in the file that the evidence names first; None without one."""
    kind: str
    sentence: str
    chain: tuple[Step, ...] = ()
    """What led to it and what it led to, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    setting: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One anomaly, or a run of neighbours that differ in nothing but their offset."""

    kind: str
    topic: str
    partition: int
    place: str = LOG
    offset: int | None
    """The first offset of the run; None for a send that was never given one."""
    last_offset: int | None = None
    """The last one, inclusive."""
    count: int = 1
    """Records meant: at most last_offset - offset + 1."""
    ledger: LedgerRow | None = None
    """The row of the first record."""
    last_ledger: LedgerRow | None = None
    """The row of the last record."""
    leader: str | None = None
    """The replica whose log was taken for the truth."""
    has: tuple[str, ...] = ()
    """Brokers whose log holds the record with the content that was sent (and "table")."""
    lacks: tuple[str, ...] = ()
    """Brokers that have a log of this partition and not this record in it (and "table")."""
    detail: str = ""
    """One sentence: what was expected, and what is there instead."""
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
    """The recovery point: below it everything was flushed."""
    epochs: tuple[EpochStart, ...] = ()
    """leader-epoch-checkpoint, oldest first."""
    errors: tuple[str, ...] = ()
    """What could not be read, and where."""
    damages: tuple[Damage, ...] = ()
    is_absent: bool = False
    """The broker should have the copy, and has no folder of it."""
    first_segment: int = 0
    """Where the oldest file begins. The log start offset may be higher (DeleteRecords)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    topic: str
    partition: int
    leader: str | None
    """The replica taken for the truth: highest leader epoch, then the longest log."""
    replicas: tuple[ReplicaFacts, ...]
    acked: int
    found: int
    """Of the acknowledged, those in the truth."""
    lost: int
    table_end: int | None = None
    """One past the last row of the table; None without a table, or without rows."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    sent: int = 0
    acked: int = 0
    refused: int = 0
    unknown: int = 0
    found: Mapping[str, int] = field(default_factory=dict)
    """Of the acknowledged, how many each replica holds where it should."""
    in_truth: int = 0
    """Of the acknowledged, how many the leader's line holds."""
    in_table: int | None = None
    """Of the acknowledged, how many the table holds; None without a table."""
    in_consumed: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    """Records by kind of finding; a kind that is not there is zero."""
    foreign: int = 0
    """Records in the log that no ledger knows: another producer's. No fault."""
    exit_code: int = 0

    @property
    def lost(self) -> int:
        return self.counts.get(LOST, 0)

    @property
    def unseen_tail(self) -> int:
        return self.counts.get(UNSEEN_TAIL, 0)

    @property
    def duplicates(self) -> int:
        return self.counts.get(DUPLICATE, 0)

    @property
    def reordered(self) -> int:
        return self.counts.get(REORDERED, 0)

    @property
    def diverged(self) -> int:
        return self.counts.get(INCONSISTENT, 0) + self.counts.get(DIFFER, 0)

    @property
    def phantom(self) -> int:
        return self.counts.get(PHANTOM, 0)


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
    """What happened to the brokers, as their traces say; empty without traces."""
    missing: tuple[str, ...]
    """What was missing to decide, in sentences."""
    notes: tuple[str, ...] = ()
    """What is worth knowing and changes no verdict, in sentences."""
    inputs: Mapping[str, str]
    """What was audited: option -> value, and versions."""
    records: Any = None
    """A Spark DataFrame of all findings, one row a record; None once the session has gone."""


def exit_code(counts: Mapping[str, int], *, is_undecided: bool) -> Exit:
    """The exit code of what was found, by kind."""
    severities = {KINDS[kind].severity for kind, count in counts.items() if count}
    if is_undecided:
        severities.add(Severity.UNDECIDED)
    return next((code for severity, code in EXIT_OF.items() if severity in severities), Exit.GOOD)
