"""The group coordinator on the real partitions of simulated brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.broker.groups import GroupCoordinator
from holdfast.broker.metadata.topic_names import OFFSETS_TOPIC
from holdfast.broker.node import Broker
from holdfast.core.groups import AnswerCommit, Caller, Commit
from holdfast.model import CommittedOffset, ErrorCode, Offset, TopicPartition
from holdfast.simulation import SimulatedCluster

WHERE = TopicPartition("topic", 0)


class World:
    """One simulated broker that coordinates groups."""

    def __init__(self) -> None:
        self.cluster = SimulatedCluster(1, 1)
        self.cluster.start(OFFSETS_TOPIC, 1)

    @property
    def broker(self) -> Broker:
        [machine] = self.cluster.machines.values()
        assert machine.broker is not None
        return machine.broker

    @property
    def groups(self) -> GroupCoordinator:
        return self.broker.groups

    def commit(self, offset: int) -> ErrorCode:
        answers: list[AnswerCommit] = []
        request = Commit(Caller("g", ""), ((WHERE, CommittedOffset(Offset(offset))),))
        self.groups.ask(
            "g", lambda groups, now: groups.commit_offsets(request, answers.append, now)
        )
        assert self.cluster.timeline.run_until(lambda: bool(answers), 60.0)
        [(_, error)] = answers[0].results
        return error

    def fetch(self) -> int:
        fetched = self.groups.look("g").fetch_offsets("g").offsets
        return fetched[WHERE].offset if fetched else -1


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.cluster.close()
    assert not world.cluster.recording.bugs


def test_committed_offsets_are_loaded_after_a_restart(world: World) -> None:
    assert world.commit(5) is ErrorCode.NONE
    assert world.fetch() == 5
    [machine] = world.cluster.machines.values()
    machine.kill()
    machine.start()
    assert world.cluster.timeline.run_until(lambda: machine.is_ready, 60.0)
    assert world.cluster.timeline.run_until(lambda: world.fetch() == 5, 60.0)


def test_offsets_of_deleted_partitions_are_removed(world: World) -> None:
    assert world.commit(5) is ErrorCode.NONE
    world.groups.partitions_deleted([WHERE])
    assert world.cluster.timeline.run_until(lambda: world.fetch() == -1, 60.0)


def test_member_ids_are_unique_and_fit_the_wire(world: World) -> None:
    first, second = (world.groups.new_member_id("a") for _ in range(2))
    assert first != second
    assert first.startswith("a-")
    assert len(first) == len("a-") + 36
    assert len(world.groups.new_member_id("ä" * 32_767).encode()) <= 32_767
