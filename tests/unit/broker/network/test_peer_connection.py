"""Connections to other brokers: every waiter gets an answer, whatever happens."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.broker.faults.link_faults import Links
from holdfast.broker.network.peer_connection import Peer, PeerTimeouts
from holdfast.broker.network.peer_set import FETCH, Peers
from holdfast.broker.settings.listeners import Endpoint
from holdfast.model import BrokerId
from holdfast.protocol import Response
from holdfast.protocol.messages.control import ControlledShutdownRequest
from tests.support.waiting import eventually

HOST = "127.0.0.1"


def test_waiters_learn_of_a_connection_that_is_lost_while_it_is_made() -> None:
    """Found by chaos: an AlterPartition without an answer blocked every later one."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await asyncio.start_server(lambda _, writer: writer.close(), HOST, 0)
        connect: Any = loop.create_connection

        async def lost_at_once(factory: Any, host: str, port: int) -> Any:
            transport, protocol = await connect(factory, host, port)
            transport.abort()
            await eventually(lambda: protocol.transport is None, "the connection is lost")
            return transport, protocol

        loop.create_connection = lost_at_once  # type: ignore[method-assign, assignment]
        port = server.sockets[0].getsockname()[1]
        peer = Peer(loop, Links(loop), BrokerId(1), BrokerId(2), Endpoint(HOST, port), 10.0, 30.0)
        answers: list[Response | None] = []
        request = ControlledShutdownRequest(broker_id=1, broker_epoch=1)
        for _ in range(2):  # the second one after a failure
            asked = len(answers)
            peer.send(request, 3, answers.append)
            await eventually(lambda: len(answers) > asked, "an answer", 20.0)  # noqa: B023
        assert answers == [None, None]
        peer.close()
        server.close()
        await server.wait_closed()

    asyncio.run(run())


def test_a_broker_that_stops_opens_no_new_connection() -> None:
    """A fetcher may still ask for the connection to a new leader."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        accepted: list[asyncio.StreamWriter] = []
        server = await asyncio.start_server(lambda _, writer: accepted.append(writer), HOST, 0)
        port = server.sockets[0].getsockname()[1]
        request = ControlledShutdownRequest(broker_id=1, broker_epoch=1)
        peers = Peers(loop, Links(loop), BrokerId(1), PeerTimeouts(10.0, 30.0, 30.0))
        peers.update(BrokerId(2), Endpoint(HOST, port))
        peers.close()
        peers.to(BrokerId(2), FETCH).send(request, 3, lambda _: None)
        # A later connection is made after all earlier ones.
        other = Peer(loop, Links(loop), BrokerId(3), BrokerId(2), Endpoint(HOST, port), 10.0, 30.0)
        other.send(request, 3, lambda _: None)
        await eventually(lambda: bool(accepted), "the other connection is there")
        assert len(accepted) == 1
        other.close()
        accepted[0].close()
        server.close()
        await server.wait_closed()

    asyncio.run(run())
