"""Connections that send nothing, send half a frame, or never read: other clients do not notice."""

from __future__ import annotations

import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

import pytest

from holdfast.cluster import Cluster
from holdfast.cluster.client.admin import create_topic
from holdfast.protocol import APIS, decode_response
from holdfast.protocol.messages.api_versions import ApiVersionsRequest
from holdfast.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from holdfast.protocol.messages.metadata import MetadataRequest
from tests.hostile.town import DEADLINE_S, KEPT, MIB, Town, is_answered, is_hung_up, wire
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

FETCH_VERSION: Final = 12
LARGE: Final = "large"
LARGE_MIB: Final = 12
QUEUE: Final = 40
"""Connections that the system queues for the broker; its backlog is 50."""
CLAIM: Final = struct.pack(">i", 100_000_000)
EVERYTHING: Final = 2**31 - 1


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    with Cluster(brokers=1) as cluster:
        cluster.create_topic(LARGE)
        for _ in range(LARGE_MIB):
            cluster.produce(LARGE, [bytes(MIB - 200)])
        yield Town(cluster)


@contextmanager
def opened(town: Town, count: int) -> Iterator[list[socket.socket]]:
    """Open so many connections; afterwards the broker has closed all of them."""
    before = town.sockets()
    with ExitStack() as stack:
        connections: list[socket.socket] = []
        for number in range(1, count + 1):
            connections.append(stack.enter_context(town.connect()))
            if number % QUEUE == 0:
                # Then all before it are accepted. A full queue would cost a second of waiting.
                is_answered(connections[-1])
        yield connections
    wait_until(lambda: town.sockets() <= before, "all connections are gone")


def fetch(
    number: int = 1,
    *,
    wait_ms: int = 0,
    offset: int = 0,
    topic: str = LARGE,
    min_bytes: int = 1,
) -> bytes:
    """A request for all records in one answer."""
    asked = FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=EVERYTHING, log_start_offset=-1
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=EVERYTHING,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )
    return wire(request, FETCH_VERSION, number)


def answers(connection: socket.socket, count: int) -> list[tuple[int, int]]:
    """Number and bytes of records in so many answers to `fetch`."""
    found: list[tuple[int, int]] = []
    with connection.makefile("rb") as stream:
        for _ in range(count):
            size = int.from_bytes(stream.read(4), "big")
            header, answer = decode_response(stream.read(size), APIS[1], FETCH_VERSION)
            assert isinstance(answer, FetchResponse)
            [data] = answer.responses[0].partitions
            found.append((header.correlation_id, len(data.records or b"")))
    return found


def test_half_open_connections_end_when_they_are_idle_for_long() -> None:
    request = wire(ApiVersionsRequest(), 0)
    idle = (
        b"",  # not a byte
        request[:2],  # half a length
        CLAIM,
        request[:-1],
        request + request[:9],
        fetch(wait_ms=EVERYTHING, topic=KEPT, offset=1),  # an answer to wait for
    )
    with Cluster(brokers=1, config={"connections.max.idle.ms": "1000"}) as cluster:
        town = Town(cluster)
        with opened(town, len(idle)) as connections, town.connect() as busy:
            for connection, stream in zip(connections, idle, strict=True):
                connection.sendall(stream)
                connection.setblocking(False)
            left = list(connections)

            def all_ended() -> bool:
                assert is_answered(busy), "who speaks stays"
                left[:] = [one for one in left if not _has_ended(one)]
                return not left

            wait_until(all_ended, "all are hung up on")
        town.check()


def _has_ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(65536) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_connections_that_break_in_the_middle_leave_nothing(town: Town) -> None:
    """A reset or an end: within a length, a frame, before an answer, and while one is parked."""
    request = wire(MetadataRequest(topics=None), 9)
    streams = (
        request[:3],
        CLAIM + bytes(1000),
        request,
        request * 300 + request[:7],
        fetch() * 3,
        fetch(wait_ms=EVERYTHING, topic=KEPT, offset=1),
    )
    for resets in (True, False):
        with opened(town, 5 * len(streams)) as connections:
            for place, connection in enumerate(connections):
                if resets:
                    linger = struct.pack("ii", 1, 0)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                connection.sendall(streams[place % len(streams)])
                connection.close()
    town.check()


def test_answers_to_clients_that_never_read_are_bounded(town: Town) -> None:
    """Each requests everything a hundred times: 58 GiB in all, 12 MiB per answer."""
    with town.memory_within(500 * MIB), opened(town, 50) as connections:
        for connection in connections:
            connection.sendall(b"".join(fetch(number) for number in range(100)))
        town.check()
        # A client that finally reads gets every answer, in order.
        first = answers(connections[0], 5)
        assert [number for number, _ in first] == list(range(5))
        assert first[0][1] > (LARGE_MIB - 1) * MIB
    town.check()


