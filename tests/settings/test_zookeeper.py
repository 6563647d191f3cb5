"""The effects of the settings of ZooKeeper, with a real one."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from holdfast.cluster.processes.ports import HOST
from tests.settings.servers import UNSET, Servers
from tests.support.waiting import wait_until
from tests.support.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.slow


def test_zookeeper_session_timeout_ms(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    """zookeeper.connect instead of a file, and zookeeper.session.timeout.ms: three seconds at
    broker 2, the default of 18 at broker 3; both are stopped.
    """
    own = {
        "holdfast.store": UNSET,
        "zookeeper.connect": f"{zookeeper.connect_string}/settings",
    }
    servers = Servers(tmp_path, own, own | {"zookeeper.session.timeout.ms": "3000"}, own)
    try:
        servers.start(controller=1)
        assert not (tmp_path / "store.sqlite").exists()
        for number in (3, 2):
            servers[number].pause()

        def alive() -> set[int]:
            return {one.node_id for one in servers.metadata(servers[1]).brokers}

        wait_until(lambda: 2 not in alive(), "broker 2 is taken for dead")
        assert alive() == {1, 3}
    finally:
        servers.close()


def test_zookeeper_connection_timeout_ms(tmp_path: Path) -> None:
    """zookeeper.connection.timeout.ms: how long a start waits for an unresponsive ZooKeeper."""
    with socket.create_server((HOST, 0)) as silent:
        own = {
            "holdfast.store": UNSET,
            "zookeeper.connect": f"{HOST}:{silent.getsockname()[1]}",
            "zookeeper.connection.timeout.ms": "600000",
            "zookeeper.session.timeout.ms": "1000",
        }
        waits, gives_up = (
            Servers(tmp_path / name, own | {"zookeeper.connection.timeout.ms": timeout})[1]
            for name, timeout in (("waits", "600000"), ("gives-up", "300"))
        )
        try:
            waits.begin()
            gives_up.begin()
            wait_until(lambda: not gives_up.is_running, "one start has failed")
            assert "does not answer" in gives_up.said()
            assert waits.is_running
        finally:
            waits.close()
            gives_up.close()
