"""The one place that every request passes: who sent it, and what a failed handler leaves."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from holdfast.broker.apis import describe_cluster
from holdfast.broker.faults.link_faults import Links
from holdfast.broker.handlers import handlers
from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.network.calls import Call
from holdfast.broker.network.listener import Limits, Listener
from holdfast.broker.network.requests import Handler, Requests
from holdfast.broker.tasks import RequestTasks
from holdfast.protocol import APIS, Api, Response, decode_response, encode_request
from holdfast.protocol.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from tests.support.waiting import eventually
from tests.unit.broker.three import Three
from tests.unit.protocol.sampler import Sampler

HOST: Final = "127.0.0.1"


class Noting(Requests):
    """Notes the calls of clients before their handlers get them, as an authorizer would."""

    def __init__(self, of: Mapping[int, Handler]) -> None:
        super().__init__(of)
        self.senders: dict[str, tuple[str, str, str | None]] = {}

    def handle(self, call: Call) -> None:
        if call.connection.broker is None:
            self.senders[call.api.name] = (str(call.principal), call.listener, call.client_id)
        super().handle(call)


async def send(port: int, api: Api, client_id: str, until_hung_up: bool = False) -> None:
    """A request of this API with random fields, on a connection of its own."""
    version = api.advertised[-1]
    request = Sampler(Random(api.key), small=True).message(api.request, version)
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.writelines(encode_request(request, version, correlation_id=1, client_id=client_id))
    await writer.drain()
    if until_hung_up:
        with suppress(ConnectionError):
            assert await reader.read() == b""
    writer.close()


def client_of(api: Api) -> str:
    return f"client-of-{api.name}"


def test_every_api_has_a_handler_and_every_call_names_its_sender(tmp_path: Path) -> None:
    async def run() -> None:
        three = Three(tmp_path)
        broker = await three.start(1)
        try:
            noting = broker.listener.requests = Noting(handlers(broker))
            assert handlers(broker).keys() == APIS.keys()
            for api in APIS.values():
                await send(broker.endpoint.port, api, client_of(api))
            await eventually(lambda: len(noting.senders) == len(APIS), "all have passed")
            assert noting.senders == {
                api.name: ("User:ANONYMOUS", "PLAINTEXT", client_of(api)) for api in APIS.values()
            }
        finally:
            await broker.stop()
        assert "Traceback" not in three.lines.getvalue(), three.lines.getvalue()

    asyncio.run(run())


async def opened(table: Mapping[int, Handler]) -> tuple[Listener, int, io.StringIO]:
    loop, lines = asyncio.get_running_loop(), io.StringIO()
    log = LogLines(1, lines)
    listener = Listener("PLAINTEXT", loop, Requests(table), Limits(), Links(loop), log)
    return listener, await listener.open(HOST, 0), lines


def test_a_request_that_fails_is_logged_with_its_sender_and_costs_its_connection_only() -> None:
    async def run() -> None:
        tasks = RequestTasks(asyncio.get_running_loop())

        def fail_now(_: Call) -> None:
            raise KeyError("now")

        async def fail() -> Response:
            raise KeyError("later")

        def fail_later(call: Call) -> None:
            tasks.answer_by(call, fail())

        table = {key: (fail_now, fail_later)[key % 2] for key in APIS}
        listener, port, lines = await opened(table)
        try:
            for api in APIS.values():
                await send(port, api, client_of(api), until_hung_up=True)
        finally:
            listener.close()
        written = lines.getvalue()
        for api in APIS.values():
            sender = f"client={HOST} listener=PLAINTEXT principal=User:ANONYMOUS"
            line = f'event="request failed" {sender} client_id={client_of(api)} api={api.name} '
            assert line in written
            assert f"KeyError('{('now', 'later')[api.key % 2]}')" in written

    asyncio.run(run())


def test_a_handler_needs_its_parts_and_no_broker() -> None:
    async def run() -> None:
        api = APIS[DescribeClusterRequest.API_KEY]
        listener, port, _ = await opened({api.key: partial(describe_cluster.handle, Metadata("c"))})
        try:
            reader, writer = await asyncio.open_connection(HOST, port)
            asked = DescribeClusterRequest(include_cluster_authorized_operations=False)
            writer.writelines(encode_request(asked, 0, correlation_id=1, client_id=None))
            frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            writer.close()
        finally:
            listener.close()
        response = decode_response(frame, api, 0)[1]
        assert isinstance(response, DescribeClusterResponse)
        assert (response.cluster_id, response.controller_id) == ("c", -1)

    asyncio.run(run())


def test_one_bug_is_one_line_whatever_name_its_client_invents() -> None:
    async def run() -> None:
        def fail(_: Call) -> None:
            raise KeyError("a bug")

        listener, port, lines = await opened(dict.fromkeys(APIS, fail))
        try:
            for number in range(20):
                await send(port, APIS[3], f"name-{number}", until_hung_up=True)
        finally:
            listener.close()
        assert lines.getvalue().count("request failed") == 1

    asyncio.run(run())
