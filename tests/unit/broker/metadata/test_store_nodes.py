"""The store's nodes: Kafka's JSON, read back unchanged, and damage reported by path."""

from __future__ import annotations

import json

import pytest

from holdfast.broker.metadata import store_nodes
from holdfast.broker.metadata.store_nodes import BrokerNode, DamagedNodeError, TopicNode
from holdfast.model import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionState,
    ReplicaBroker,
)

PATH = "/brokers/ids/3"
STATE = PartitionState(
    replicas=(BrokerId(1), BrokerId(2), BrokerId(3)),
    isr=(BrokerId(2),),
    leader=BrokerId(2),
    leader_epoch=LeaderEpoch(4),
    partition_epoch=PartitionEpoch(9),
    eligible_leaders=(BrokerId(1),),
    last_known_eligible=(BrokerId(3),),
    member_epochs=(
        ReplicaBroker(BrokerId(2), BrokerEpoch(7)),
        ReplicaBroker(BrokerId(1), BrokerEpoch(5)),
    ),
    adding=(BrokerId(3),),
    removing=(BrokerId(1),),
)


def test_a_partition_state_is_read_as_it_was_written() -> None:
    data = store_nodes.encode_state(STATE, ControllerEpoch(2))
    assert store_nodes.decode_state("/x", data) == STATE
    assert json.loads(data).items() >= {"leader": 2, "leader_epoch": 4, "version": 1}.items()


def test_a_broker_is_read_as_it_was_written() -> None:
    node = BrokerNode(BrokerId(3), "host", 9092, "rack-a", BrokerEpoch(11), "dir")
    data = store_nodes.encode_broker(node, 123)
    assert store_nodes.decode_broker(PATH, data) == node
    assert json.loads(data)["endpoints"] == ["PLAINTEXT://host:9092"]
    assert node.registration(BrokerEpoch(20)).intact_since == 11


def test_a_broker_without_a_past_is_intact_since_it_registered() -> None:
    node = BrokerNode(BrokerId(3), "host", 9092)
    assert node.registration(BrokerEpoch(20)).intact_since == 20


def test_a_topic_is_read_as_it_was_written() -> None:
    node = TopicNode(bytes(range(16)), {0: (BrokerId(1),), 10: (BrokerId(2),)}, {}, {})
    data = store_nodes.encode_topic(node)
    assert store_nodes.decode_topic("/t", data) == node
    assert json.loads(data)["topic_id"] == "AAECAwQFBgcICQoLDA0ODw"


def test_settings_controller_and_failures_are_read_as_they_were_written() -> None:
    assert store_nodes.decode_config("/c", store_nodes.encode_config({"a": "1"})) == {"a": "1"}
    assert store_nodes.decode_config("/c", b"") == {}
    assert store_nodes.decode_controller("/c", store_nodes.encode_controller(BrokerId(4), 1)) == 4
    epoch = store_nodes.encode_controller_epoch(ControllerEpoch(5))
    assert (epoch, store_nodes.decode_controller_epoch("/c", epoch)) == (b"5", 5)
    failures = store_nodes.ReplicaFailures(BrokerId(1), BrokerEpoch(8), (("t", 0), ("u", 1)))
    data = store_nodes.encode_replica_failures(failures)
    assert store_nodes.decode_replica_failures("/l", data) == failures


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"{}", b'{"host":1,"port":2}', b'{"host":"h","port":true}'],
)
def test_damage_names_the_node(data: bytes) -> None:
    with pytest.raises(DamagedNodeError, match=PATH):
        store_nodes.decode_broker(PATH, data)


@pytest.mark.parametrize(
    "change", [{"isr": [True]}, {"isr": "12"}, {"leader": None}, {"member_epochs": [[1]]}]
)
def test_a_damaged_state_names_the_node(change: dict[str, object]) -> None:
    fields = json.loads(store_nodes.encode_state(STATE, ControllerEpoch(2))) | change
    with pytest.raises(DamagedNodeError, match="/some/state"):
        store_nodes.decode_state("/some/state", json.dumps(fields).encode())


def test_a_damaged_topic_id_or_epoch_names_the_node() -> None:
    with pytest.raises(DamagedNodeError, match="/t"):
        store_nodes.decode_topic("/t", b'{"topic_id":"short","partitions":{}}')
    with pytest.raises(DamagedNodeError, match="/e"):
        store_nodes.decode_controller_epoch("/e", b"one")
    with pytest.raises(DamagedNodeError, match="/ids/x"):
        store_nodes.decode_broker("/ids/x", b'{"host":"h","port":1}')
