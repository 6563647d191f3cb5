"""The setting that would have prevented a loss. A table of rules: a real run cannot be repeated.

The lab answers the same question by running the scenario again (`remedies`); both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from holdfast.pipeline.audit.causes import kinds
from holdfast.pipeline.audit.causes.from_traces import Reason
from holdfast.pipeline.audit.findings.findings import Remedy

ALL: Final = Remedy(setting="acks", value="all")
TWO: Final = Remedy(setting="min.insync.replicas", value="2")
CLEAN: Final = Remedy(setting="unclean.leader.election.enable", value="false")
FLUSH: Final = Remedy(setting="flush.messages", value="1")
COPIES: Final = Remedy(setting="replication.factor", value="3")
IDEMPOTENT: Final = Remedy(setting="enable.idempotence", value="true")
TRANSACTIONAL: Final = Remedy(setting="transactional.id", value="the same name after every restart")
RETAIN: Final = Remedy(setting="retention.ms", value="longer than its readers may be behind")
COMMIT_AFTER: Final = Remedy(setting="enable.auto.commit", value="false")


def remedy_of(reason: Reason) -> Remedy | None:
    """None where no setting would have helped, or none is known."""
    rule = _RULES.get(reason.kind)
    return None if rule is None else rule(reason)


def _disk(reason: Reason) -> Remedy:
    if reason.copies > 1:
        return COPIES
    # The only copy is gone: have the leader wait for a second one before it acknowledges.
    return ALL if reason.acks in (0, 1) else TWO


_RULES: Mapping[str, Callable[[Reason], Remedy]] = {
    kinds.UNCLEAN_ELECTION: lambda _: CLEAN,
    kinds.LEADER_ALONE: lambda _: ALL,
    kinds.NEVER_WRITTEN: lambda _: ALL,
    kinds.LOST_FLUSH: lambda _: FLUSH,
    kinds.LOST_DISK: _disk,
    kinds.RETENTION: lambda _: RETAIN,
}
