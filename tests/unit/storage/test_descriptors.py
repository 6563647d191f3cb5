"""Several log directories of one process share one budget of descriptors."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.storage import RealDisk

MOST = 256


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_descriptors")
@pytest.mark.parametrize("count", [1, 4])
def test_all_disks_together_use_an_eighth(tmp_path: Path, count: int) -> None:
    """Connections leave an eighth for files, for any number of log.dirs."""
    disks = []
    for number in range(count):
        (tmp_path / str(number)).mkdir()
        disks.append(RealDisk(tmp_path / str(number), sharers=count))
    files = []
    for name in range(MOST // 8):
        for disk in disks:
            file = disk.open(f"{name}", create=True)
            file.append([b"not flushed"])
            files.append(file)
    held = sum(1 for file in files if file._descriptor >= 0)
    assert held <= MOST // 8
    for file in files:
        assert file.read(0, 11) == b"not flushed"
        file.close()
