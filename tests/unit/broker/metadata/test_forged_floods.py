"""Many forged commands: they cost few reads and delay no other command."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.broker.controller import request_builders
from holdfast.broker.node import Broker
from holdfast.coordination import Node
from holdfast.core import LOOK_PAUSE_MS
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol import Request
from holdfast.protocol.messages.control import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from tests.support.waiting import eventually
from tests.unit.broker.three import Three, play

REAL: Final = "events"
PARTITIONS: Final = 4
MANY: Final = 20_000
FEW_READS: Final = 5_000
MADE_UP_ID: Final = b"a stranger's id."


class Reads:
    """Counts the nodes that a broker reads in the store."""

    def __init__(self, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nodes = 0
        self.looks = 0
        self._read = broker.store.get_many
        monkeypatch.setattr(broker.store, "get_many", self._noted)

    async def _noted(self, paths: Sequence[str]) -> list[Node | None]:
        self.nodes += len(paths)
        self.looks += 1
        return await self._read(paths)


def role(index: int, epoch: int = 0) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        partition_index=index,
        controller_epoch=epoch,
        leader=1,
        leader_epoch=1_000,
        isr=(1,),
        partition_epoch=1_000,
        replicas=(1, 2, 3),
    )


def roles(three: Three, broker: Broker, topics: list[LeaderAndIsrTopicState]) -> Request:
    return LeaderAndIsrRequest(
        controller_id=three.controller.id,
        controller_epoch=broker.incarnation.controller.epoch,
        broker_epoch=broker.incarnation.broker_epoch,
        type=1,
        topic_states=topics,
        live_leaders=[],
    )


def real_id(broker: Broker) -> bytes:
    partition = broker.replicas.find(REAL, 0)
    assert partition is not None
    return partition.topic_id


def made_up_topics(three: Three, broker: Broker) -> tuple[Request, int]:
    topics = [
        LeaderAndIsrTopicState(
            topic_name=f"made-up-{number}", topic_id=MADE_UP_ID, partition_states=[role(0)]
        )
        for number in range(MANY)
    ]
    return roles(three, broker, topics), request_builders.LEADER_AND_ISR_VERSION


def made_up_partitions(three: Three, broker: Broker) -> tuple[Request, int]:
    topic = LeaderAndIsrTopicState(
        topic_name=REAL,
        topic_id=real_id(broker),
        partition_states=[role(number) for number in range(MANY)],
    )
    return roles(three, broker, [topic]), request_builders.LEADER_AND_ISR_VERSION


def made_up_metadata(three: Three, broker: Broker) -> tuple[Request, int]:
    def state(index: int) -> UpdateMetadataPartitionState:
        return UpdateMetadataPartitionState(
            partition_index=index,
            controller_epoch=0,
            leader=1,
            leader_epoch=1_000,
            isr=(1,),
            zk_version=1_000,
            replicas=(1, 2, 3),
        )

    topics = [
        UpdateMetadataTopicState(
            topic_name=f"made-up-{number}", topic_id=MADE_UP_ID, partition_states=[state(0)]
        )
        for number in range(MANY)
    ]
    request = UpdateMetadataRequest(
        controller_id=three.controller.id,
        type=1,
        controller_epoch=broker.incarnation.controller.epoch,
        broker_epoch=broker.incarnation.broker_epoch,
        topic_states=topics,
        live_brokers=[],
    )
    return request, request_builders.UPDATE_METADATA_VERSION


@pytest.mark.parametrize("forged", [made_up_topics, made_up_partitions, made_up_metadata])
def test_invented_partitions_cost_no_read_each(
    forged: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(three: Three) -> None:
        await three.create(REAL, PARTITIONS)
        broker = three.other
        request, version = forged(three, broker)
        reads = Reads(broker, monkeypatch)
        await three.ask(broker, request, version)
        assert reads.nodes < FEW_READS

    play(tmp_path, scenario)


def test_the_controllers_command_does_not_wait_for_forged_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten large commands wait when the real one arrives."""

    async def scenario(three: Three) -> None:
        await three.create(REAL, PARTITIONS)
        broker = three.other
        service = three.controller.controller
        assert service is not None
        name = TopicPartition(REAL, 0)
        real = request_builders.leader_and_isr(
            service, broker.incarnation.broker_epoch, {name: service.core.partitions[name]}
        )
        # Unknown to this broker, so that the store has to confirm it.
        request, version = made_up_partitions(three, broker)
        broker.replicas.drop(name)
        reads = Reads(broker, monkeypatch)
        forged = [asyncio.create_task(three.ask(broker, request, version)) for _ in range(10)]
        await eventually(lambda: reads.nodes > 0, "the broker looks up a made-up command")
        answer = await three.ask(broker, real, request_builders.LEADER_AND_ISR_VERSION)
        assert [one.error_code for one in answer.topics[0].partition_errors] == [0]
        assert name in broker.replicas.partitions
        assert reads.nodes < FEW_READS
        await asyncio.gather(*forged)

    play(tmp_path, scenario)


def test_endless_forged_commands_make_a_broker_read_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(three: Three) -> None:
        await three.create(REAL, PARTITIONS)
        broker = three.other
        one = LeaderAndIsrTopicState(
            topic_name="made-up", topic_id=MADE_UP_ID, partition_states=[role(0)]
        )
        later = roles(three, broker, [one])
        assert isinstance(later, LeaderAndIsrRequest)
        later.controller_epoch += 1
        reads = Reads(broker, monkeypatch)
        begun_ms = broker.clock.now_ms()
        for request in (roles(three, broker, [one]), later) * 6:
            answer = await three.ask(broker, request, request_builders.LEADER_AND_ISR_VERSION)
            codes = [code.error_code for topic in answer.topics for code in topic.partition_errors]
            refused = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], ErrorCode.STALE_CONTROLLER_EPOCH
            assert codes == refused[0] or answer.error_code == refused[1]
        lasted_ms = broker.clock.now_ms() - begun_ms
        # A timer may end a fraction of a millisecond early.
        assert (reads.looks - 1) * (LOOK_PAUSE_MS - 1) <= lasted_ms

    play(tmp_path, scenario)
