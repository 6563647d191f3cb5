"""Copying from a leader: what goes wrong with one partition concerns that partition only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.broker.node import Broker
from holdfast.broker.partition import Partition
from holdfast.model import TopicPartition
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from holdfast.protocol.records import NewRecord, build_batch
from tests.support.waiting import eventually
from tests.unit.broker.test_admin_apis import create, new_topic
from tests.unit.broker.three import Three, play

pytestmark = pytest.mark.slow

TOPIC = "events"


async def send(three: Three, broker: Broker, index: int, acks: int) -> None:
    data = [PartitionProduceData(index=index, records=build_batch([NewRecord(b"value")]))]
    topic = TopicProduceData(name=TOPIC, partition_data=data)
    request = ProduceRequest(
        transactional_id=None, acks=acks, timeout_ms=30_000, topic_data=[topic]
    )
    told = await three.ask(broker, request, 12)
    assert told.responses[0].partition_responses[0].error_code == 0


def shared_leader(three: Three) -> tuple[Broker, int, int]:
    """A broker that leads two partitions, and those."""
    for broker in three.brokers.values():
        led = [
            name.partition
            for name, one in broker.replicas.partitions.items()
            if one.presumes_leadership
        ]
        if len(led) >= 2:
            return broker, led[0], led[1]
    raise AssertionError("six partitions on three brokers")


@pytest.mark.parametrize("place", ["append", "next_fetch"])
def test_a_partition_that_cannot_be_copied_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    async def story(three: Three) -> None:
        await create(three, new_topic(TOPIC, 6))
        leader, bad, good = shared_leader(three)
        follower = next(one for one in three.brokers.values() if one is not leader)
        copy: Partition = follower.replicas.partitions[TopicPartition(TOPIC, bad)]
        tries = 0

        def fail(*_: Any) -> None:
            nonlocal tries
            tries += 1
            raise RuntimeError("no such luck")

        with monkeypatch.context() as patch:
            if place == "append":
                patch.setattr(copy.log, "append", fail)
            else:
                patch.setattr(type(copy.replica), "next_fetch", failing_for(copy, fail))
            await send(three, leader, bad, acks=1)
            await eventually(lambda: tries > 2, "it is tried again")
            for _ in range(3):
                await send(three, leader, good, acks=-1)
            assert copy.copy_problem == "RuntimeError: no such luck"
        told = three.lines.getvalue()
        assert told.count("it is tried again") == 1, "reported once"
        await eventually(lambda: copy.log.log_end_offset == 1, "it is copied in the end")
        await eventually(lambda: not copy.copy_problem, "and no longer reported")
        three.lines.seek(0)
        three.lines.truncate()  # There was a traceback.

    play(tmp_path, story)


def failing_for(copy: Partition, fail: Any) -> Any:
    original = type(copy.replica).next_fetch

    def next_fetch(replica: Any) -> Any:
        return fail() if replica is copy.replica else original(replica)

    return next_fetch
