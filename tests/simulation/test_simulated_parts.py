"""Regression tests for the simulation itself: bugs that seeds found once and rarely find again."""

from __future__ import annotations

import asyncio
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.model import TopicPartition
from holdfast.simulation import SimulatedCluster
from holdfast.simulation.clients.connection import Client, Leader, RefusedError
from holdfast.simulation.clients.offset_committer import GROUPS
from holdfast.simulation.cluster import CLIENTS
from holdfast.simulation.machine import PORT
from holdfast.simulation.run import _Runner


def test_a_connection_reports_its_unsent_bytes() -> None:
    """A broker reads it when a client is slow."""
    cluster = SimulatedCluster(1, brokers=1)
    cluster.start("events", 1)

    async def connected() -> asyncio.Transport:
        transport, _ = await cluster.clients.create_connection(asyncio.Protocol, "b1", PORT)
        return transport

    transport = cluster.do(connected())
    cluster.network.disconnect(CLIENTS, "b1")
    transport.write(b"0123456789")
    cluster.timeline.run_for(1.0)
    assert transport.get_write_buffer_size() == 10
    cluster.close()


class _Metadata(Client):
    """A client that gets these responses, one after the other."""

    def __init__(self, leaders: list[Leader]) -> None:
        nobody: Any = None
        super().__init__(nobody, "client", {1: ("b1", PORT)}, Random(1))
        self._answers = leaders

    async def ask(self, *_: Any) -> Any:
        leader = self._answers.pop(0)
        found = SimpleNamespace(
            partition_index=0, leader_id=leader.broker, leader_epoch=leader.epoch
        )
        return SimpleNamespace(topics=[SimpleNamespace(error_code=0, partitions=[found])])


def test_a_client_does_not_go_back_to_a_leader_of_an_older_epoch() -> None:
    """As with real clients: a disconnected leader may have less than the client has read."""
    name = TopicPartition("events", 0)
    older, newer = Leader(1, 4), Leader(2, 5)

    async def ask() -> None:
        client = _Metadata([newer, older, newer])
        assert await client.leader(name) == newer
        client.forget_leader(name)
        with pytest.raises(RefusedError):
            await client.leader(name)
        assert await client.leader(name) == newer

    asyncio.run(ask())


def looked_at(returned: int, acknowledged: int, sent: int) -> list[str]:
    """The check's failures if one group's commit is acknowledged during its request."""
    group = GROUPS[0]
    committer: Any = SimpleNamespace(
        acknowledged=dict.fromkeys(GROUPS, 0),
        sent=dict.fromkeys(GROUPS, 0),
        committed=lambda group: group,
    )
    committer.acknowledged[group], committer.sent[group] = acknowledged, sent

    def do(asked: str) -> int:
        committer.acknowledged[group] = sent
        return returned if asked == group else 0

    runner: Any = SimpleNamespace(committer=committer, cluster=SimpleNamespace(do=do))
    return _Runner._look_at_commits(runner)


def test_a_commit_that_is_acknowledged_while_the_check_asks_is_not_lost() -> None:
    assert looked_at(returned=6, acknowledged=6, sent=7) == []
    assert looked_at(returned=7, acknowledged=6, sent=7) == []


def test_a_commit_that_was_acknowledged_before_is_lost() -> None:
    assert looked_at(returned=5, acknowledged=6, sent=7)
