"""Runs every test of the store on each backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.coordination.backends import (
    Backend,
    EmbeddedBackend,
    SimulatedBackend,
    ZooKeeperBackend,
)

ZOOKEEPER = pytest.param("zookeeper", marks=pytest.mark.slow)


@pytest.fixture(params=["embedded", "simulated", ZOOKEEPER])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """One of the three stores, empty."""
    return make(request, tmp_path)


@pytest.fixture(params=["embedded", ZOOKEEPER])
def shared_backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """One of the two stores that several processes can share, empty."""
    return make(request, tmp_path)


def make(request: pytest.FixtureRequest, folder: Path) -> Backend:
    match request.param:
        case "embedded":
            return EmbeddedBackend(folder)
        case "simulated":
            return SimulatedBackend()
        case _:
            return ZooKeeperBackend(request.getfixturevalue("zookeeper"))
