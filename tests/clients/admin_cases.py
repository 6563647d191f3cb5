"""The checklist, second part: topics, settings and replica placement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.clients.client import Client, RefusedError
from tests.clients.world import World
from tests.support.waiting import wait_until

Case = Callable[[Client, World], None]


def create_and_delete_topic(client: Client, world: World) -> None:
    topic = world.name("made")
    client.create_topic(topic, 4, 3, {"retention.ms": "3600000", "cleanup.policy": "compact"})
    world.wait_partitions(topic, 4)
    assert all(len(one.replicas) == 3 for one in world.partitions(topic).values())
    world.send_values(topic, 3, [])
    client.delete_topic(topic)
    wait_until(lambda: world.partitions(topic) == {}, f"{topic} is gone")
    wait_until(lambda: not world.has_log(1, topic, 0), "its logs are gone")


def refuse_topics(client: Client, world: World) -> None:
    """Kafka's own error for each mistake."""
    topic = world.topic("there")
    for expected, call in (
        ("TOPIC_ALREADY_EXISTS", lambda: client.create_topic(topic, 1, 1, {})),
        ("INVALID_REPLICATION_FACTOR", lambda: client.create_topic(topic + "x", 1, 4, {})),
        ("INVALID_CONFIG", lambda: client.create_topic(topic + "x", 1, 1, {"retention.ms": "x"})),
        ("INVALID_TOPIC_EXCEPTION", lambda: client.create_topic("a/b", 1, 1, {})),
        ("UNKNOWN_TOPIC_OR_PARTITION", lambda: client.delete_topic("never-was")),
    ):
        assert refusal(call) == expected


def refusal(call: Callable[[], Any]) -> str:
    """The error in a broker's answer."""
    with pytest.raises(RefusedError) as caught:
        call()
    return caught.value.error


def create_partitions(client: Client, world: World) -> None:
    topic = world.topic("growing", 2)
    world.send_values(topic, 1, [b"kept"])
    client.create_partitions(topic, 5)
    world.wait_partitions(topic, 5)
    world.send_values(topic, 4, [b"new"])
    assert world.kept_by_all(topic, 4, 1).records[0].value == b"new"
    assert world.kept_by_all(topic, 1, 1).records[0].value == b"kept"
    assert refusal(lambda: client.create_partitions(topic, 3)) == "INVALID_PARTITIONS"


def topic_configs(client: Client, world: World) -> None:
    """A setting is set, described and effective; earlier ones stay."""
    topic = world.topic("configured", configs={"retention.ms": "7200000"})
    before = client.topic_configs(topic)
    assert before["retention.ms"] == "7200000"
    client.alter_topic_configs(topic, {"max.message.bytes": "2000", "retention.ms": "7200000"})
    wait_until(
        lambda: client.topic_configs(topic).get("max.message.bytes") == "2000", "the change is seen"
    )
    assert client.topic_configs(topic)["retention.ms"] == "7200000"
    assert refusal(lambda: client.alter_topic_configs(topic, {"retention.ms": "soon"})) == (
        "INVALID_CONFIG"
    )


def drop_topic_configs(client: Client, world: World) -> None:
    """Incremental changes: one setting is deleted, the others stay."""
    topic = world.topic("dropping", configs={"retention.ms": "1", "segment.bytes": "2000000"})
    client.alter_topic_configs(topic, {"max.message.bytes": "3000"}, ["retention.ms"])
    wanted = {"max.message.bytes": "3000", "segment.bytes": "2000000"}

    def is_as_wanted() -> bool:
        seen = client.topic_configs(topic)
        return wanted.items() <= seen.items() and seen.get("retention.ms") != "1"

    wait_until(is_as_wanted, "the change is seen")


def delete_records(client: Client, world: World) -> None:
    topic = world.topic("deleting")
    world.send_values(topic, 0, [b"%d" % number for number in range(10)])
    client.delete_records(topic, 0, 6)
    assert client.offsets(topic, 0) == (6, 10)
    assert [one.value for one in client.consume(topic, 0, 6, 4)] == [b"6", b"7", b"8", b"9"]
    assert refusal(lambda: client.delete_records(topic, 0, 11)) == "OFFSET_OUT_OF_RANGE"


def describe_cluster(client: Client, world: World) -> None:
    seen = client.cluster()
    assert dict(seen.brokers) == world.ports
    assert seen.controller is None or seen.controller in world.ports
    assert seen.cluster_id is None or len(seen.cluster_id) == 22


def describe_log_dirs(client: Client, world: World) -> None:
    """Sizes of all replicas, to the byte."""
    topic = world.topic("sized", 2)
    world.send_values(topic, 1, [b"x" * 1000] * 5)
    size = sum(header.size for header in world.kept_by_all(topic, 1, 5).headers)
    sizes = {(broker, one): size * one for broker in world.ports for one in (0, 1)}
    wait_until(lambda: client.log_sizes(topic) == sizes, "every broker has its replicas")


def elect_leaders(client: Client, world: World) -> None:
    """The preferred leader is elected where another one led."""
    topic = world.topic("electing", assignment={0: [1, 2, 3]})
    world.reassign(topic, 0, [2, 1, 3])
    assert world.partitions(topic)[0].leader == 1
    client.elect(topic, 0)
    wait_until(lambda: world.partitions(topic)[0].leader == 2, "broker 2 leads")
    assert refusal(lambda: client.elect(topic, 0)) == "ELECTION_NOT_NEEDED"
    assert refusal(lambda: client.elect("never-was", 0)) == "UNKNOWN_TOPIC_OR_PARTITION"


def reassign_partitions(client: Client, world: World) -> None:
    """A replica is copied to its new broker and removed from the old one."""
    topic = world.topic("moving", assignment={0: [1, 2]})
    values = [b"%d" % number for number in range(50)]
    world.send_values(topic, 0, values)
    client.reassign(topic, 0, [3, 1])
    world.wait_replicas(topic, 0, [3, 1])
    wait_until(lambda: not world.has_log(2, topic, 0), "broker 2 has dropped its copy")
    assert [one.value for one in world.kept(3, topic, 0).records] == values
    assert refusal(lambda: client.reassign(topic, 0, [1, 9])) == "INVALID_REPLICA_ASSIGNMENT"


CASES: dict[str, Case] = {
    "create_and_delete_topic": create_and_delete_topic,
    "refuse_topics": refuse_topics,
    "create_partitions": create_partitions,
    "topic_configs": topic_configs,
    "drop_topic_configs": drop_topic_configs,
    "delete_records": delete_records,
    "describe_cluster": describe_cluster,
    "describe_log_dirs": describe_log_dirs,
    "elect_leaders": elect_leaders,
    "reassign_partitions": reassign_partitions,
}
