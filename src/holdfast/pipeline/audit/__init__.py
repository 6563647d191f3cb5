"""Was anything lost? Joins what producers were promised with what every copy really holds."""

from holdfast.pipeline.audit.findings import (
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
from holdfast.pipeline.audit.running import run, run_here

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
