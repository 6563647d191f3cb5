"""One cluster for all tests of groups: they use their own topics and groups."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.brokers import Brokers


@pytest.fixture(scope="session")
def shared_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Three brokers that every test must leave as it found them."""
    # Leaders, and with them coordinators, move only when a test makes them.
    settings = {"auto.leader.rebalance.enable": "false"}
    cluster = Brokers(tmp_path_factory.mktemp("brokers"), settings)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def brokers(shared_brokers: Brokers) -> Iterator[Brokers]:
    """The same, all running."""
    yield shared_brokers
    for number in shared_brokers.ports:
        assert "Traceback" not in shared_brokers.log(number)