def test_the_broker_stops_reading_from_a_client_that_reads_no_answers(town: Town) -> None:
    with town.memory_within(64 * MIB), opened(town, 1) as [connection]:
        connection.setblocking(False)
        many = wire(MetadataRequest(topics=None), 9) * 1000
        sent, quiet_rounds = 0, 0
        while quiet_rounds < 5:
            before = sent
            with suppress(BlockingIOError):
                while sent < 64 * MIB:
                    sent += connection.send(many)
            assert sent < 64 * MIB, "it goes on reading"
            town.honest_work()  # the broker has checked since
            quiet_rounds = quiet_rounds + 1 if sent == before else 0
        town.check()


def test_parked_fetches_of_a_slow_reader_are_answered_without_records(town: Town) -> None:
    """One record answers all of them at the same time; each could return all records."""
    logs = (town.cluster.files(1).log / f"{LARGE}-0").glob("*.log")
    size = sum(path.stat().st_size for path in logs)
    with town.memory_within(128 * MIB), opened(town, 1) as [connection]:
        for number in range(200):
            connection.sendall(fetch(number, wait_ms=EVERYTHING, min_bytes=size + 1))
        town.honest_work()
        town.cluster.produce(LARGE, ["one more"])
        found = answers(connection, 200)
        assert [number for number, _ in found] == list(range(200))
        assert found[0][1] > size
        assert sum(got for _, got in found) < 3 * size
    town.check()


def test_a_slow_reader_gets_all_of_its_answer(town: Town) -> None:
    with opened(town, 1) as [connection]:
        connection.sendall(fetch(7))
        size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
        for _ in range(20):
            assert len(connection.recv(1)) == 1
            town.cluster.consume(KEPT)
        left = size - 20
        while left:
            left -= len(connection.recv(min(left, MIB)))
        assert is_answered(connection)
    town.check()


def test_incomplete_frames_use_only_the_memory_of_their_bytes(town: Town) -> None:
    """2,000 frames that claim 100 MB each, and send a thousand bytes each."""
    with town.memory_within(48 * MIB), opened(town, 2000) as connections:
        for connection in connections:
            connection.sendall(CLAIM + bytes(1000))
        town.check()


def test_ten_thousand_idle_connections(town: Town) -> None:
    allow_descriptors(10_500)
    with town.memory_within(10_000 * 8192), opened(town, 10_000) as connections:
        wait_until(lambda: town.descriptors() > 10_000, "all are accepted")
        town.check()
        for connection in connections[::500]:
            assert is_answered(connection)
    town.check()


def allow_descriptors(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count:
        pytest.skip(f"this system allows {hard} open files, {count} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))


@contextmanager
def descriptors_limited(town: Town, most: int) -> Iterator[None]:
    """Limit the broker's open descriptors."""
    soft, hard = resource.prlimit(town.pid(), resource.RLIMIT_NOFILE)
    resource.prlimit(town.pid(), resource.RLIMIT_NOFILE, (most, hard))
    yield
    resource.prlimit(town.pid(), resource.RLIMIT_NOFILE, (soft, hard))


def test_connections_leave_descriptors_for_the_logs(town: Town) -> None:
    with town.cluster.client() as early, descriptors_limited(town, town.descriptors() + 150):
        early.metadata([])
        with opened(town, 300) as connections:
            assert is_hung_up(connections[-1])
            create_topic(early, "needs-files", 20)
        town.check()
    assert "the system's limit of open files" in town.said()


def test_a_broker_that_ran_out_of_descriptors_serves_again(town: Town) -> None:
    with town.connect() as early:
        assert is_answered(early)
        with descriptors_limited(town, town.descriptors()):
            crowd = [socket.socket() for _ in range(200)]
            for one in crowd:
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", town.cluster.entry(1).port))
            for _ in range(10):
                assert is_answered(early)
        for one in crowd:
            one.close()
        town.check()
        assert is_answered(early)


def test_connections_are_limited_by_kafkas_settings() -> None:
    config = {"max.connections": "30", "max.connections.per.ip.overrides": "127.0.0.2:3"}
    with Cluster(brokers=1, config=config) as cluster:
        town = Town(cluster)
        address = ("127.0.0.1", cluster.entry(1).port)
        from_there = [
            socket.create_connection(address, DEADLINE_S, source_address=("127.0.0.2", 0))
            for _ in range(4)
        ]
        assert [is_answered(one) for one in from_there[:3]] == [True] * 3
        assert is_hung_up(from_there[3])
        crowd = [town.connect() for _ in range(40)]
        assert is_hung_up(crowd[-1])
        for one in (*from_there, *crowd):
            one.close()
        town.check()
        assert "max.connections.per.ip" in town.said()
        assert "limit=max.connections\n" in town.said()
