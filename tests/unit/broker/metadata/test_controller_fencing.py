"""Commands of the controller, carried out as far as the store confirms them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.broker.controller import request_builders
from holdfast.broker.controller.broker_channel import Stop
from holdfast.broker.node import Broker
from holdfast.coordination import Node
from holdfast.model import ErrorCode, Offset, ProducerId, TopicPartition
from holdfast.protocol.codec.types import ZERO_UUID
from holdfast.protocol.messages.control import StopReplicaRequest
from holdfast.protocol.messages.topics import (
    DeleteTopicsRequest,
    DeleteTopicState,
)
from holdfast.protocol.records import BatchOptions, NewRecord, build_batch
from tests.support.waiting import eventually
from tests.unit.broker.three import Three, play

P = TopicPartition("events", 0)


def stop_of(three: Three, broker: Broker) -> StopReplicaRequest:
    """The request that the controller would send."""
    service = three.controller.controller
    assert service is not None
    return request_builders.stop_replica(
        service, broker.incarnation.broker_epoch, {P: Stop(-2, delete=True)}
    )


def roles_of(three: Three, broker: Broker) -> Any:
    service = three.controller.controller
    assert service is not None
    return request_builders.leader_and_isr(
        service, broker.incarnation.broker_epoch, {P: service.core.partitions[P]}
    )


def test_without_the_store_what_is_known_is_answered_and_nothing_is_removed(
    tmp_path: Path,
) -> None:
    async def scenario(three: Three) -> None:
        await three.create(P.topic)
        broker = three.other
        stop, roles = stop_of(three, broker), roles_of(three, broker)
        broker.store.disconnect()
        answer = await three.ask(broker, roles, request_builders.LEADER_AND_ISR_VERSION)
        assert [one.error_code for one in answer.topics[0].partition_errors] == [0]
        answer = await three.ask(broker, stop, request_builders.STOP_REPLICA_VERSION)
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT

        delete = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=P.topic, topic_id=ZERO_UUID)],
            topic_names=[],
            timeout_ms=100,
        )
        await three.ask(three.controller, delete)
        others = [one for one in three.brokers.values() if one is not broker]
        await eventually(lambda: not any(map(_has, others)), "the others have removed it")
        assert _has(broker), "the store could not say that the topic is gone"
        broker.store.reconnect()
        await eventually(lambda: not _has(broker), "the controller has asked again")

    play(tmp_path, scenario)


def test_many_forged_controller_epochs_cost_few_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands wait for each other: one read per command would delay the controller's own."""

    async def scenario(three: Three) -> None:
        await three.create(P.topic)
        broker = three.other
        reads: list[Sequence[str]] = []
        read = broker.store.get_newest

        async def noted(paths: Sequence[str]) -> list[Node | None]:
            reads.append(paths)
            return await read(paths)

        monkeypatch.setattr(broker.store, "get_newest", noted)
        forged = stop_of(three, broker)
        forged.controller_epoch = 1_000_000
        version = request_builders.STOP_REPLICA_VERSION
        answers = await asyncio.gather(*(three.ask(broker, forged, version) for _ in range(100)))
        codes = {one.error_code for one in answers}
        assert codes == {ErrorCode.STALE_CONTROLLER_EPOCH}
        assert len(reads) < 20, "a read answers for every command that came before it"
        answer = await three.ask(broker, forged, version)
        assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH

    play(tmp_path, scenario)


def _has(broker: Broker) -> bool:
    return P in broker.replicas.partitions or P in broker.directory.partitions


def test_a_log_that_cannot_be_used_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    async def scenario(three: Three) -> None:
        await three.create(P.topic)
        broker = three.other
        partition = broker.replicas.partitions.pop(P)
        logs = broker.directory.of(P).logs
        log = logs.pop(P)
        with pytest.raises(OSError, match="could not be opened"):
            broker.replicas.host(P, partition.topic_id)
        broker.replicas.partitions[P] = partition
        logs[P] = log

    play(tmp_path, scenario)


def test_a_log_that_returns_still_has_its_producers(tmp_path: Path) -> None:
    """A retry of a stored batch must not be written twice."""

    async def scenario(three: Three) -> None:
        await three.create(P.topic)
        broker = three.other
        partition = broker.replicas.partitions[P]
        options = BatchOptions(producer_id=7, producer_epoch=0, base_sequence=4)
        partition.log.append([build_batch([NewRecord(b"value")], options)], 0)
        broker.replicas.drop(P, delete=False)
        back = broker.replicas.host(P, partition.topic_id)
        assert back.replica.log.producers.last_sequence(ProducerId(7)) == 4

    play(tmp_path, scenario)


def test_records_of_an_unknown_topic_are_not_removed(tmp_path: Path) -> None:
    async def scenario(three: Three) -> None:
        await three.create(P.topic)
        broker = three.other
        partition = broker.replicas.partitions.pop(P)
        metadata = tmp_path / f"broker-{broker.id}" / str(P) / "partition.metadata"
        kept = metadata.read_bytes()
        metadata.unlink()
        partition.log.log_end_offset, end = Offset(1), partition.log.log_end_offset
        with pytest.raises(OSError, match="names their topic"):
            broker.replicas.host(P, partition.topic_id)
        assert P in broker.directory.partitions
        partition.log.log_end_offset = end
        metadata.write_bytes(kept)
        broker.replicas.partitions[P] = partition

    play(tmp_path, scenario)
