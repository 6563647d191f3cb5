"""A slow disk blocks threads, not the event loop that serves clients."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

import pytest

from holdfast.broker.replication.partition import Partition
from holdfast.model import EpochEntry, LeaderEpoch, TopicPartition
from holdfast.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from holdfast.protocol.records import NewRecord, build_batch
from holdfast.storage.checkpoints.checkpoint_file import read_epochs
from holdfast.storage.file_names import EPOCH_CHECKPOINT
from tests.support.waiting import eventually
from tests.unit.broker.test_admin_apis import create, new_topic
from tests.unit.broker.three import Three, play

pytestmark = pytest.mark.slow

TOPIC = "compacted"
NAME = TopicPartition(TOPIC, 0)
FLUSH_S = 0.02


class SlowFlushes:
    """Every flush takes a while; records those on the event loop's thread."""

    def __init__(self) -> None:
        self._flush = os.fsync
        self._loop_thread = threading.get_ident()
        self.delayed_s = 0.0
        self.on_loop: set[str] = set()
        self.elsewhere = 0

    def __call__(self, descriptor: int) -> None:
        threading.Event().wait(FLUSH_S)
        self._flush(descriptor)
        if threading.get_ident() != self._loop_thread:
            self.elsewhere += 1
            return
        called = set[str]()
        frame = sys._getframe(1)
        while frame.f_back is not None:
            called.add(frame.f_code.co_name)
            frame = frame.f_back
        self.delayed_s += FLUSH_S
        self.on_loop |= called


async def send(three: Three, number: int) -> None:
    batch = build_batch([NewRecord(b"value", b"%d" % (number % 3))])
    topic = TopicProduceData(
        name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=[topic])
    leader = next(one for one in three.brokers.values() if leads(one.replicas.partitions[NAME]))
    response = await three.ask(leader, request, 12)
    assert response.responses[0].partition_responses[0].error_code == 0


def leads(partition: Partition) -> bool:
    return partition.presumes_leadership


def test_rolls_and_the_cleaner_wait_on_other_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop itself never waits for the disk."""

    async def scenario(three: Three) -> None:
        config = {
            "cleanup_policy": "compact",
            "segment_index_bytes": "8",
            "index_interval_bytes": "1",
            "min_cleanable_dirty_ratio": "0.01",
        }
        await create(three, new_topic(TOPIC, 1, **config))
        await send(three, 0)  # The leader's epoch is written down by now.
        logs = [one.replicas.partitions[NAME].log for one in three.brokers.values()]
        await eventually(lambda: all(one.log_end_offset for one in logs), "all have the first")
        slow = SlowFlushes()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", slow)
            for number in range(1, 60):
                await send(three, number)
            await eventually(
                lambda: all(
                    one.directory.of(NAME).cleaner_offsets.get(NAME, 0) > 40
                    for one in three.brokers.values()
                ),
                "all brokers have cleaned",
            )
            await asyncio.sleep(0)
        assert slow.elsewhere > 60
        assert slow.delayed_s == 0.0, slow.on_loop

    play(tmp_path, scenario, {"log.cleaner.backoff.ms": "50"})


def test_retention_and_deleted_records_wait_on_other_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each log deletes a dozen segments, and the event loop waits for none of the flushes."""

    async def scenario(three: Three) -> None:
        await create(three, new_topic(TOPIC, 1, segment_index_bytes="8", index_interval_bytes="1"))
        for number in range(40):
            await send(three, number)
        partitions = [one.replicas.partitions[NAME] for one in three.brokers.values()]
        await eventually(
            lambda: all(one.replica.log.high_watermark == 40 for one in partitions), "committed"
        )
        slow = SlowFlushes()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", slow)
            leader = next(
                one for one in three.brokers.values() if leads(one.replicas.partitions[NAME])
            )
            asked = DeleteRecordsTopic(
                name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=30)]
            )
            response = await three.ask(
                leader, DeleteRecordsRequest(topics=[asked], timeout_ms=30_000)
            )
            assert response.topics[0].partitions[0].low_watermark == 30
            await eventually(
                lambda: all(one.log.segments[0].base_offset == 30 for one in partitions),
                "the segments of the deleted records are gone",
            )
            await asyncio.sleep(0)
        assert slow.elsewhere > 0
        assert slow.delayed_s == 0.0, slow.on_loop
        assert [one.log.log_start_offset for one in partitions] == [30] * 3

    settings = {
        "log.retention.check.interval.ms": "50",
        "replica.high.watermark.checkpoint.interval.ms": "50",
    }
    play(tmp_path, scenario, settings)


def test_a_new_leader_epoch_is_written_on_other_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch of an epoch is acknowledged, and the event loop waits for no epoch file."""

    async def scenario(three: Three) -> None:
        await create(three, new_topic(TOPIC, 1))
        await send(three, 0)
        partitions = [one.replicas.partitions[NAME] for one in three.brokers.values()]
        await eventually(lambda: all(one.log.log_end_offset for one in partitions), "copied")
        slow = SlowFlushes()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", slow)
            for broker, one in zip(three.brokers.values(), partitions, strict=True):
                assert one.state is not None
                epoch = LeaderEpoch(one.state.leader_epoch + 1)
                one.apply(one.state._replace(leader_epoch=epoch))
                broker.replicas.fetchers.follow(one)
            await send(three, 1)
            await eventually(
                lambda: all(
                    [1, 0] == [entry.start_offset for entry in reversed(written(one))]
                    for one in partitions
                ),
                "the epoch is in every checkpoint",
            )
            await asyncio.sleep(0)
        assert slow.delayed_s == 0.0, slow.on_loop
        assert slow.elsewhere > 0

    play(tmp_path, scenario)


def written(partition: Partition) -> list[EpochEntry]:
    log = partition.log
    return read_epochs(log.disk, f"{log.directory}/{EPOCH_CHECKPOINT}") or []
