"""The simulated network and store: links, loss, copies, sessions, compare-and-set."""

from __future__ import annotations

from holdfast.core import Settings
from holdfast.lab.world.messages import Envelope, Payload, RegisterResponse, ShutdownRequest
from holdfast.lab.world.network import Network
from holdfast.lab.world.store import SimStore
from holdfast.model import (
    NO_BROKER_EPOCH,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    PartitionEpoch,
    PartitionState,
    TopicPartition,
)
from tests.unit.lab.worlds import kinds, labels, producer_of, world_of

PARTITION = TopicPartition("events", 0)
ONE, TWO = BrokerId(1), BrokerId(2)
STATE = PartitionState((ONE, TWO), (ONE, TWO), ONE)


def message(number: int) -> Payload:
    return RegisterResponse(number, BrokerEpoch(number))


def network_with(*links: str) -> Network:
    network = Network()
    for number, link in enumerate(links):
        network.send(link[0], link[1], message(number), None)
    return network


def test_messages_wait_in_the_order_they_were_sent() -> None:
    network = network_with("AB", "BA", "AB")
    assert [one.number for one in network.pending] == [0, 1, 2]
    assert [one.number for one in network.between("A", "B")] == [0, 2]


def test_a_message_is_taken_once() -> None:
    network = network_with("AB", "AB")
    first = network.pending[0]
    assert network.take(first)
    assert not network.take(first)
    assert len(network.pending) == 1


def test_an_equal_message_is_another_message() -> None:
    network = network_with("AB")
    original = network.pending[0]
    copy = Envelope("A", "B", original.payload, None, original.number)
    network.pending.append(copy)
    assert copy == original
    assert network.take(copy)
    assert not network.take(copy)
    assert network.pending[0] is original


def test_a_link_is_disconnected_one_way_and_reconnected() -> None:
    network = Network()
    network.disconnect(["A"], ["B", "A", "C"])
    assert network.is_disconnected("A", "B")
    assert network.is_disconnected("A", "C")
    assert not network.is_disconnected("B", "A")
    assert network.disconnected == (("A", "B"), ("A", "C")), "no node is disconnected from itself"
    network.reconnect()
    assert not network.disconnected


def test_a_dead_nodes_connections_break_both_ways() -> None:
    network = network_with("AB", "BA", "CB", "CA")
    assert [one.number for one in network.drop_node("A")] == [0, 1, 3]
    assert [one.number for one in network.pending] == [2]


def test_what_a_dead_node_has_sent_may_be_kept() -> None:
    network = network_with("AB", "BA", "CB")
    assert [one.number for one in network.drop_node("A", keep_sent=True)] == [1]
    assert [one.number for one in network.pending] == [0, 2]


def test_a_scheduler_sees_every_message() -> None:
    sent: list[int] = []
    network = Network()
    network.on_send = lambda envelope: sent.append(envelope.number)
    network.send("A", "B", message(0), None)
    network.send("B", "A", ShutdownRequest(TWO, BrokerEpoch(1)), 7)
    assert sent == [0, 1]
    assert network.pending[1].cause == 7
    assert network.pending[1].wire_name == "ControlledShutdown"


def test_each_registration_gets_a_higher_epoch() -> None:
    store = SimStore(Settings())
    first = store.register(ONE, NO_BROKER_EPOCH)
    other = store.register(TWO, NO_BROKER_EPOCH)
    again = store.register(ONE, first.intact_since)
    assert (first.broker_epoch, other.broker_epoch, again.broker_epoch) == (1, 2, 3)
    assert (first.intact_since, again.intact_since) == (1, 1)
    assert store.register(ONE, NO_BROKER_EPOCH).intact_since == 4, "it kept nothing intact"


def test_a_session_ends_once() -> None:
    store = SimStore(Settings())
    registration = store.register(ONE, NO_BROKER_EPOCH)
    assert store.expire(ONE) == registration
    assert store.expire(ONE) is None
    assert store.sessions == {}


def test_the_store_takes_a_write_only_over_the_version_it_has() -> None:
    store = SimStore(Settings())
    epoch = store.next_controller()
    assert store.compare_and_set(PARTITION, STATE, PartitionEpoch(0), epoch)
    newer = STATE._replace(partition_epoch=PartitionEpoch(1), isr=(ONE,))
    assert not store.compare_and_set(PARTITION, newer, PartitionEpoch(5), epoch)
    assert store.partitions[PARTITION] == STATE
    assert store.compare_and_set(PARTITION, newer, PartitionEpoch(0), epoch)
    assert store.partitions[PARTITION] == newer


def test_the_store_refuses_a_former_controller() -> None:
    store = SimStore(Settings())
    former = store.next_controller()
    assert store.next_controller() == ControllerEpoch(former + 1)
    assert not store.compare_and_set(PARTITION, STATE, PartitionEpoch(0), former)
    assert PARTITION not in store.partitions


def test_a_disconnected_link_loses_messages_in_one_direction_only() -> None:
    world = world_of("AB")
    producer_of(world, acks=1).send(["m0"])
    world.pump()
    world.brokers["B"].maybe_fetch()
    world.network.disconnect(["A"], ["B"])
    world.settle()
    assert kinds(world, "fetched"), "B's request arrived"
    (lost,) = kinds(world, "message-lost")
    assert lost.numbers == {"what": "FetchResponse", "source": "A", "target": "B"}
    assert labels(world, "B") == []
    world.network.reconnect()
    world.advance(100)
    world.settle()
    assert labels(world, "B") == ["m0"], "a broken connection is tried again"


def test_a_message_waits_for_a_process_that_stands_still() -> None:
    world = world_of("AB")
    world.settle()
    producer_of(world, acks=1).send(["m0"])
    world.pump()
    world.brokers["B"].paused = True
    world.settle()
    assert len(world.network.between("A", "B")) == 1
    assert labels(world, "B") == []
    world.brokers["B"].paused = False
    world.settle()
    assert labels(world, "B") == ["m0"]


def test_the_same_answer_twice_is_copied_once() -> None:
    world = world_of("AB")
    world.settle()
    producer_of(world, acks=1).send(["m0"])
    world.pump()
    (answer,) = world.network.between("A", "B")
    world.network.pending.append(
        Envelope(answer.source, answer.target, answer.payload, answer.cause, answer.number)
    )
    world.settle()
    assert labels(world, "B") == ["m0"]
    assert [event.numbers["reason"] for event in kinds(world, "answer-dropped")] == ["stale"]


def test_the_same_request_twice_is_handled_once() -> None:
    world = world_of("AB")
    (request,) = world.network.between("B", "A")
    world.network.pending.append(
        Envelope(request.source, request.target, request.payload, request.cause, request.number)
    )
    world.settle()
    assert len(kinds(world, "fetched")) == 1


def test_the_store_takes_settings_only_from_the_newest_controller() -> None:
    store = SimStore(Settings())
    lowered = Settings(min_insync_replicas=1, replica_lag_time_max_ms=1)
    former = store.next_controller()
    newest = store.next_controller()
    assert not store.set_settings(lowered, former)
    assert store.settings == Settings()
    assert store.set_settings(lowered, newest)
    assert store.settings == lowered
