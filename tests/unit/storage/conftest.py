"""Every test that asks for `disk` runs on the real and on the simulated one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.simulation.disk.byte_disk import ByteDisk
from holdfast.storage import Disk, RealDisk
from tests.support.disks import close_files


@pytest.fixture
def machine_disk(tmp_path: Path) -> Iterator[RealDisk]:
    """An empty disk of this machine; a test may leave files open on it."""
    disk = RealDisk(tmp_path)
    yield disk
    close_files(disk)


@pytest.fixture(params=["real", "simulated"])
def disk(request: pytest.FixtureRequest) -> Disk:
    """An empty disk."""
    if request.param == "simulated":
        return ByteDisk()
    real: RealDisk = request.getfixturevalue("machine_disk")
    return real
