"""Replication from a leader: a failure of one partition affects that partition only."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.broker.node import Broker
from holdfast.broker.replication.partition import Partition
from holdfast.broker.settings.topic_settings import ThrottledReplicas
from holdfast.core import LogState, Replica
from holdfast.model import ErrorCode, TopicPartition
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
    response = await three.ask(broker, request, 12)
    assert response.responses[0].partition_responses[0].error_code == 0


def shared_leader(three: Three) -> tuple[Broker, int, int]:
    """A broker that leads two partitions, and these partitions."""
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
def test_a_partition_that_cannot_be_copied_is_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    async def scenario(three: Three) -> None:
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
                broken = failing_for(copy.replica, "next_fetch", fail)
                patch.setattr(Replica, "next_fetch", broken)
            await send(three, leader, bad, acks=1)
            await eventually(lambda: tries > 2, "it is tried again")
            for _ in range(3):
                await send(three, leader, good, acks=-1)
            assert copy.copy_problem == "RuntimeError: no such luck"
        lines = three.lines.getvalue()
        assert lines.count("it is tried again") == 1, "reported once"
        await eventually(lambda: copy.log.log_end_offset == 1, "it is copied in the end")
        await eventually(lambda: not copy.copy_problem, "and no longer reported")
        three.lines.seek(0)
        three.lines.truncate()  # There was a traceback.

    play(tmp_path, scenario)


@pytest.mark.parametrize("why", ["flush", "command"])
def test_a_throttled_partition_stays_paused(tmp_path: Path, why: str) -> None:
    """The end of a flush, or a repeated command, does not make it fetch earlier."""

    async def scenario(three: Three) -> None:
        await create(three, new_topic(TOPIC, 1))
        name = TopicPartition(TOPIC, 0)
        leader = next(
            one
            for one in three.brokers.values()
            if one.replicas.partitions[name].presumes_leadership
        )
        follower = next(one for one in three.brokers.values() if one is not leader)
        copy = follower.replicas.partitions[name]
        await eventually(lambda: copy.state is not None, "it knows its role")
        assert copy.state is not None
        copy.state = copy.state._replace(isr=(leader.id,))
        copy.settings = copy.settings._replace(follower_throttled=ThrottledReplicas(("*",)))
        quota = follower.follower_quota
        quota._rate = lambda: 1
        await send(three, leader, 0, acks=1)
        await eventually(lambda: copy.log.log_end_offset == 1, "the quota is overdrawn once")
        await send(three, leader, 0, acks=1)
        for _ in range(20):
            if why == "flush":
                follower.replicas.flush_all()
            else:
                follower.replicas.fetchers.follow(copy)
            await asyncio.sleep(0.01)
        assert copy.log.log_end_offset == 1
        quota._rate = lambda: 1 << 30
        await eventually(lambda: copy.log.log_end_offset == 2, "it goes on without the throttle")

    play(tmp_path, scenario)


def test_a_copy_that_the_core_does_not_know_of_takes_the_replica_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug after the write: log and core differ until the broker restarts."""

    async def scenario(three: Three) -> None:
        await create(three, new_topic(TOPIC, 6))
        leader, bad, good = shared_leader(three)
        follower = next(one for one in three.brokers.values() if one is not leader)
        name = TopicPartition(TOPIC, bad)
        copy = follower.replicas.partitions[name]

        def fail() -> None:
            raise RuntimeError("no such luck")

        with monkeypatch.context() as patch:
            patch.setattr(LogState, "copied", failing_for(copy.replica.log, "copied", fail))
            await send(three, leader, bad, acks=1)
            await eventually(lambda: copy.replica.has_failed, "it is offline")
        assert copy.log.offline is not None
        await eventually(
            lambda: follower.id not in isr_at(leader, name), "the controller knows that it failed"
        )
        await send(three, leader, good, acks=-1)
        three.lines.seek(0)
        three.lines.truncate()  # There was a traceback.
        await follower.stop()
        again = (await three.start(int(follower.id))).replicas
        await eventually(
            lambda: name in again.partitions and again.partitions[name].log.log_end_offset == 1,
            "it is hosted again",
        )
        await eventually(lambda: follower.id in isr_at(leader, name), "it is in sync again")

    play(tmp_path, scenario)


def test_a_bug_in_one_write_leaves_the_others_of_the_tick_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(three: Three) -> None:
        await create(three, new_topic(TOPIC, 6))
        leader, bad, good = shared_leader(three)

        def fail(*_: Any) -> None:
            raise RuntimeError("no such luck")

        monkeypatch.setattr(
            leader.replicas.partitions[TopicPartition(TOPIC, bad)].log, "append", fail
        )
        batch = build_batch([NewRecord(b"value")])
        data = [PartitionProduceData(index=one, records=bytes(batch)) for one in (bad, good)]
        request = ProduceRequest(
            transactional_id=None,
            acks=1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=TOPIC, partition_data=data)],
        )
        async with asyncio.timeout(60):
            answer = await three.ask(leader, request, 12)
        codes = [one.error_code for one in answer.responses[0].partition_responses]
        assert codes == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
        three.lines.seek(0)
        three.lines.truncate()  # There was a traceback.

    play(tmp_path, scenario)


def isr_at(leader: Broker, name: TopicPartition) -> tuple[int, ...]:
    state = leader.replicas.partitions[name].state
    assert state is not None
    return state.isr


def failing_for(broken: object, method: str, fail: Any) -> Any:
    """A method that fails for one object."""
    original = getattr(type(broken), method)

    def called(self: Any, *arguments: Any) -> Any:
        return fail() if self is broken else original(self, *arguments)

    return called
