"""A client that asks the wrong broker gets an error, and since KIP-951 also the leader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.broker.node import Broker
from holdfast.model import ErrorCode
from holdfast.protocol import APIS
from holdfast.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
)
from holdfast.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from holdfast.protocol.records import NewRecord, build_batch
from tests.unit.broker.test_admin_apis import create, new_topic
from tests.unit.broker.three import Three, play

pytestmark = pytest.mark.slow

TOPIC = "events"


def produce(topic_id: bytes, version: int) -> ProduceRequest:
    batch = build_batch([NewRecord(b"value")])
    data = [PartitionProduceData(index=0, records=batch)]
    topic = (
        TopicProduceData(topic_id=topic_id, partition_data=data)
        if version >= 13
        else TopicProduceData(name=TOPIC, partition_data=data)
    )
    return ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[topic])


def fetch(topic_id: bytes, version: int) -> FetchRequest:
    asked = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    topic = (
        FetchTopic(topic_id=topic_id, partitions=asked)
        if version >= 13
        else FetchTopic(topic=TOPIC, partitions=asked)
    )
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic])


def named(answer: Any, response: Any) -> tuple[int, int] | None:
    """The leader in the response and its port, if there is one."""
    if answer.current_leader is None:
        assert not response.node_endpoints
        return None
    [endpoint] = response.node_endpoints
    assert endpoint.node_id == answer.current_leader.leader_id
    return endpoint.node_id, endpoint.port


def test_the_wrong_broker_answers_with_an_error_in_every_version(tmp_path: Path) -> None:
    async def scenario(three: Three) -> None:
        assert await create(three, new_topic(TOPIC, 1)) == [(TOPIC, 0)]
        leader, follower = apart(three)
        right = (leader.id, leader.endpoint.port)
        topic_id = follower.metadata.topics[TOPIC].id
        for version in APIS[0].advertised:
            if version >= 3:  # older ones are advertised and answered by an error (KIP-896)
                reply = await three.ask(follower, produce(topic_id, version), version)
                [answer] = reply.responses[0].partition_responses
                assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                assert named(answer, reply) == (right if version >= 10 else None)
        for version in APIS[1].advertised:
            reply = await three.ask(follower, fetch(topic_id, version), version)
            [answer] = reply.responses[0].partitions
            assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert named(answer, reply) == (right if version >= 16 else None)

    play(tmp_path, scenario)


def test_offsets_are_listed_in_every_version(tmp_path: Path) -> None:
    async def scenario(three: Three) -> None:
        assert await create(three, new_topic(TOPIC, 1)) == [(TOPIC, 0)]
        leader, _ = apart(three)
        for version in APIS[2].advertised:
            asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
            topics = [ListOffsetsTopic(name=TOPIC, partitions=[asked])]
            request = ListOffsetsRequest(replica_id=-1, topics=topics)
            reply = await three.ask(leader, request, version)
            [answer] = reply.topics[0].partitions
            assert (answer.error_code, answer.offset) == (0, 0)
            assert answer.leader_epoch == (0 if version >= 4 else -1)

    play(tmp_path, scenario)


def apart(three: Three) -> tuple[Broker, Broker]:
    """The leader, and another broker."""
    known = three.other.metadata.leader_of(TOPIC, 0)
    assert known is not None
    leader = three.brokers[known[0]]
    return leader, next(one for one in three.brokers.values() if one is not leader)
