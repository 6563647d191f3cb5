"""The effect of the setting of a broker's metrics."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from holdfast.cluster.processes.ports import HOST
from tests.settings.servers import Servers
from tests.support.metrics import Scraped
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

LISTENER = "holdfast.metrics.listener"


def test_the_listener(tmp_path: Path) -> None:
    """holdfast.metrics.listener at broker 1, none at broker 2."""
    servers = Servers(tmp_path, {"holdfast.metrics.listener": f"{HOST}:0"}, {})
    try:
        servers.start()
        addresses = [servers[number].status()["metrics"] for number in (1, 2)]
        assert addresses[1] is None
        assert Scraped(addresses[0]).value("kafka_server_kafkaserver_brokerstate") == 3
        servers[1].stop()
        host, _, port = addresses[0].rpartition(":")
        with socket.socket() as connection:
            assert connection.connect_ex((host, int(port))) != 0
    finally:
        servers.close()


def test_a_listener_that_is_impossible_is_refused(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        address = f"{HOST}:{taken.getsockname()[1]}"
        server = Servers(tmp_path, {LISTENER: address})[1]
        try:
            server.begin()
            wait_until(lambda: not server.is_running, "it does not start", 60)
            assert f"change {LISTENER}" in server.said()
        finally:
            server.close()
