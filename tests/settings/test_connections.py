"""The effects of the settings of connections and requests: only broker 1 has them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.cluster.processes.ports import HOST
from holdfast.model import ErrorCode
from holdfast.protocol import encode_request
from holdfast.protocol.messages.api_versions import ApiVersionsRequest
from holdfast.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from holdfast.protocol.records import build_batch
from tests.hostile.town import is_answered, is_hung_up
from tests.settings.servers import BROKER, BY_NAME, PATIENCE_S, Server, Servers, is_readable, record
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

KIB = 1 << 10
LIMIT = 1_200_000
"""Above message.max.bytes, as it must be."""
ODD = {
    "socket.request.max.bytes": str(LIMIT),
    "queued.max.request.bytes": str(LIMIT),
    "socket.send.buffer.bytes": "8192",
    "socket.listen.backlog.size": "5",
    "max.incremental.fetch.session.cache.slots": "0",
    "fetch.max.bytes": "1024",
}
NARROW = {"socket.receive.buffer.bytes": "8192", "connections.max.idle.ms": "1000"}
LARGE = [record(bytes(900 * KIB))]


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Brokers 1 and 4 have the settings, broker 2 the defaults; tests pause broker 3."""
    patient = {"broker.session.timeout.ms": "600000"}
    each = [patient | more for more in (ODD, {}, {}, NARROW)]
    servers = Servers(tmp_path_factory.mktemp("connections"), *each)
    try:
        servers.start(controller=2)
        yield servers
    finally:
        servers.close()


@contextmanager
def connected(server: Server, *, receive_bytes: int = 0) -> Iterator[socket.socket]:
    with socket.socket() as connection:
        if receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.settimeout(PATIENCE_S)
        connection.connect((HOST, server.port))
        yield connection


def test_socket_request_max_bytes(four: Servers) -> None:
    """socket.request.max.bytes: a client that claims more is disconnected."""
    claim = (LIMIT + 1).to_bytes(4, "big")
    with connected(four[1]) as odd, connected(four[2]) as other:
        for connection in (other, odd):
            connection.sendall(claim + bytes(1000))
        assert is_hung_up(odd)
        assert not is_readable(other)
    assert f"{LIMIT + 1}" in four[1].said()


def test_socket_receive_buffer_bytes(four: Servers) -> None:
    """socket.receive.buffer.bytes: how much the system accepts for a stopped broker."""
    taken = []
    for server in (four[4], four[2]):
        with connected(server) as connection:
            assert is_answered(connection)
            server.pause()
            connection.setblocking(False)
            with suppress(BlockingIOError):
                for _ in range(16_000):
                    connection.send(bytes(4 * KIB))
            taken.append(queued(server, connection).received)
        server.resume()
    assert 0 < 3 * taken[0] < 2 * taken[1], taken


class Queued(NamedTuple):
    """Bytes in the system's queues at the broker's end of a connection."""

    unsent: int
    received: int


def queued(server: Server, connection: socket.socket) -> Queued:
    """From /proc/net/tcp."""
    ends = (server.port, connection.getsockname()[1])
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if tuple(int(fields[at].split(":")[1], 16) for at in (1, 2)) == ends:
            return Queued(*(int(part, 16) for part in fields[4].split(":")))
    return Queued(0, 0)


def test_socket_send_buffer_bytes(four: Servers) -> None:
    """socket.send.buffer.bytes: how much of an answer waits in the system for a slow reader."""
    waiting = []
    for server in (four[2], four[1]):
        topic = four.topic(server.number)
        assert server.send(topic, LARGE).error is ErrorCode.NONE
        asked = fetch_of(topic, 0)
        parts = encode_request(asked, BY_NAME, correlation_id=1, client_id="slow")
        with connected(server, receive_bytes=4 * KIB) as connection:
            connection.sendall(b"".join(parts))
            wait_until(lambda: is_readable(connection), "the answer begins")
            least = 100 * KIB if server is four[2] else 1
            wait_until(lambda: queued(server, connection).unsent >= least, "it waits")  # noqa: B023
            waiting.append(queued(server, connection).unsent)
    assert waiting[1] < 64 * KIB


def test_socket_listen_backlog_size(four: Servers) -> None:
    """socket.listen.backlog.size: connections that wait for a stopped broker."""
    waiting = []
    for server in (four[1], four[2]):
        server.pause()
        with ExitStack() as stack:
            crowd = [stack.enter_context(socket.socket()) for _ in range(30)]
            for one in crowd:
                one.setblocking(False)
                one.connect_ex((HOST, server.port))
            waiting.append(sum(map(is_connected, crowd)))
        server.resume()
    assert waiting[0] <= 7
    assert waiting[1] == 30


