"""No schedule of messages, crashes, lost sessions and elections loses acknowledged records."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from holdfast.core import Leader
from holdfast.model import BrokerId, LeaderEpoch, Offset
from tests.properties.cluster import Cluster, true_leader
from tests.properties.cluster_checks import check, end_faults
from tests.properties.node import Node
from tests.properties.wire import BROKERS, PARTITION, REPEATABLE

pytestmark = pytest.mark.slow

brokers = st.sampled_from(BROKERS)
places = st.integers(0, 40)


class ClusterMachine(RuleBasedStateMachine):
    """Drives the small cluster; the checks run after every step.

    One broker may lose written records, once: fewer than min.insync.replicas, so no acknowledged
    record may be lost.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.epochs: dict[tuple[BrokerId, int], LeaderEpoch] = {}
        self.may_lose = True

    @initialize(records=st.sampled_from((1, 2, 99)))
    def size_answers(self, records: int) -> None:
        self.cluster.records_a_fetch = records

    def node(self, broker: BrokerId) -> Node:
        return self.cluster.nodes[broker]

    # Clients.

    @rule()
    def produce_where_the_leader_is(self) -> None:
        leader = true_leader(self.cluster)
        if leader:
            self.cluster.produce(leader)

    @rule(broker=brokers)
    def produce(self, broker: BrokerId) -> None:
        if self.node(broker).alive:
            self.cluster.produce(self.node(broker))

    @rule(broker=brokers)
    def fill(self, broker: BrokerId) -> None:
        if self.node(broker).alive:
            self.cluster.fill(self.node(broker))

    # Messages, now or later, once or twice or never.

    @rule(broker=brokers)
    def fetch_later(self, broker: BrokerId) -> None:
        self.cluster.fetch(self.node(broker))

    @rule(broker=brokers, rounds=st.integers(1, 3))
    def fetch_now(self, broker: BrokerId, rounds: int) -> None:
        for _ in range(rounds):
            before = len(self.cluster.wire)
            self.cluster.fetch(self.node(broker))
            self.deliver_new(before)

    @rule()
    def all_fetch_now(self) -> None:
        for broker in BROKERS:
            self.fetch_now(broker, 2)

    def deliver_new(self, before: int) -> None:
        """Deliver the newest messages, the answers to them, and the answers to those."""
        for _ in range(3):
            sent = self.cluster.wire[before:]
            del self.cluster.wire[before:]
            for message in sent:
                self.cluster.deliver(message)

    @precondition(lambda self: self.cluster.wire)
    @rule(place=places)
    def deliver(self, place: int) -> None:
        wire = self.cluster.wire
        self.cluster.deliver(wire.pop(place % len(wire)))

    @precondition(lambda self: self.cluster.wire)
    @rule(place=places)
    def deliver_a_copy(self, place: int) -> None:
        wire = self.cluster.wire
        self.cluster.deliver(wire[place % len(wire)])

    @precondition(lambda self: self.cluster.wire)
    @rule()
    def deliver_all(self) -> None:
        on_the_way, self.cluster.wire = self.cluster.wire, []
        for message in on_the_way:
            self.cluster.deliver(message)

    @precondition(lambda self: self.cluster.wire)
    @rule(place=places)
    def lose(self, place: int) -> None:
        wire = self.cluster.wire
        if isinstance(wire[place % len(wire)].payload, REPEATABLE):
            del wire[place % len(wire)]

    # Time, store, controller.

    @rule(broker=brokers, passed_ms=st.sampled_from((1, 11)))
    def tick(self, broker: BrokerId, passed_ms: int) -> None:
        node = self.node(broker)
        self.cluster.now_ms += passed_ms
        if node.alive:
            self.cluster.effects(node, node.replica.tick(self.cluster.now_ms))
            role = node.replica.role
            if isinstance(role, Leader) and role.insync.proposal:
                self.cluster.propose(node, role.insync.proposal)

    @precondition(lambda self: self.cluster.writes)
    @rule()
    def store_answers(self) -> None:
        self.cluster.take_write()

    @precondition(lambda self: self.cluster.session_changes)
    @rule()
    def controller_receives(self) -> None:
        self.cluster.deliver_oldest_session_change()

    @precondition(lambda self: self.cluster.session_changes or self.cluster.writes)
    @rule()
    def agree(self) -> None:
        """The controller receives all session changes; store and brokers follow immediately."""
        before = len(self.cluster.wire)
        self.cluster.deliver_session_changes()
        self.cluster.flush_writes()
        self.deliver_new(before)
        self.cluster.flush_writes()

    @rule()
    def replace_controller(self) -> None:
        self.cluster.replace_controller()

    @rule(broker=brokers)
    def elect(self, broker: BrokerId) -> None:
        self.cluster.command(self.cluster.controller.elect(PARTITION, broker))

    # Faults.

    @rule(broker=brokers)
    def crash(self, broker: BrokerId) -> None:
        self.cluster.crash(self.node(broker))

    @rule(broker=brokers)
    def stop(self, broker: BrokerId) -> None:
        if self.node(broker).alive:
            self.cluster.stop(self.node(broker))

    @precondition(lambda self: self.may_lose)
    @rule(broker=brokers, kept=st.integers(0, 3))
    def lose_records(self, broker: BrokerId, kept: int) -> None:
        self.may_lose = False
        self.cluster.lose_records(self.node(broker), kept)

    @rule(broker=brokers, high_watermark=st.integers(0, 3))
    def restart(self, broker: BrokerId, high_watermark: int) -> None:
        node = self.node(broker)
        if not node.alive:
            known = node.replica.log.high_watermark
            self.cluster.restart(node, Offset(min(high_watermark, known)))

    @rule(broker=brokers)
    def end_session(self, broker: BrokerId) -> None:
        self.cluster.end_session(self.node(broker))

    @rule(broker=brokers)
    def register_again(self, broker: BrokerId) -> None:
        node = self.node(broker)
        if node.alive and broker not in self.cluster.sessions:
            self.cluster.register(node)

    # What must hold.

    @invariant()
    def all_is_well(self) -> None:
        check(self.cluster)

    @invariant()
    def no_epoch_falls(self) -> None:
        for node in self.cluster.nodes.values():
            process = (node.id, node.incarnation)
            epoch = node.replica.leader_epoch
            assert epoch >= self.epochs.get(process, epoch)
            self.epochs[process] = epoch

    def teardown(self) -> None:
        end_faults(self.cluster)


TestCluster = ClusterMachine.TestCase
