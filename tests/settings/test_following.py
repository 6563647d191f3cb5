"""The effects of the settings of followers, and of requests to other brokers.

Broker 1 leads and is the controller. The requests of brokers 2 and 3 to it go through a proxy,
which sees and can block each request.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.cluster.processes.ports import HOST
from holdfast.model import ErrorCode
from holdfast.protocol import Request, encode_request
from holdfast.protocol.messages.fetch import FetchRequest
from holdfast.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
)
from tests.settings.proxy import Proxy
from tests.settings.servers import PATIENCE_S, Server, Servers, is_readable, record
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

ODD = {
    "replica.fetch.wait.max.ms": "300",
    "replica.fetch.min.bytes": "2",
    "replica.fetch.max.bytes": "5000",
    "replica.fetch.response.max.bytes": "20000",
    "replica.fetch.backoff.ms": "20",
    "replica.socket.timeout.ms": "500",
    "request.timeout.ms": "500",
    "socket.connection.setup.timeout.ms": "100",
}
SYN_SENT = "02"
SECOND, THIRD = "holdfast-broker-2", "holdfast-broker-3"


class Seen(NamedTuple):
    """A cluster, and the proxy that observes it."""

    servers: Servers
    proxy: Proxy


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    patient = {"replica.fetch.backoff.ms": "600000"}
    servers = Servers(tmp_path_factory.mktemp("following"), {}, ODD, patient)
    proxy = Proxy(servers[1].port)
    servers[1].settings["advertised.listeners"] = f"PLAINTEXT://{HOST}:{proxy.port}"
    try:
        servers.start(controller=1)
        yield Seen(servers, proxy)
    finally:
        servers.close()
        proxy.close()


def is_fetch(_client: str, request: Request) -> bool:
    return isinstance(request, FetchRequest)


def test_fetch_requests(seen: Seen) -> None:
    """replica.fetch.wait.max.ms, replica.fetch.min.bytes, replica.fetch.max.bytes and
    replica.fetch.response.max.bytes are in a follower's requests; broker 3 has the defaults.
    """
    seen.servers.topic(1, 2, 3)

    def shapes(client: str) -> set[tuple[int, ...]]:
        return {
            (one.max_wait_ms, one.min_bytes, one.max_bytes, place.partition_max_bytes)
            for one in seen.proxy.requests(client, FetchRequest)
            if isinstance(one, FetchRequest)
            for topic in one.topics
            for place in topic.partitions
        }

    wait_until(lambda: bool(shapes(SECOND) and shapes(THIRD)), "both followers fetch")
    assert shapes(SECOND) == {(300, 2, 20_000, 5_000)}
    assert shapes(THIRD) == {(500, 1, 10_485_760, 1_048_576)}


def test_replica_fetch_backoff_ms(seen: Seen) -> None:
    """replica.fetch.backoff.ms: how long a follower waits at most after failed fetches."""
    seen.servers.topic(1, 2, 3)
    seen.proxy.interfere(hangs_up=is_fetch)
    try:
        wait_until(lambda: len(seen.proxy.requests(SECOND, FetchRequest)) > 30, "30 attempts")
        # Growing pauses, from 10 ms: the fifteenth attempt follows after minutes.
        assert 0 < len(seen.proxy.requests(THIRD, FetchRequest)) < 15
    finally:
        seen.proxy.interfere()


def test_replica_socket_timeout_ms(seen: Seen) -> None:
    """replica.socket.timeout.ms: a follower repeats its request after half a second."""
    seen.servers.topic(1, 2, 3)
    seen.proxy.interfere(swallows=is_fetch)
    try:
        wait_until(lambda: len(seen.proxy.requests(SECOND, FetchRequest)) > 4, "it asks again")
        assert len(seen.proxy.requests(THIRD, FetchRequest)) <= 2
    finally:
        seen.proxy.interfere()


def test_request_timeout_ms(seen: Seen) -> None:
    """request.timeout.ms: how long broker 2 waits for the controller, on behalf of a client."""
    topic = CreatableTopic(
        name="never", num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
    parts = encode_request(request, 7, correlation_id=1, client_id="admin")
    seen.proxy.interfere(swallows=lambda _, asked: isinstance(asked, CreateTopicsRequest))
    try:
        with connected(seen.servers[3]) as waiting, connected(seen.servers[2]) as answered:
            for connection in (waiting, answered):
                connection.sendall(b"".join(parts))
            assert answered.recv(4, socket.MSG_WAITALL)
            assert seen.proxy.requests(THIRD, CreateTopicsRequest)
            assert not is_readable(waiting)
    finally:
        seen.proxy.interfere()


def connected(server: Server) -> socket.socket:
    return socket.create_connection((HOST, server.port), PATIENCE_S)


def test_socket_connection_setup_timeout_ms(seen: Seen) -> None:
    """socket.connection.setup.timeout.ms: how long one attempt to connect may take."""
    topic = seen.servers.topic(1, 2, 3)
    assert seen.servers[1].send(topic, [record()]).error is ErrorCode.NONE
    seen.proxy.black_hole()
    second: set[str] = set()
    third: set[str] = set()

    def look() -> bool:
        second.update(connecting(seen.servers[2], seen.proxy.port))
        third.update(connecting(seen.servers[3], seen.proxy.port))
        return len(second) > 6 and bool(third)

    try:
        wait_until(look, "broker 2 tries again and again, and broker 3 tries")
        assert len(third) <= 3, "one attempt each for what it wants of broker 1"
    finally:
        seen.proxy.serve()


def connecting(server: Server, port: int) -> set[str]:
    """The sockets with which a broker is connecting to a port."""
    folder = Path(f"/proc/{server.process.id.pid}")
    waiting = {
        fields[9]
        for fields in map(str.split, (folder / "net" / "tcp").read_text().splitlines()[1:])
        if fields[3] == SYN_SENT and int(fields[2].split(":")[1], 16) == port
    }
    own = set()
    for path in (folder / "fd").iterdir():
        with suppress(FileNotFoundError):
            own.add(path.readlink().name)
    return {inode for inode in waiting if f"socket:[{inode}]" in own}
