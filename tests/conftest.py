"""Fixtures for all tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.support import hypothesis_profiles
from tests.support.zookeeper import ZooKeeperEnsemble, ZooKeeperServer, why_missing

hypothesis_profiles.load()
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job: what tests start would be deaf to Ctrl-C as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A running ZooKeeper, one a test run."""
    if reason := why_missing():
        pytest.skip(reason)
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def zookeeper_ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperEnsemble]:
    """Three running ZooKeeper servers, one ensemble a test run."""
    if reason := why_missing():
        pytest.skip(reason)
    ensemble = ZooKeeperEnsemble(tmp_path_factory.mktemp("ensemble"))
    try:
        ensemble.start()
        yield ensemble
    finally:
        ensemble.stop()
