"""Simulated brokers with two log directories: a failed one takes its own partitions offline."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model import TopicPartition
from holdfast.simulation import run, simulate
from holdfast.simulation.disk.byte_disk import Fault
from holdfast.simulation.machine import LOG_DIRS, Machine
from holdfast.storage import LogDirectories, LogDirectory
from tests.simulation.test_simulation import Small

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
def test_a_failed_directory_takes_its_own_partitions_offline(small: Small, kind: str) -> None:
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


# Bugs that seeds find.


DISKS = {"faults": ("disk-error",), "fault_every_ms": 300, "duration_ms": 20_000}
WITHIN = 4
"""At least one of so many seeds must find the bug."""


def fails_all_directories(self: LogDirectories, directory: LogDirectory, error: OSError) -> None:
    """Any failure takes all partitions offline."""
    del directory
    for one in self.all.values():
        for log in one.logs.values():
            if log.offline is None:
                log.fail(error)
        self.on_offline(one, error)


def fails_no_partition(self: LogDirectories, directory: LogDirectory, error: OSError) -> None:
    """The directory has failed, but its logs stay online."""
    self.offline[self.path_of(directory)] = error


@pytest.mark.slow
def test_seeds_fail_one_directory_and_the_others_go_on() -> None:
    played = [simulate(seed, DISKS) for seed in range(WITHIN)]
    assert not [one.failures for one in played if one.failures]
    failed = [line for one in played for line in one.lines if "log directory failed" in line]
    assert any(f"directory={LOG_DIRS[1]} " in line for line in failed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failed", "finds"),
    [(fails_all_directories, "takes it offline in one"), (fails_no_partition, "commits")],
)
def test_seeds_find_a_directory_that_takes_too_much_or_nothing_offline(
    failed: Any, finds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogDirectories, "failed", failed)
    monkeypatch.setattr(run, "REST_S", 10.0)
    found = [one for seed in range(WITHIN) for one in simulate(seed, DISKS).failures]
    assert any(finds in one for one in found), found
