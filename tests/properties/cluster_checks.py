"""What must hold in the small cluster after every step, and after all faults."""

from __future__ import annotations

from itertools import combinations

from holdfast.core import Leader
from holdfast.model import NO_BROKER, Offset
from tests.properties.cluster import Cluster, true_leader
from tests.properties.node import Node


def check(cluster: Cluster) -> None:
    """The invariants, cheapest first."""
    living = [node for node in cluster.nodes.values() if node.alive]
    for node in living:
        check_node(node)
    state = cluster.state
    assert state.leader in (NO_BROKER, *state.isr), f"the leader is not in the ISR: {state}"
    for node in living:
        if isinstance(node.replica.role, Leader):
            check_committed(cluster, node)
    for one, other in combinations(living, 2):
        check_equal_below_high_watermark(one, other)
    check_acknowledged(cluster)


def check_node(node: Node) -> None:
    replica = node.replica
    replica.check_invariants()
    assert replica.log.log_end_offset == len(node.log), "the core and the disk disagree"
    values = [record.value for record in node.log]
    assert len(set(values)) == len(values), f"a record twice in the log of {node.id}: {values}"


def check_committed(cluster: Cluster, leader: Node) -> None:
    """A replica that may be elected cleanly holds all that any presumed leader has committed."""
    committed = leader.log[: leader.replica.log.high_watermark]
    for broker, member_epoch in cluster.state.member_epochs:
        node = cluster.nodes[broker]
        # Who lost records since it became a member is found out when it registers again.
        if member_epoch > node.lost_in:
            held = node.log[: len(committed)]
            assert held == committed, f"{broker} lacks what {leader.id} has committed"


def check_equal_below_high_watermark(one: Node, other: Node) -> None:
    end = min(one.replica.log.high_watermark, other.replica.log.high_watermark)
    assert one.log[:end] == other.log[:end], f"{one.id} and {other.id} differ below {end}"


def check_acknowledged(cluster: Cluster) -> None:
    """The true leader's log has every acknowledged record."""
    leader = true_leader(cluster)
    if leader:
        for value, offset in cluster.acknowledged.items():
            held = leader.log[offset].value if offset < len(leader.log) else None
            assert held == value, f"{value} was acknowledged at {offset}; {leader.id} has {held}"


def end_faults(cluster: Cluster) -> None:
    """End all faults, and check that the cluster recovers in bounded time."""
    for node in cluster.nodes.values():
        if not node.alive:
            cluster.restart(node, Offset(0))
        elif node.id not in cluster.sessions:
            cluster.register(node)
    # Each round lets every replica do one step; a few elections and truncations need no more.
    for _ in range(60):
        run_a_round(cluster)
        check(cluster)
    assert_converged(cluster)


def run_a_round(cluster: Cluster) -> None:
    cluster.now_ms += 1
    cluster.deliver_session_changes()
    cluster.command(cluster.controller.ask_again())
    cluster.flush_writes()
    for node in cluster.nodes.values():
        cluster.effects(node, node.replica.tick(cluster.now_ms))
        role = node.replica.role
        if isinstance(role, Leader) and role.insync.proposal:
            cluster.propose(node, role.insync.proposal)
        cluster.fetch(node)
    on_the_way, cluster.wire = cluster.wire, []
    for message in on_the_way:
        cluster.deliver(message)


def assert_converged(cluster: Cluster) -> None:
    leader = true_leader(cluster)
    assert leader, f"nobody leads: {cluster.state}"
    assert sorted(cluster.state.isr) == sorted(cluster.nodes), f"the ISR is {cluster.state.isr}"
    for node in cluster.nodes.values():
        assert node.log == leader.log, f"{node.id} differs from the leader {leader.id}"
    assert leader.replica.log.high_watermark == len(leader.log), "not all is committed"
