"""Commands that wait at the same time: none uses a state that another of its round has changed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.broker.controller import request_builders
from holdfast.broker.metadata import controller_fencing
from holdfast.broker.metadata.controller_fencing import Commands
from holdfast.broker.node import Broker
from holdfast.model import TopicPartition
from holdfast.protocol.codec.types import ZERO_UUID
from holdfast.protocol.messages.control import (
    StopReplicaRequest,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from holdfast.protocol.messages.topics import (
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.support.waiting import eventually
from tests.unit.broker.three import Three, play

NAME = TopicPartition("events", 0)


async def create(three: Three) -> None:
    await three.create("events")
    await eventually(
        lambda: all(
            one.metadata.partition("events", 0) is not None for one in three.brokers.values()
        ),
        "every broker knows the partition",
    )


def waiting(broker: Broker, kind: type | None = None) -> int:
    commands = [one.command for one in broker.commands._waiting]
    return sum(kind is None or isinstance(one, kind) for one in commands)


def test_an_old_command_does_not_restore_a_replica_that_its_round_has_stopped(
    tmp_path: Path,
) -> None:
    async def scenario(three: Three) -> None:
        await create(three)
        broker = three.other
        service = three.controller.controller
        assert service is not None
        epoch = broker.incarnation.broker_epoch
        state = service.core.partitions[NAME]
        old = request_builders.leader_and_isr(service, epoch, {NAME: state})
        topic = DeleteTopicState(name="events", topic_id=ZERO_UUID)
        async with broker.commands._turn:
            request = DeleteTopicsRequest(topics=[topic], topic_names=[], timeout_ms=60_000)
            deleting = asyncio.create_task(three.ask(three.controller, request))
            await eventually(lambda: waiting(broker, StopReplicaRequest) == 1, "StopReplica waits")
            before = waiting(broker)
            version = request_builders.LEADER_AND_ISR_VERSION
            asking = asyncio.create_task(three.ask(broker, old, version))
            await eventually(lambda: waiting(broker) > before, "LeaderAndIsr waits")
        await asyncio.gather(deleting, asking)
        await eventually(lambda: not broker.commands._waiting, "all are answered")
        assert NAME not in broker.replicas.partitions

    play(tmp_path, scenario)


def test_an_older_update_does_not_replace_a_newer_one_of_its_round(tmp_path: Path) -> None:
    async def scenario(three: Three) -> None:
        await create(three)
        broker = three.other
        partition = broker.replicas.partitions[NAME]
        service = three.controller.controller
        assert service is not None
        hold_back(service.channels[broker.id])
        # The store and the controller get a newer state, which this broker does not have yet.
        stopped = next(
            one for one in three.brokers.values() if one not in (three.controller, broker)
        )
        del three.brokers[stopped.id]
        was = service.core.partitions[NAME]
        await stopped.stop()
        await eventually(lambda: service.core.partitions[NAME] != was, "the ISR has shrunk")
        newest = service.core.partitions[NAME]
        # Its own role is newer than its metadata: as if an UpdateMetadata had been lost.
        broker.metadata.topics["events"].partitions.pop(0)
        async with broker.commands._turn:
            version = request_builders.UPDATE_METADATA_VERSION
            asking = []
            for state in (newest, partition.state):
                before = waiting(broker)
                request = update(three, broker, partition.topic_id, state)
                asking.append(asyncio.create_task(three.ask(broker, request, version)))
                await eventually(lambda: waiting(broker) > before, "it waits")  # noqa: B023
        await asyncio.gather(*asking)
        known = broker.metadata.partition("events", 0)
        assert known is not None
        assert known.age == (newest.leader_epoch, newest.partition_epoch)

    play(tmp_path, scenario)


def hold_back(channel: Any) -> None:
    """The controller's requests to one broker are lost from now on."""
    channel._send = lambda *_: None


def update(three: Three, broker: Broker, topic_id: bytes, state: Any) -> UpdateMetadataRequest:
    service = three.controller.controller
    assert service is not None
    whole = request_builders.update_metadata(
        service, broker.incarnation.broker_epoch, [], [], is_whole=False
    )
    named = UpdateMetadataPartitionState(
        partition_index=0,
        controller_epoch=service.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        zk_version=state.partition_epoch,
        replicas=state.replicas,
    )
    topic = UpdateMetadataTopicState(
        topic_name="events", topic_id=topic_id, partition_states=[named]
    )
    whole.topic_states = [topic]
    return whole


def test_a_client_with_many_commands_delays_no_other_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection has one command in a round, and a round has few commands."""
    monkeypatch.setattr(controller_fencing, "MOST_COMMANDS", 2)
    taken: list[list[Any]] = []
    chosen = Commands._next_ones

    def noted(self: Commands) -> list[Any]:
        some = chosen(self)
        taken.append([one.connection for one in some])
        return some

    async def scenario(three: Three) -> None:
        await create(three)
        broker = three.other
        service = three.controller.controller
        assert service is not None
        epoch = broker.incarnation.broker_epoch
        old = request_builders.leader_and_isr(service, epoch, {NAME: service.core.partitions[NAME]})
        version = request_builders.LEADER_AND_ISR_VERSION
        async with broker.commands._turn:
            asking = [asyncio.create_task(three.ask(broker, old, version)) for _ in range(5)]
            await eventually(lambda: waiting(broker) == 5, "all wait")
            monkeypatch.setattr(Commands, "_next_ones", noted)
        await asyncio.gather(*asking)
        assert [len(some) for some in taken[:3]] == [2, 2, 1]
        assert len({one for some in taken[:3] for one in some}) == 5

    play(tmp_path, scenario)
