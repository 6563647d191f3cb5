"""Fixtures for all tests."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import hypothesis_profiles
from tests.support.distributing import distribute
from tests.support.zookeeper import ZooKeeperEnsemble, ZooKeeperServer, why_missing

hypothesis_profiles.load()
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job: what tests start would be deaf to Ctrl-C as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_GRACE_S = 120.0
OPEN_FILES = Path("/dev/fd")
LEFT_OPEN = 32
"""What is begun once a process: a Java for Spark, a ZooKeeper, event loops."""
_stderr = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    # Not captured yet; while a test runs, descriptor 2 is a file that nobody reads.
    config.stash[_stderr] = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    distribute(items)


def _end_this_worker_after(seconds: float, item: pytest.Item) -> None:
    """Where nothing else can: the stacks go to stderr, xdist names the test and goes on.

    pytest-timeout's signal waits for a call into C to return, and is spent once it has come.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=item.config.stash[_stderr])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    mark = item.get_closest_marker("timeout")
    limit = mark.args[0] if mark else float(item.config.getini("timeout"))
    _end_this_worker_after(limit + _GRACE_S, item)
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    _end_this_worker_after(_GRACE_S, item)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name it immediately: the end of the run, where all are named, may not come."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        os.write(2, f"\nfailed: {report.nodeid}\n".encode())


@pytest.fixture(autouse=True, scope="module")
def descriptors() -> Iterator[None]:
    """No file of tests leaves many open: with 1,024, py4j waits for its callbacks in vain."""
    before = len(list(OPEN_FILES.iterdir()))
    yield
    gc.collect()
    left = len(list(OPEN_FILES.iterdir())) - before
    assert left <= LEFT_OPEN, f"{left} files or sockets were opened and not closed"


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
