"""Every test that asks for `disk` runs on the real and on the simulated one."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.lab.byte_disk import ByteDisk
from holdfast.storage import Disk, RealDisk


@pytest.fixture(params=["real", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    """An empty disk."""
    return RealDisk(tmp_path) if request.param == "real" else ByteDisk()
