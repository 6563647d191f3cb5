"""A coordinator shard loads, writes, takes each write's result and expires, on real partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from holdfast.broker.coordinator import CoordinatorShards
from holdfast.broker.replication.partition import Partition
from holdfast.core.coordinator import MAY_STILL_COMMIT, Persist, Phase
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.coordinator_records import Skipped
from holdfast.protocol.records import batches, read_records
from holdfast.simulation import SimulatedCluster
from holdfast.simulation.clients.offset_committer import Committer
from holdfast.simulation.machine import Machine
from holdfast.simulation.traffic_pace import Pace
from tests.unit.broker.coordinator.counters import (
    EXPIRY_MS,
    TOPIC,
    Answer,
    Counters,
    Record,
    coordinator_on,
    decode,
)

KEY = "visitors"
NAME = TopicPartition(TOPIC, 0)


class World:
    """Three simulated brokers that coordinate counters."""

    def __init__(self) -> None:
        self.cluster = SimulatedCluster(1, 3)
        self.cluster.start(TOPIC, 1)
        self.coordinators: dict[int, CoordinatorShards[Counters]] = {}
        for number, machine in self.cluster.machines.items():
            assert machine.broker is not None
            self.coordinators[number] = coordinator_on(machine.broker)

    def until(self, is_done: Callable[[], bool]) -> None:
        assert self.cluster.timeline.run_until(is_done, 120.0), self.cluster.recording.lines

    @property
    def leader(self) -> int:
        state = self.cluster.state(NAME)
        assert state is not None
        return state.leader

    @property
    def isr(self) -> tuple[int, ...]:
        """The ISR that the leader knows."""
        state = self.partition.state
        assert state is not None
        return state.isr

    @property
    def followers(self) -> list[Machine]:
        return [one for number, one in self.cluster.machines.items() if number != self.leader]

    @property
    def coordinator(self) -> CoordinatorShards[Counters]:
        return self.coordinators[self.leader]

    @property
    def partition(self) -> Partition:
        return self.partition_on(self.leader)

    def partition_on(self, number: int) -> Partition:
        broker = self.cluster.machines[number].broker
        assert broker is not None
        return broker.replicas.partitions[NAME]

    def add(self) -> list[Answer]:
        """Count one more; the list gets the answer."""
        answers: list[Answer] = []
        self.coordinator.ask(KEY, lambda counters, now: counters.add(KEY, answers.append, now))
        return answers

    def added(self) -> Answer:
        answers = self.add()
        self.until(lambda: bool(answers))
        [answer] = answers
        return answer

    def value(self) -> int | None:
        """What the leader shows."""
        return self.coordinator.look(KEY).values.get(KEY)

    def is_active(self) -> bool:
        machine = self.cluster.machines[self.leader]
        return machine.is_up and self.coordinator.look(KEY).phase is Phase.ACTIVE

    def pause(self, machines: Sequence[Machine]) -> None:
        for machine in machines:
            machine.pause()

    def resume(self) -> None:
        for machine in self.cluster.machines.values():
            machine.resume()
        self.until(lambda: self.cluster.is_whole((NAME,)))

    def change_leader(self) -> None:
        """Another broker leads, and the old leader follows it."""
        before = self.leader
        self.cluster.machines[before].pause()
        self.until(lambda: self.leader != before and self.is_active())
        self.resume()

    def records(self) -> list[Record]:
        partition = self.partition
        data = partition.read(0, 1 << 20, partition.log.log_end_offset)
        read = [record for batch in batches(data) for record in read_records(batch)]
        decoded = [decode(record.key, record.value) for record in read]
        return [record for record in decoded if not isinstance(record, Skipped)]

    def has_logged(self, event: str) -> bool:
        return any(event in line for line in self.cluster.recording.lines)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.cluster.timeline.run_for(1.0)  # Results that arrive after the test's last step.
    world.cluster.close()
    assert not world.cluster.recording.bugs


def test_a_write_is_answered_and_seen_when_the_in_sync_replicas_have_it(world: World) -> None:
    world.pause(world.followers)
    answers = world.add()
    world.cluster.timeline.run_for(0.5)
    assert (answers, world.value()) == ([], None)
    assert world.records() == [(KEY, 1)]
    world.resume()
    world.until(lambda: bool(answers))
    assert [(one.error, one.value) for one in answers] == [(ErrorCode.NONE, 1)]
    assert world.value() == 1


def test_a_write_that_timed_out_counts_when_the_high_watermark_passes_it(world: World) -> None:
    world.pause(world.followers)
    assert world.added().error in MAY_STILL_COMMIT
    assert world.value() is None
    world.resume()
    assert world.value() == 1


def test_a_refused_write_changes_nothing(world: World) -> None:
    world.pause(world.followers)
    world.until(lambda: world.isr == (world.leader,))
    assert world.added().error is ErrorCode.NOT_ENOUGH_REPLICAS
    world.resume()
    assert (world.value(), world.added().value) == (None, 1)


def test_the_next_leader_loads_what_was_answered(world: World) -> None:
    before = world.leader
    assert [world.added().value for _ in range(3)] == [1, 2, 3]
    world.cluster.machines[before].kill()
    world.until(lambda: world.leader != before and world.is_active())
    assert world.value() == 3
    assert world.added().value == 4
    assert world.has_logged("counters loaded")


def test_a_new_leader_answers_only_when_what_it_loaded_is_committed(world: World) -> None:
    before, [paused, successor] = world.leader, world.followers
    assert world.added().value == 1
    assert world.partition_on(successor.number).replica.log.high_watermark == 0
    paused.pause()
    world.cluster.machines[before].kill()
    world.until(lambda: world.leader == successor.number)
    world.until(lambda: world.partition.presumes_leadership)
    world.cluster.timeline.run_for(1.0)
    assert world.added().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    paused.resume()
    world.until(world.is_active)
    assert world.value() == 1


def test_waiters_get_an_error_when_another_broker_leads(world: World) -> None:
    before = world.cluster.machines[world.leader]
    for follower in world.followers:
        world.cluster.network.disconnect(follower.host, before.host)
        world.cluster.network.disconnect(before.host, follower.host)
    answers = world.add()
    world.until(lambda: world.partition.log.log_end_offset == 1)
    before.pause()
    world.until(lambda: world.leader != before.number and world.is_active())
    assert not answers
    world.cluster.network.clear_faults()
    before.resume()
    world.until(lambda: bool(answers))
    assert [one.error for one in answers] == [ErrorCode.NOT_COORDINATOR]
    assert world.coordinators[before.number].look(KEY).phase is Phase.GONE
    assert world.value() is None


def test_a_stopped_coordinator_answers_its_waiters(world: World) -> None:
    answers = world.add()
    world.coordinator.stop()
    assert [one.error for one in answers] == [ErrorCode.NOT_COORDINATOR]
    world.until(lambda: world.partition.replica.log.high_watermark == 1)
    assert len(answers) == 1


def test_a_shard_is_replaced_only_in_a_new_leader_epoch(world: World) -> None:
    first, leader = world.coordinator.look(KEY), world.leader
    world.coordinator.role_changed(world.partition)
    assert world.coordinator.look(KEY) is first
    world.change_leader()
    assert world.leader != leader
    assert first.phase is Phase.GONE


def test_what_is_due_expires_by_the_clock_of_the_loop(world: World) -> None:
    assert world.added().value == 1
    world.cluster.timeline.run_for(EXPIRY_MS / 1000 - 1)
    assert world.value() == 1
    world.until(lambda: world.value() is None)
    assert world.records() == [(KEY, 1), (KEY, None)]


def test_a_record_that_cannot_be_used_is_left_out_and_reported(world: World) -> None:
    assert world.added().value == 1
    world.coordinator.ask(KEY, lambda *_: [Persist(0, ((KEY, -1),))])
    world.until(lambda: world.partition.replica.log.high_watermark == 2)
    world.change_leader()
    assert world.value() == 1
    assert world.has_logged("records of counters left out")


def test_every_broker_knows_the_coordinator_and_the_others_refuse(world: World) -> None:
    for number, coordinator in world.coordinators.items():
        known = coordinator.coordinator_of(KEY)
        assert known is not None
        assert known.id == world.leader
        is_leader = number == world.leader
        assert coordinator.look(KEY).phase is (Phase.ACTIVE if is_leader else Phase.GONE)
        assert len(list(coordinator.states())) == is_leader


def test_coordinators_of_two_topics_work_beside_each_other(world: World) -> None:
    committer = Committer(world.cluster.client("committer"), NAME)
    world.cluster.spawn(committer.run(Pace(1, world.cluster.timeline.now_s, 60.0)))
    assert world.added().value == 1
    world.until(lambda: all(committer.acknowledged.values()))
    assert world.added().value == 2
