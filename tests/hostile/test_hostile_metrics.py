"""Bad clients of a broker's metrics cost neither the broker nor its other clients anything."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from holdfast.broker.metrics.http_server import LONGEST_REQUEST, MOST_CONNECTIONS
from holdfast.cluster import Cluster
from tests.hostile.town import DEADLINE_S, MIB, Town, is_hung_up
from tests.support.metrics import Scraped
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

GET: Final = b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n"
PARTITIONS: Final = 600
"""So many that the page does not fit into the buffers of a connection."""


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    with Cluster(brokers=1, metrics=True) as cluster:
        cluster.create_topic("large", PARTITIONS)
        yield Town(cluster)


def address(town: Town) -> tuple[str, int]:
    return "127.0.0.1", town.cluster.entry(1).metrics_port


def connect(town: Town) -> socket.socket:
    return socket.create_connection(address(town), DEADLINE_S)


def answer(town: Town, request: bytes) -> bytes:
    """Everything that the broker sends."""
    with connect(town) as connection:
        connection.sendall(request)
        received = b""
        while some := connection.recv(65536):
            received += some
        return received


def is_served(town: Town) -> bool:
    """Whether a scrape succeeds."""
    try:
        page = Scraped("{}:{}".format(*address(town)))
    except OSError:
        return False
    return page.value("kafka_server_replicamanager_partitioncount") > PARTITIONS


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /metrics/../../etc/passwd HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", b"405"),
        (b"GET /metrics HTTP/2.0\r\n\r\n", b"505"),
        (b"GET /metrics\r\n\r\n", b"400"),
        (b"GET  /metrics HTTP/1.1\r\n\r\n", b"400"),
        (b"\x00\xff\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 2 * LONGEST_REQUEST, b"431"),
    ],
)
def test_a_request_for_anything_else_is_refused(town: Town, request_: bytes, status: bytes) -> None:
    assert answer(town, request_).startswith(b"HTTP/1.1 " + status)
    assert is_served(town)


def test_head_and_the_old_version_are_served(town: Town) -> None:
    head, _, body = answer(town, GET.replace(b"GET", b"HEAD")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert body in (b"", b"0\r\n\r\n")
    head, _, body = answer(town, GET.replace(b"1.1", b"1.0")).partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body.startswith(b"# HELP ")


def test_random_bytes_break_nothing(town: Town) -> None:
    rng = random.Random(1)
    for size in (1, 10, 100, 1000, 5000):
        with connect(town) as connection:
            connection.sendall(rng.randbytes(size))
    assert is_served(town)
    town.check()


def test_clients_that_ask_nothing_are_disconnected(town: Town) -> None:
    """They take all connections; more are refused; when their time is over, others are served."""
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(town)) for _ in range(MOST_CONNECTIONS)]
        silent[0].sendall(b"GET /metr")
        wait_until(lambda: not is_served(town), "all connections are taken")
        town.honest_work()
        assert all(is_hung_up(connection) for connection in silent)
    assert is_served(town)
    town.check()


def test_clients_that_do_not_read_are_disconnected(town: Town) -> None:
    """The broker makes no more of the page than they read."""
    with ExitStack() as stack, town.memory_within(8 * MIB):
        for _ in range(MOST_CONNECTIONS):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(address(town))
            connection.sendall(GET)
        assert not is_served(town)
        town.honest_work()
        wait_until(lambda: is_served(town), "their time is over")
    town.check()
