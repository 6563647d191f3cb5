"""Many logs created together are as safe as logs created one by one."""

from __future__ import annotations

import uuid

import pytest

from holdfast.model import TopicPartition
from holdfast.simulation.disk.byte_disk import ByteDisk, Fault, Step
from holdfast.storage import Disk, LogDirectory
from tests.support.crash_states import Bound, crash_states
from tests.unit.storage.support import SMALL, fill, open_all

WANTED = {TopicPartition("a", number): uuid.UUID(int=number + 7) for number in range(4)}


def opened(disk: Disk) -> LogDirectory:
    return LogDirectory(disk, lambda partition: SMALL)


def test_new_logs_exist_with_their_ids(disk: Disk) -> None:
    directory = opened(disk)
    directory.create_all(WANTED)
    for partition, topic_id in WANTED.items():
        assert directory.topic_id(partition) == topic_id
        fill(directory.log(partition), 3)
        assert directory.log(partition).log_end_offset == 3


def test_no_crash_loses_a_created_log_or_prevents_another_attempt() -> None:
    disk = ByteDisk()
    directory = opened(disk)
    crashes = 0

    def crash(step: Step | None) -> None:
        nonlocal crashes
        for state in crash_states(disk, step, Bound(states=6, tear_points=1, seed=disk.steps)):
            crashes += 1
            again = opened(state.disk)
            for partition in tuple(again.partitions):
                again.delete(partition, uuid.uuid4(), 0)
            again.create_all(WANTED)
            assert {one: again.topic_id(one) for one in WANTED} == WANTED, state.what

    disk.on_step = crash
    directory.create_all(WANTED)
    disk.on_step = None
    assert crashes > 50
    for state in crash_states(disk, None, Bound()):
        after = opened(state.disk)
        assert not open_all(after), state.what
        assert {one: after.topic_id(one) for one in after.partitions} == WANTED, state.what


def test_logs_that_cannot_be_created_together_can_be_created_alone() -> None:
    disk = ByteDisk()
    directory = opened(disk)
    disk.faults.append(Fault("flush_directory", "a-2"))
    with pytest.raises(OSError, match="simulated"):
        directory.create_all(WANTED)
    disk.faults.clear()
    for partition, topic_id in WANTED.items():
        fill(directory.create(partition, topic_id), 2)
        assert directory.log(partition).log_end_offset == 2