def is_connected(connection: socket.socket) -> bool:
    try:
        connection.getpeername()
    except OSError:
        return False
    return True


def test_connections_max_idle_ms(four: Servers) -> None:
    """connections.max.idle.ms: ten minutes by default."""
    with connected(four[2]) as other, connected(four[4]) as odd:
        assert is_answered(other)
        assert is_answered(odd)
        assert is_hung_up(odd)
        assert is_answered(other)


def test_queued_max_request_bytes(four: Servers) -> None:
    """queued.max.request.bytes: with too much in progress the broker stops reading."""
    topics = [four.topic(number, 3) for number in (1, 2)]
    four[3].pause()  # A request that waits for replication is in progress.
    try:
        with ExitStack() as stack:
            held, free = (
                busy(stack, server, topic)
                for server, topic in zip((four[1], four[2]), topics, strict=True)
            )
            assert not is_readable(held)
            assert free.recv(4, socket.MSG_WAITALL)
            four[3].resume()
            assert held.recv(4, socket.MSG_WAITALL)
    finally:
        four[3].resume()


def busy(stack: ExitStack, server: Server, topic: str) -> socket.socket:
    """A connection that has sent a request to a broker with much in progress."""
    for number in range(2):
        data = PartitionProduceData(index=0, records=build_batch(LARGE))
        response = TopicProduceData(name=topic, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[response])
        parts = encode_request(request, BY_NAME, correlation_id=number, client_id="many")
        stack.enter_context(connected(server)).sendall(b"".join(parts))
    wait_until(lambda: server.replica(topic)["leo"] == 2, "both are under way")
    connection = stack.enter_context(connected(server))
    assert is_answered(connection)  # The broker reads from it once, and then stops reading.
    request_bytes = encode_request(ApiVersionsRequest(), 0, correlation_id=9, client_id="one")
    connection.sendall(b"".join(request_bytes))
    for _ in range(3):
        with connected(server) as another:
            assert is_answered(another)
    return connection


def fetch_of(topic: str, *partitions: int) -> FetchRequest:
    """A request for all records, in a new fetch session."""
    asked = [
        FetchPartition(partition=one, fetch_offset=0, partition_max_bytes=1 << 20)
        for one in partitions
    ]
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 30,
        session_epoch=0,
        topics=[FetchTopic(topic=topic, partitions=asked)],
    )


def test_fetch_max_bytes(four: Servers) -> None:
    """fetch.max.bytes: beyond it only one batch, whatever a consumer asks for."""
    filled = []
    for server in (four[1], four[2]):
        topic = four.topic(server.number, partitions=2)
        for partition in (0, 1):
            server.send(topic, [record(bytes(2 * KIB))], partition=partition)
        answer = server.ask(fetch_of(topic, 0, 1), FetchResponse, BY_NAME)
        response = answer.responses[0].partitions
        filled.append(sum(1 for one in response if one.records))
    assert filled == [1, 2]


def test_max_incremental_fetch_session_cache_slots(four: Servers) -> None:
    """max.incremental.fetch.session.cache.slots=0: no client gets a fetch session."""
    sessions = []
    for server in (four[1], four[2]):
        topic = four.topic(server.number)
        answer = server.ask(fetch_of(topic, 0), FetchResponse, BY_NAME)
        sessions.append(answer.session_id)
    assert sessions[0] == 0
    assert sessions[1] != 0


# Limits that can change at run time.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max.connections", "1"),
        ("max.connections.per.ip", "1"),
        ("max.connections.per.ip.overrides", f"{HOST}:1"),
    ],
)
def test_max_connections(pair: Servers, name: str, value: str) -> None:
    """The broker whose limit was changed refuses the second connection."""

    def are_served(server: Server) -> bool:
        with ExitStack() as stack:
            both = [stack.enter_context(connected(server)) for _ in range(2)]
            return [is_answered(one) for one in both] == [True, True]

    assert are_served(pair[1])
    try:
        pair.alter(BROKER, "1", name, value)
        wait_until(lambda: not are_served(pair[1]), "a connection is refused")
        assert are_served(pair[2])
        assert f"limit={name.removesuffix('.overrides')}\n" in pair[1].said()
    finally:
        pair.alter(BROKER, "1", name, None)
    wait_until(lambda: are_served(pair[1]), "the limit is gone")
