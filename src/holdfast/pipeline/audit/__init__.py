"""Was anything lost? Compares what brokers acknowledged to producers with every replica's log."""

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
