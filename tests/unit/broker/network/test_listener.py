"""Connections over real sockets: order, limits, back-pressure, invalid requests."""

from __future__ import annotations

import asyncio
import contextlib
import io
import socket
from collections.abc import AsyncIterator, Callable

import pytest

from holdfast.broker.faults.link_faults import Links
from holdfast.broker.log_lines import LogLines
from holdfast.broker.network.calls import Call
from holdfast.broker.network.connection import MAX_CALLS, Connection
from holdfast.broker.network.listener import Limits, Listener
from holdfast.broker.network.requests import BROKER_CLIENT_ID, Requests
from holdfast.model import ErrorCode
from holdfast.protocol import APIS, Request, decode_response, encode_request
from holdfast.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from holdfast.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.waiting import eventually

METADATA = MetadataRequest.API_KEY
API_VERSIONS = ApiVersionsRequest.API_KEY
VERSION = 12


class Desk:
    """A listener whose calls are answered when the test says so."""

    def __init__(self, listener: Listener, port: int, calls: list[Call], log: io.StringIO) -> None:
        self.listener = listener
        self.port = port
        self.calls = calls
        self.log = log
        self.clients: list[Client] = []

    def answer(self, place: int, cluster: str = "") -> None:
        answer = MetadataResponse(brokers=[], topics=[], cluster_id=cluster)
        self.calls[place].answer(answer)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, number: int, request: Request | None = None, version: int = VERSION) -> None:
        asked = MetadataRequest(topics=None) if request is None else request
        parts = encode_request(asked, version, correlation_id=number, client_id="test")
        self.writer.writelines(bytes(part) for part in parts)

    async def frame(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    async def receive(self) -> tuple[int, str | None]:
        header, answer = decode_response(await self.frame(), APIS[METADATA], VERSION)
        assert isinstance(answer, MetadataResponse)
        return header.correlation_id, answer.cluster_id

    async def is_hung_up(self) -> bool:
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True


@contextlib.asynccontextmanager
async def desk(limits: Limits | None = None) -> AsyncIterator[Desk]:
    loop = asyncio.get_running_loop()
    calls: list[Call] = []
    stream = io.StringIO()

    def broken(_: Call) -> None:
        raise KeyError("a bug")

    handlers: dict[int, Callable[[Call], None]] = {METADATA: calls.append, API_VERSIONS: broken}
    log = LogLines(1, stream)
    listener = Listener("PLAINTEXT", loop, Requests(handlers), limits or Limits(), Links(loop), log)
    port = await listener.open("127.0.0.1", 0)
    opened = Desk(listener, port, calls, stream)
    try:
        yield opened
    finally:
        listener.close()
        for client in opened.clients:
            client.writer.close()
            with contextlib.suppress(ConnectionError):
                await client.writer.wait_closed()


async def client_of(open_desk: Desk) -> Client:
    client = Client(*await asyncio.open_connection("127.0.0.1", open_desk.port))
    open_desk.clients.append(client)
    return client


def test_answers_leave_in_the_order_of_the_requests() -> None:
    async def play() -> None:
        async with desk() as here:
            client = await client_of(here)
            for number in range(3):
                client.send(number)
            await eventually(lambda: len(here.calls) == 3, "all are under way")
            here.answer(2, "third")
            here.answer(1, "second")
            here.answer(0, "first")
            received = [await client.receive() for _ in range(3)]
            assert received == [(0, "first"), (1, "second"), (2, "third")]

    asyncio.run(play())


def test_too_many_requests_in_progress_are_not_read_but_not_lost_either() -> None:
    async def play() -> None:
        async with desk() as here:
            client = await client_of(here)
            for number in range(2 * MAX_CALLS):
                client.send(number)
            await eventually(lambda: len(here.calls) >= MAX_CALLS, "as many as there may be")
            seen = len(here.calls)
            for place in range(seen):
                here.answer(place)
            await eventually(lambda: len(here.calls) == 2 * MAX_CALLS, "the rest is read")
            for place in range(seen, 2 * MAX_CALLS):
                here.answer(place)
            received = [(await client.receive())[0] for _ in range(2 * MAX_CALLS)]
            assert received == list(range(2 * MAX_CALLS))

    asyncio.run(play())


def test_bytes_in_progress_block_all_reads_until_they_are_answered() -> None:
    async def play() -> None:
        async with desk(Limits(queued_bytes=10)) as here:
            one, other = await client_of(here), await client_of(here)
            one.send(1)
            await eventually(lambda: len(here.calls) == 1, "the first is under way")
            other.send(2)
            await eventually(lambda: len(here.calls) == 2, "one more each, then reading stops")
            one.send(3)
            other.send(4)
            here.answer(0)
            here.answer(1)
            await eventually(lambda: len(here.calls) == 4, "read again")

    asyncio.run(play())


def test_a_frame_that_is_too_large_ends_its_connection_only() -> None:
    async def play() -> None:
        async with desk(Limits(request_bytes=1000)) as here:
            bad, good = await client_of(here), await client_of(here)
            bad.writer.write((1001).to_bytes(4, "big"))
            assert await bad.is_hung_up()
            assert "0 to 1000 is allowed" in here.log.getvalue()
            good.send(7)
            await eventually(lambda: len(here.calls) == 1, "others are served")

    asyncio.run(play())


def test_nonsense_ends_its_connection_with_a_reason_in_the_log() -> None:
    async def play() -> None:
        async with desk() as here:
            for frame in (
                b"",
                b"\x00",
                b"\x7f\xff\x00\x00\x00\x00\x00\x01",
                b"\x00\x03" + b"\xff" * 30,
            ):
                client = await client_of(here)
                client.writer.write(len(frame).to_bytes(4, "big") + frame)
                assert await client.is_hung_up()
            assert here.log.getvalue().count("request refused") == 1, "once for one client"

    asyncio.run(play())


def test_a_bug_in_a_handler_costs_its_connection_only() -> None:
    async def play() -> None:
        async with desk() as here:
            bad, good = await client_of(here), await client_of(here)
            bad.send(1, ApiVersionsRequest(), 3)
            assert await bad.is_hung_up()
            assert "KeyError('a bug')" in here.log.getvalue()
            good.send(2)
            await eventually(lambda: len(here.calls) == 1, "others are served")

    asyncio.run(play())


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    async def play() -> None:
        async with desk() as here:
            client = await client_of(here)
            frame = (
                API_VERSIONS.to_bytes(2, "big") + (99).to_bytes(2, "big") + b"\0\0\0\5\xff\xff\0"
            )
            client.writer.write(len(frame).to_bytes(4, "big") + frame)
            header, answer = decode_response(await client.frame(), APIS[API_VERSIONS], 0)
            assert isinstance(answer, ApiVersionsResponse)
            assert (header.correlation_id, answer.error_code) == (5, ErrorCode.UNSUPPORTED_VERSION)

    asyncio.run(play())


def test_connections_are_limited_in_all_and_by_address() -> None:
    async def play(limits: Limits) -> None:
        async with desk(limits) as here:
            kept = [await client_of(here) for _ in range(2)]
            assert await (await client_of(here)).is_hung_up()
            for number, client in enumerate(kept):
                client.send(number)
            await eventually(lambda: len(here.calls) == 2, "those before it stay")
            kept[0].writer.close()
            await eventually(lambda: len(here.listener.connections) == 1, "one has left")
            again = await client_of(here)
            again.send(9)
            await eventually(lambda: len(here.calls) == 3, "there is room again")

    asyncio.run(play(Limits(connections=2)))
    asyncio.run(play(Limits(connections_per_address=2)))
    asyncio.run(play(Limits(connections_per_address=1, of_address={"127.0.0.1": 2})))


def test_an_idle_client_is_disconnected() -> None:
    async def play() -> None:
        async with desk(Limits(idle_s=0.05)) as here:
            assert await (await client_of(here)).is_hung_up()

    asyncio.run(play())


def test_requests_of_a_disconnected_broker_are_discarded_even_the_first() -> None:
    async def play() -> None:
        async with desk() as here:
            links = here.listener.links
            assert isinstance(links, Links)
            links.disconnect(2, both_ways=True)
            disconnected, other = await client_of(here), await client_of(here)
            asked = MetadataRequest(topics=None)
            name = f"{BROKER_CLIENT_ID}2"
            parts = encode_request(asked, VERSION, correlation_id=1, client_id=name)
            disconnected.writer.writelines(bytes(part) for part in parts)
            await disconnected.writer.drain()
            other.send(2)
            await eventually(lambda: len(here.calls) == 1, "others are heard")
            assert here.calls[0].correlation_id == 2
            links.clear_faults()
            assert await disconnected.is_hung_up(), (
                "what it said is lost, and only a new connection helps"
            )

    asyncio.run(play())


def test_a_client_that_is_being_accepted_during_the_close_is_disconnected() -> None:
    async def scenario() -> None:
        async with desk() as open_desk:
            ours, theirs = socket.socketpair()
            open_desk.listener.close()
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: Connection(open_desk.listener), ours)
            client = Client(*await asyncio.open_connection(sock=theirs))
            assert await client.is_hung_up()
            client.writer.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("turns", range(5))
def test_a_connection_that_was_just_accepted_ends_with_the_listener(turns: int) -> None:
    """Its transport may be created after the listener has closed."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with desk() as here:
            with socket.create_connection(("127.0.0.1", here.port)) as client:
                client.setblocking(False)
                for _ in range(turns):
                    await asyncio.sleep(0)
                here.listener.close()
                with contextlib.suppress(ConnectionError):
                    assert await asyncio.wait_for(loop.sock_recv(client, 1), 60.0) == b""

    asyncio.run(scenario())
