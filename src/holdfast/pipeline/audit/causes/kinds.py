"""The kinds of cause, and the headline of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

UNCLEAN_ELECTION: Final = "unclean-election"
LEADER_ALONE: Final = "leader-alone"
LOST_FLUSH: Final = "lost-flush"
LOST_DISK: Final = "lost-disk"
NEVER_WRITTEN: Final = "never-written"
ELECTION: Final = "election"
TRUNCATION: Final = "truncation"
OUTSIDE: Final = "outside"
STALE_REPLICA: Final = "stale-replica"
RESENT: Final = "resent"
READ_AGAIN: Final = "read-again"
PASSED_OVER: Final = "passed-over"
FEW_COPIES: Final = "few-copies"
RECREATED: Final = "recreated-topic"
RETENTION: Final = "retention"
DELETED_RECORDS: Final = "deleted-records"
UNKNOWN_CAUSE: Final = "unknown"

HEADLINES: Final[Mapping[str, str]] = {
    UNCLEAN_ELECTION: "An unclean election",
    LEADER_ALONE: "Acknowledged by the leader alone",
    LOST_FLUSH: "The power failed before a flush",
    LOST_DISK: "A disk came back empty",
    NEVER_WRITTEN: "Never reached a log",
    ELECTION: "A leader was elected that did not have the records",
    TRUNCATION: "Truncated by its own broker",
    OUTSIDE: "Changed by something else than the broker",
    STALE_REPLICA: "A copy that has not followed",
    RESENT: "Sent again by the producer",
    READ_AGAIN: "Read again",
    PASSED_OVER: "Skipped by a reader",
    FEW_COPIES: "Too few replicas were in sync",
    RECREATED: "The topic was deleted and created again",
    RETENTION: "Deleted by retention before it was read",
    DELETED_RECORDS: "Deleted on request before it was read",
    UNKNOWN_CAUSE: "The files do not show the cause",
}
