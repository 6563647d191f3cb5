"""A disk that fails on command, and a log on it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.broker.faults.faulty_disk import FULL, IO_ERROR, DiskFault, FaultyDisk
from tests.support.disks import close_files


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FaultyDisk]:
    disk = FaultyDisk(tmp_path)
    for partition in ("t-0", "t-1"):
        disk.create_directory(partition)
        disk.open(f"{partition}/log", create=True).append([b"there"])
    yield disk
    close_files(disk)


def test_a_full_disk_takes_nothing_and_gives_everything(disk: FaultyDisk) -> None:
    file = disk.open("t-0/log")
    disk.fail(DiskFault(FULL))
    with pytest.raises(OSError, match="on purpose") as caught:
        file.append([b"more"])
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="on purpose"):
        disk.open("t-0/new", create=True)
    assert file.read(0, 5) == b"there"
    file.truncate(2)
    file.flush()
    disk.rename("t-0/log", "t-0/log.deleted")
    disk.remove("t-0/log.deleted")


def test_a_failing_disk_fails_at_everything(disk: FaultyDisk) -> None:
    file = disk.open("t-0/log")
    disk.fail(DiskFault(IO_ERROR))
    for call in (
        lambda: file.append([b"more"]),
        lambda: file.read(0, 1),
        lambda: file.truncate(1),
        file.flush,
        file.descriptor,
        lambda: disk.open("t-0/log"),
        lambda: disk.rename("t-0/log", "t-0/other"),
        lambda: disk.remove("t-0/log"),
        lambda: disk.create_directory("t-2"),
        lambda: disk.remove_directory("t-1"),
        lambda: disk.flush_directory("t-0"),
    ):
        with pytest.raises(OSError, match="on purpose") as caught:
            call()
        assert caught.value.errno == errno.EIO


def test_a_fault_may_be_one_partition_s(disk: FaultyDisk) -> None:
    disk.fail(DiskFault(IO_ERROR, "t-0"))
    disk.open("t-1/log").append([b"more"])
    with pytest.raises(OSError, match="on purpose"):
        disk.open("t-0/log")


def test_a_neighbour_with_a_longer_name_is_left_alone(disk: FaultyDisk) -> None:
    disk.fail(DiskFault(IO_ERROR, "t-1"))
    disk.create_directory("t-10")


def test_a_repaired_disk_works_as_before(disk: FaultyDisk) -> None:
    file = disk.open("t-0/log")
    disk.fail(DiskFault(FULL))
    disk.fail(DiskFault(IO_ERROR, "t-0"))
    disk.clear_faults()
    file.append([b"more"])
    assert file.read(0, 9) == b"theremore"
