"""A broker reads the settings again when they change, even while it reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from holdfast.broker.controller.config_changes import alter_broker_configs, alter_topic_configs
from holdfast.broker.node import Broker
from holdfast.broker.settings import Alteration, Operation
from holdfast.coordination import Node, paths
from holdfast.core import Replica
from holdfast.model import TopicPartition
from tests.support.waiting import eventually
from tests.unit.broker.three import Three, play


def test_a_change_during_a_read_is_read_as_well(tmp_path: Path) -> None:
    async def scenario(three: Three) -> None:
        await three.create("events")
        service, broker = three.controller.controller, three.other
        assert service is not None
        store, has_read, go_on = broker.store, asyncio.Event(), asyncio.Event()
        read = store.get_many

        async def slowly(paths: Sequence[str]) -> list[Node | None]:
            found = await read(paths)
            has_read.set()
            await go_on.wait()
            return found

        async def alter(value: str) -> None:
            asked = [Alteration("retention.ms", Operation.SET, value)]
            await alter_topic_configs(service, "events", lambda _: asked, validate_only=False)

        store.get_many = slowly  # type: ignore[method-assign]
        await alter("1000000")
        await has_read.wait()
        notified = asyncio.Event()
        watch = store.watch(paths.CONFIG_CHANGES, lambda _: notified.set())
        await alter("2000000")
        await notified.wait()
        watch.cancel()
        go_on.set()
        await eventually(
            lambda: broker.configs.topics["events"] == {"retention.ms": "2000000"}, "it is read"
        )

    play(tmp_path, scenario)


def test_a_higher_minimum_of_all_brokers_begins_with_the_leader_epoch(tmp_path: Path) -> None:
    """Even if the leader's watch is late: in the old epoch it commits by the lower minimum."""

    async def scenario(three: Three) -> None:
        await three.create("events", partitions=3)
        leaders = {one: _leader(three, one) for one in map(_partition, range(3))}
        for broker in three.brokers.values():
            broker._reload.close()  # Nothing is read because of the watch.
        service = three.controller.controller
        assert service is not None
        asked = [Alteration("min.insync.replicas", Operation.SET, "3")]
        await alter_broker_configs(service, "", lambda _: asked, validate_only=False)

        def replicas() -> list[Replica]:
            return [broker.replicas.partitions[one].replica for one, broker in leaders.items()]

        await eventually(lambda: all(one.leader_epoch == 1 for one in replicas()), "new epochs")
        assert [one.log.settings.min_insync_replicas for one in replicas()] == [3, 3, 3]

    play(tmp_path, scenario)


def _partition(number: int) -> TopicPartition:
    return TopicPartition("events", number)


def _leader(three: Three, partition: TopicPartition) -> Broker:
    hosts = three.brokers.values()
    return next(one for one in hosts if one.replicas.partitions[partition].presumes_leadership)
