"""Checks a chaos run: audits its ledgers, and checks what chaos requires beyond that.

Idempotent producers have a topic of their own, where nothing may be doubled or out of order. In the
other topic a retry may do both; that is counted and no error. Every replica must be equal byte by
byte, and a record that was acknowledged with an offset must exist.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from holdfast.cluster.chaos import Happened
from holdfast.cluster.chaos.senders import LEAST
from holdfast.ledger import read_ledger
from holdfast.pipeline.audit import Audit, AuditInputs, Finding, run_here
from holdfast.pipeline.audit.causes.kinds import ELECTION, OUTSIDE, TRUNCATION, UNKNOWN_CAUSE
from holdfast.pipeline.audit.findings.findings import (
    DUPLICATE,
    KINDS,
    LOG,
    LOST,
    REORDERED,
    Exit,
    Severity,
    exit_code,
)

MOST_FINDINGS: Final = 100_000
NO_CAUSE: Final = (ELECTION, OUTSIDE, TRUNCATION, UNKNOWN_CAUSE)
"""Kinds that name no setting: they mean a bug, or an event that the trace lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """The longest time without an acknowledgement, between the first and the last one."""

    milliseconds: int
    where: str
    """A partition; empty for all of them together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The verdict on one run."""

    audit: Audit
    happened: Happened
    counts: Mapping[str, int]
    """Records by kind of finding, without what a retry may do."""
    allowed: Mapping[str, int]
    """Those that a retry may do."""
    unexplained: tuple[Finding, ...]
    """Losses that the trace does not explain by a setting."""
    problems: tuple[str, ...]
    silence: Silence
    partition_silence: Silence
    exit_code: Exit


def check(happened: Happened) -> Checked:
    """Compare the ledgers with the logs."""
    audit = run_here(
        AuditInputs(
            ledger=happened.ledger,
            logs=happened.logs,
            consumed=happened.consumed,
            is_consumed_whole=True,
            traces=(happened.traces,),
            min_insync=2 if happened.plan.is_safe else 1,
            most_findings=MOST_FINDINGS,
        )
    )
    counts: dict[str, int] = {}
    allowed: dict[str, int] = {}
    for finding in audit.findings:
        home = allowed if _is_allowed(finding) else counts
        home[finding.kind] = home.get(finding.kind, 0) + finding.count
    lost = [one for one in audit.findings if one.kind == LOST and one.place == LOG]
    moved = _moved(audit) if happened.plan.is_safe else ()
    problems = (*happened.problems, *moved, *unequal(happened.logs, audit))
    silence, partition_silence = _silences(happened.ledger)
    return Checked(
        audit=audit,
        happened=happened,
        counts=counts,
        allowed=allowed,
        unexplained=tuple(one for one in lost if one.cause is None or one.cause.kind in NO_CAUSE),
        problems=problems,
        silence=silence,
        partition_silence=partition_silence,
        exit_code=_exit_code(counts, problems, audit),
    )


def _is_allowed(finding: Finding) -> bool:
    if KINDS[finding.kind].severity is Severity.NOTE:
        return True
    is_retry = finding.kind in (DUPLICATE, REORDERED) and finding.place == LOG
    return is_retry and finding.topic == LEAST


def _exit_code(counts: Mapping[str, int], problems: tuple[str, ...], audit: Audit) -> Exit:
    code = exit_code(counts, is_undecided=bool(audit.missing))
    if audit.left_out and code is not Exit.LOSS:
        return Exit.UNDECIDED
    return Exit.WRONG if problems and code in (Exit.GOOD, Exit.ORDER) else code


def _moved(audit: Audit) -> Iterable[str]:
    """A copy that a retry left elsewhere does not replace the record at its acknowledged offset."""
    moved = audit.verdict.in_truth - sum(one.found for one in audit.partitions)
    if moved:
        yield f"{moved} records are not at the offset they were acknowledged with"


def unequal(logs: Mapping[str, Path], audit: Audit) -> Iterable[str]:
    """Partitions whose copies are not equal byte by byte."""
    for one in audit.partitions:
        name = f"{one.topic}-{one.partition}"
        digests = {broker: _digest(folder / name) for broker, folder in logs.items()}
        if len(set(digests.values())) > 1:
            groups: dict[str, list[str]] = {}
            for broker, digest in digests.items():
                groups.setdefault(digest, []).append(broker)
            differing = " and ".join(", ".join(brokers) for brokers in groups.values())
            yield f"the bytes of {name} differ between {differing}"


def _digest(folder: Path) -> str:
    """The digest of all batches in their order; brokers may roll segments at different offsets."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.log")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _silences(ledger: Path) -> tuple[Silence, Silence]:
    """Over all partitions together, and of the partition that had to wait longest."""
    times: dict[str, list[int]] = {}
    for batch in read_ledger(ledger, columns=("topic", "partition", "acked_ms")):
        for topic, partition, acked in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            if acked is not None:
                times.setdefault(f"{topic}-{partition}", []).append(acked)
    every = [moment for moments in times.values() for moment in moments]
    worst = max(
        (Silence(milliseconds=_longest(one), where=name) for name, one in times.items()),
        key=lambda one: one.milliseconds,
        default=Silence(milliseconds=0, where=""),
    )
    return Silence(milliseconds=_longest(every), where=""), worst


def _longest(moments: list[int]) -> int:
    gaps = np.diff(np.sort(np.array(moments, np.int64)))
    return int(gaps.max(initial=0))
