"""The numbers of a partition's replicas as a table, for screen readers and for exact reading.

What the cluster does not report is None, with the reason: the page shows it greyed.
"""

from __future__ import annotations

from typing import Any

from holdfast.lab.render.views import Snapshot
from holdfast.web.console.reading.observation import Observation, PartitionFacts

NOT_IN_KAFKA = {
    "hw": "Kafka's APIs report only the leader's high watermark.",
    "flushed": "Kafka's APIs do not report what is flushed.",
    "epoch": "Apache Kafka does not report the epochs of a replica.",
    "leo": "Apache Kafka reports a replica's lag, not its log end: this is the least it can be.",
    "trace": "Only clusters of 'holdfast up' with a trace can be replayed.",
    "faults": "Only clusters of 'holdfast up' on this machine can be broken from here.",
}
"""Why something is greyed."""


def replica_table(
    partition: PartitionFacts, seen: Observation, snapshot: Snapshot
) -> list[dict[str, Any]]:
    """One row per replica."""
    lagging = {view.id: view.log_end_offset for view in snapshot.replicas}
    most = lagging.get(partition.leader, max(lagging.values(), default=0))
    return [_row(partition, seen, broker, lagging.get(broker, 0), most) for broker in lagging]


def _row(
    partition: PartitionFacts, seen: Observation, broker: int, end: int, most: int
) -> dict[str, Any]:
    copy = partition.copies.get(broker)
    facts = seen.brokers.get(broker)
    state = facts.state if facts else "silent"
    role = "leader" if broker == partition.leader else "follower"
    if copy is not None and copy.role == "offline":
        role = "offline"
    return {
        "broker": broker,
        "state": state,
        "role": role,
        "in_isr": broker in partition.isr,
        "eligible": broker in (partition.eligible or ()),
        "leo": None if copy is None else copy.log_end,
        "at_least": bool(copy and copy.at_least),
        "hw": None if copy is None else copy.high_watermark,
        "flushed": None if copy is None else copy.flushed,
        "epoch": None if copy is None else copy.leader_epoch,
        "bytes": None if copy is None else copy.bytes,
        "lag": max(0, most - end),
        "copy_problem": copy.copy_problem if copy else "",
    }
