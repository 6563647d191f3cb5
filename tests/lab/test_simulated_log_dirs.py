"""Simulated brokers with two log directories: one that fails takes its own partitions along."""

from __future__ import annotations

import pytest

from holdfast.lab.byte_disk import Fault
from holdfast.lab.simulation.machine import LOG_DIRS, Machine
from holdfast.model import TopicPartition
from tests.lab.test_simulation import Small

FAILS = ("create", "rename", "flush", "flush_directory")


@pytest.fixture
def small() -> Small:
    return Small(3, partitions=4)


def offline(machine: Machine) -> dict[TopicPartition, str]:
    """The partitions that have failed on this machine, and the directory of each."""
    assert machine.broker is not None
    directories = machine.broker.directory
    return {
        name: directories.path_of(directories.of(name))
        for name, partition in machine.broker.replicas.partitions.items()
        if partition.replica.has_failed
    }


@pytest.mark.parametrize("kind", FAILS)
def test_a_directory_that_fails_takes_its_own_partitions_along(small: Small, kind: str) -> None:
    small.read_more(20)
    machine = small.cluster.machines[1]
    assert machine.broker is not None
    where = machine.broker.directory.partitions
    lost = [one for one in where if machine.broker.directory.path_of(where[one]) == LOG_DIRS[1]]
    assert 0 < len(lost) < len(where)
    machine.disk.faults.append(Fault(kind, LOG_DIRS[1]))
    small.until(lambda: bool(machine.broker and machine.broker.directory.offline))
    assert sorted(offline(machine)) == sorted(lost)
    small.read_more(40)
    machine.kill()
    machine.disk.faults.clear()
    machine.start()
    small.until(lambda: machine.is_ready and not offline(machine))
    small.read_more(40)
    small.close()
