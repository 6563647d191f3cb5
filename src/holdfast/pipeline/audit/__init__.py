"""Was anything lost? Joins what producers were promised with what every copy really holds."""

from holdfast.pipeline.audit.audit import run, run_here
from holdfast.pipeline.audit.findings.findings import (
    Audit,
    Cause,
    Finding,
    LedgerRow,
    PartitionFacts,
    Remedy,
    ReplicaFacts,
    TimelinePoint,
    Verdict,
)
from holdfast.pipeline.audit.inputs import AuditInputs

__all__ = [
    "Audit",
    "AuditInputs",
    "Cause",
    "Finding",
    "LedgerRow",
    "PartitionFacts",
    "Remedy",
    "ReplicaFacts",
    "TimelinePoint",
    "Verdict",
    "run",
    "run_here",
]
