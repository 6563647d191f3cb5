"""The numbers of a partition's replicas as a table, for screen readers and for exact reading.

What the cluster does not report is None, with the reason: the page shows it greyed.
"""

from __future__ import annotations

from typing import Any

from holdfast.lab.render.views import ReplicaView, Snapshot
from holdfast.web.console.reading.observation import OFFLINE, Observation, PartitionFacts

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
    """One row per replica, with the numbers of the picture where they are known at all."""
    ends = {view.id: view.log_end_offset for view in snapshot.replicas}
    most = ends.get(partition.leader, max(ends.values(), default=0))
    return [_row(partition, seen, view, most) for view in snapshot.replicas]


def _row(
    partition: PartitionFacts, seen: Observation, view: ReplicaView, most: int
) -> dict[str, Any]:
    broker = view.id
    copy = partition.copies.get(broker)
    facts = seen.brokers.get(broker)
    state = facts.state if facts else OFFLINE
    role = "leader" if broker == partition.leader else "follower"
    if copy is not None and copy.role == "offline":
        role = "offline"
    return {
        "broker": broker,
        "state": state,
        "role": role,
        "in_isr": broker in partition.isr,
        "eligible": broker in (partition.eligible or ()),
        "leo": view.log_end_offset if copy and copy.log_end is not None else None,
        "at_least": bool(copy and copy.at_least),
        "hw": view.high_watermark if copy and copy.high_watermark is not None else None,
        "flushed": view.flushed_end if copy and copy.flushed is not None else None,
        "epoch": None if copy is None else copy.leader_epoch,
        "bytes": copy.bytes if copy and view.alive else None,
        "lag": max(0, most - view.log_end_offset),
        "copy_problem": copy.copy_problem if copy else "",
    }
