"""Every test of the store runs on each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.coordination.backends import (
    Backend,
    EmbeddedBackend,
    SimulatedBackend,
    ZooKeeperBackend,
)


@pytest.fixture(params=["embedded", "simulated", pytest.param("zookeeper", marks=pytest.mark.slow)])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """One of the three stores, empty."""
    match request.param:
        case "embedded":
            return EmbeddedBackend(tmp_path)
        case "simulated":
            return SimulatedBackend()
        case _:
            return ZooKeeperBackend(request.getfixturevalue("zookeeper"))
