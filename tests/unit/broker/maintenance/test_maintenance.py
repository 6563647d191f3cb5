"""Maintenance of a broker, while its partitions are created, deleted and truncated."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.broker.node import Broker
from holdfast.model import Offset
from tests.support.waiting import eventually
from tests.unit.broker.replication.test_slow_flushes import NAME, TOPIC, send
from tests.unit.broker.test_admin_apis import create, new_topic
from tests.unit.broker.three import Three, play

pytestmark = pytest.mark.slow

RARELY = {"log.cleaner.backoff.ms": "3600000"}
CONFIG = {
    "cleanup_policy": "compact",
    "segment_index_bytes": "8",
    "index_interval_bytes": "1",
    "min_cleanable_dirty_ratio": "0.01",
}


async def filled(three: Three, first: int, end: int) -> Broker:
    """A follower whose sealed segments are flushed and committed, so that they can be cleaned."""
    for number in range(first, end):
        await send(three, number)
    broker = next(
        one
        for one in three.brokers.values()
        if not one.replicas.partitions[NAME].presumes_leadership
    )
    partition = broker.replicas.partitions[NAME]
    await eventually(lambda: partition.log.recovery_point >= end - 5, "flushed")
    await eventually(lambda: partition.replica.log.high_watermark >= end - 5, "committed")
    return broker


async def cleaned(broker: Broker) -> None:
    await eventually(lambda: broker.maintenance._cleaner is None, "the cleaner has ended")


def test_a_truncated_or_deleted_log_keeps_nothing_of_a_cleaner_run(tmp_path: Path) -> None:
    async def scenario(three: Three) -> None:
        bugs: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: bugs.append(what))
        await create(three, new_topic(TOPIC, 1, **CONFIG))
        broker = await filled(three, 0, 20)
        offsets, partition = broker.directory.of(NAME).cleaner_offsets, None
        broker.maintenance._clean()
        await cleaned(broker)
        assert offsets[NAME] > 10
        assert await filled(three, 20, 40) is broker
        partition = broker.replicas.partitions[NAME]
        broker.replicas.fetchers.forget(partition)
        broker.maintenance._clean()
        assert broker.maintenance._cleaner is not None
        partition.run((partition.replica.log.truncate_to(Offset(5)),))  # type: ignore[arg-type]
        await cleaned(broker)
        assert offsets[NAME] <= 5, "records after the truncation are not clean"
        broker.replicas.fetchers.follow(partition)
        assert await filled(three, 40, 60) is broker
        broker.maintenance._clean()
        assert broker.maintenance._cleaner is not None
        broker.replicas.drop(NAME)
        await cleaned(broker)
        await asyncio.sleep(0)
        assert not bugs
        assert NAME not in offsets

    play(tmp_path, scenario, RARELY)
