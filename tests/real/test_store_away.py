"""Without the coordination store, work that needs no decision continues, and the rest waits."""

from __future__ import annotations

import time

from holdfast.cluster import Cluster, ClusterError
from holdfast.cluster.waiting import wait_for
from tests.real.cast import WAIT_S
from tests.real.conftest import SESSION_MS, Store
from tests.real.stage import LAG_MS

TOPIC = "events"
AWAY_S = 1.3 * SESSION_MS / 1000
"""Longer than any session."""


def is_elected(cluster: Cluster, not_broker: int) -> bool:
    try:
        return cluster.leader(TOPIC) != not_broker
    except ClusterError:
        return False


def stays(cluster: Cluster, seconds: float, not_broker: int) -> None:
    """Check that no other broker is elected for a while."""
    try:
        wait_for(
            lambda: True if is_elected(cluster, not_broker) else None, seconds, lambda: "as wanted"
        )
    except ClusterError:
        return
    raise AssertionError("an election without a store")


def test_reads_and_writes_go_on_without_a_store(own: Cluster, store: Store) -> None:
    own.create_topic(TOPIC, partitions=3)
    for partition in range(3):
        own.produce(TOPIC, ["before"], partition)
    store.take_away()

    def sessions_are_over() -> bool | None:
        gone = [own.status(broker)["store"] != "connected" for broker in own.brokers]
        return True if all(gone) else None

    wait_for(sessions_are_over, WAIT_S, lambda: "the store is still there")
    ends = time.monotonic() + AWAY_S
    rounds = 0
    while time.monotonic() < ends:  # also when all sessions have run out
        for partition in range(3):
            own.produce(TOPIC, [f"during {rounds}"], partition)
        rounds += 1
        assert len(own.consume(TOPIC, 1)) == rounds + 1
    store.give_back()

    def all_are_back() -> bool | None:
        statuses = [own.status(broker) for broker in own.brokers]
        back = all(one["store"] == "connected" for one in statuses)
        return True if back and sum(one["is_controller"] for one in statuses) == 1 else None

    wait_for(all_are_back, WAIT_S, lambda: "brokers do not recover")
    assert own.running() == own.brokers, "without a restart"
    own.create_topic("after")
    own.produce("after", ["one"])


def test_elections_wait_for_the_store(own: Cluster, store: Store) -> None:
    own.create_topic(TOPIC)
    own.produce(TOPIC, ["before"])
    leader = own.leader(TOPIC)
    store.take_away()
    own.kill(leader)
    stays(own, LAG_MS / 1000, leader)
    store.give_back()
    own.wait_leader(TOPIC, not_broker=leader)
    own.assert_no_acked_loss()
    own.restart(leader)
    own.wait_isr(TOPIC)
    own.produce(TOPIC, ["after"])


def test_an_isr_change_waits_for_the_store(own: Cluster, store: Store) -> None:
    own.create_topic(TOPIC)
    own.produce(TOPIC, ["before"])
    leader = own.leader(TOPIC)
    # Not the controller: a leader that cannot reach it changes no ISR, store or not.
    follower = next(one for one in own.brokers if one not in (leader, own.controller()))
    store.take_away()
    own.ask(leader, "links", do="cut", to=[follower], both_ways=True)
    own.ask(follower, "links", do="cut", to=[leader], both_ways=True)
    before = own.replica(TOPIC, 0, leader)
    try:
        own.produce(TOPIC, ["waits"], timeout_s=2 * LAG_MS / 1000)
    except ClusterError:
        pass
    else:
        raise AssertionError("acknowledged without a member of the ISR that nobody took out")
    now = own.replica(TOPIC, 0, leader)
    assert (now.hw, now.isr) == (before.hw, before.isr)
    store.give_back()

    def is_accepted() -> bool | None:
        try:
            own.produce(TOPIC, ["after"])
        except ClusterError:
            return None  # sessions may have ended: the ISR goes through smaller ones
        return True

    wait_for(is_accepted, WAIT_S, lambda: "no acknowledgement, though two of three are in sync")
    own.wait_isr(TOPIC, size=2)
