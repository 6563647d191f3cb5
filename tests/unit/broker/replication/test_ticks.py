"""The partitions that a tick checks: those with work that may be due, and the others in turn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.broker.replication.append_cache import AppendCache, AppendCacheMemory
from holdfast.broker.replication.replicas import TICK_MS, ReplicaParts, Replicas
from holdfast.model import BrokerId, TopicPartition


class Still:
    """A partition that counts its checks."""

    def __init__(self, index: int) -> None:
        self.name = TopicPartition("t", index)
        self.tail = AppendCache(AppendCacheMemory())
        self.looks = 0
        self.replica = SimpleNamespace(
            log=SimpleNamespace(high_watermark=0), tick=self._tick, is_awaited=False
        )

    def _tick(self, _: int) -> tuple[()]:
        self.looks += 1
        return ()


def replicas_of(partitions: list[Still], lag_ms: int) -> Replicas:
    configs = SimpleNamespace(settings=SimpleNamespace(replica_lag_time_max_ms=lag_ms))
    loop = SimpleNamespace(call_soon=lambda *_: None)
    clock = SimpleNamespace(now_ms=lambda: 0, loop=loop)
    nothing: Any = None
    replicas = Replicas(
        ReplicaParts(
            broker=BrokerId(1),
            clock=cast("Any", clock),
            log=nothing,
            rng=nothing,
            trace=None,
            directory=nothing,
            configs=cast("Any", configs),
            fetchers=nothing,
            proposals=nothing,
            failures=nothing,
        )
    )
    replicas.partitions = {one.name: cast("Any", one) for one in partitions}
    return replicas


@pytest.mark.parametrize(("lag_ms", "ticks"), [(30_000, 8), (4_000, 2), (500, 1)])
def test_every_idle_partition_has_its_turn(lag_ms: int, ticks: int) -> None:
    partitions = [Still(index) for index in range(24)]
    replicas = replicas_of(partitions, lag_ms)
    assert ticks * TICK_MS <= max(TICK_MS, lag_ms // 8)
    for _ in range(ticks):
        replicas.tick()
    assert [one.looks for one in partitions] == [1] * 24


def test_a_partition_with_waiters_is_checked_in_every_tick() -> None:
    partitions = [Still(index) for index in range(24)]
    replicas = replicas_of(partitions, 30_000)
    busy = partitions[0]
    busy.replica.is_awaited = True
    replicas.await_tick(cast("Any", busy))
    for _ in range(8):
        replicas.tick()
    assert busy.looks == 8
    assert [one.looks for one in partitions[1:]] == [1] * 23


def test_a_removed_partition_is_not_checked() -> None:
    partitions = [Still(index) for index in range(2)]
    replicas = replicas_of(partitions, 500)
    replicas.await_tick(cast("Any", partitions[0]))
    del replicas.partitions[partitions[0].name]
    replicas.tick()
    assert [one.looks for one in partitions] == [0, 1]
