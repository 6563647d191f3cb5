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

__all__ = [
    "Audit",
    "Cause",
    "Finding",
    "LedgerRow",
    "PartitionFacts",
    "Remedy",
    "ReplicaFacts",
    "TimelinePoint",
    "Verdict",
]
