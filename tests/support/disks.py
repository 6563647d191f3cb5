"""Disks of this machine, for tests that leave files open on them."""

from __future__ import annotations

from holdfast.storage import RealDisk


def close_files(disk: RealDisk) -> None:
    """Descriptors are counted (`tests/conftest.py`)."""
    for file in [*disk._open.values()]:
        file.close()
