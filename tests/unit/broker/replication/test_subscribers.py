"""Subscribers to a partition's changes: all of them hear, and a bug in one stays there."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

from holdfast.broker.log_lines import LogLines
from holdfast.broker.replication.partition import Partition
from holdfast.broker.replication.partition_host import Subscribers
from holdfast.model import TopicPartition
from holdfast.simulation import SimulatedCluster
from holdfast.simulation.clients.clients import Ledger, Producer

TOPIC = "events"


class Hearing:
    """Two subscribers, of which the first has a bug."""

    def __init__(self, subscribers: Subscribers) -> None:
        self.first: list[TopicPartition] = []
        self.second: list[TopicPartition] = []
        subscribers.subscribe(TOPIC, self._fail)
        subscribers.subscribe(TOPIC, lambda partition: self.second.append(partition.name))

    def _fail(self, partition: Partition) -> None:
        self.first.append(partition.name)
        raise RuntimeError("no such luck")


def test_all_subscribers_of_a_broker_hear_and_its_partition_goes_on() -> None:
    cluster = SimulatedCluster(3, 1)
    [name] = cluster.start(TOPIC, 1)
    [machine] = cluster.machines.values()
    assert machine.broker is not None
    replicas = machine.broker.replicas
    moves, roles = Hearing(replicas.high_watermark_moves), Hearing(replicas.role_changes)
    ledger = Ledger()
    producer = Producer(cluster.client("writer"), ledger, (name,), is_idempotent=True)
    cluster.spawn(producer.run(0.1))
    assert cluster.timeline.run_until(lambda: len(ledger.acknowledged) > 2, 60.0)
    assert moves.first == moves.second == [name] * len(moves.first) != []
    assert not replicas.partitions[name].replica.has_failed
    replicas.drop(name)
    assert roles.first == roles.second == [name]
    [bug, *_] = cluster.recording.bugs
    assert "a subscriber failed" in bug
    cluster.close()


def test_a_subscriber_hears_of_its_topic_only() -> None:
    lines = io.StringIO()
    subscribers = Subscribers(LogLines(1, lines))
    hearing = Hearing(subscribers)
    for topic in ("others", TOPIC):
        partition: Any = SimpleNamespace(name=TopicPartition(topic, 0))
        subscribers.notify(partition)
    assert hearing.first == hearing.second == [TopicPartition(TOPIC, 0)]
    assert lines.getvalue().count("a subscriber failed") == 1
