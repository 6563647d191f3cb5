"""Connections to other brokers: requests out, answers in, in order.

A peer connects when it first has a request to send, and again after a failure, with a growing
delay. A request whose connection is lost gets None for an answer: the other broker may or may not
have handled it. The sender decides whether to send it again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, cast

from holdfast.broker.network.frames import FrameReader
from holdfast.broker.network.links import Links
from holdfast.broker.network.requests import BROKER_CLIENT_ID
from holdfast.broker.settings import BrokerSettings
from holdfast.broker.settings.listeners import Endpoint
from holdfast.model import BrokerId
from holdfast.protocol import (
    APIS,
    Api,
    MalformedMessage,
    Payload,
    Request,
    Response,
    decode_response,
    encode_request,
)

ANSWER_BYTES: Final = 2**31 - 1
LONGEST_BACKOFF_S: Final = 0.5
FIRST_BACKOFF_S: Final = 0.02

Answered = Callable[[Response | None], None]


class PeerTimeouts(NamedTuple):
    """How long to wait for another broker, in seconds."""

    connect_s: float = 10.0
    """socket.connection.setup.timeout.ms."""
    answer_s: float = 30.0
    """request.timeout.ms: without an answer for this long, the connection is lost."""
    fetch_s: float = 30.0
    """replica.socket.timeout.ms: the same for fetches."""

    @staticmethod
    def of(settings: BrokerSettings) -> PeerTimeouts:
        """The timeouts that the settings ask for."""
        return PeerTimeouts(
            settings.socket_connection_setup_timeout_ms / 1000,
            settings.request_timeout_ms / 1000,
            settings.replica_socket_timeout_ms / 1000,
        )


class _Waiting(NamedTuple):
    api: Api
    version: int
    correlation_id: int
    answered: Answered
    due_s: float


class Peer:
    """The connection to one broker, made when needed."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        links: Links,
        own_id: BrokerId,
        broker: BrokerId,
        endpoint: Endpoint,
        connect_s: float,
        answer_s: float,
    ) -> None:
        self._loop = loop
        self._links = links
        self._client_id = f"{BROKER_CLIENT_ID}{own_id}"
        self.broker = broker
        self.endpoint = endpoint
        self._connect_s = connect_s
        self._answer_s = answer_s
        self._connection: _PeerConnection | None = None
        self._queued: list[tuple[Request, int, Answered]] = []
        """Sent as soon as there is a connection."""
        self._is_connecting = False
        self._backoff_s = FIRST_BACKOFF_S
        self._is_closed = False

    def send(self, request: Request, version: int, answered: Answered) -> None:
        """Send a request; `answered` gets its response, or None if the connection was lost."""
        connection = self._connection
        if connection is not None and connection.transport is not None:
            connection.send(request, version, self._client_id, answered)
            return
        self._queued.append((request, version, answered))
        if not self._is_connecting and not self._is_closed:
            self._is_connecting = True
            self._loop.create_task(self._connect())  # the flag keeps it single

    async def _connect(self) -> None:
        connection = _PeerConnection(
            self._loop, self._links, self.broker, self._answer_s, self._lost
        )
        host, port = self.endpoint
        try:
            if self._links.is_disconnected(self.broker):
                raise OSError("the link is disconnected")
            await asyncio.wait_for(
                self._loop.create_connection(lambda: connection, host, port), self._connect_s
            )
            if connection.transport is None:
                raise ConnectionResetError  # before connection_made
        except OSError:
            # Queued requests fail immediately; every next attempt waits.
            self._fail_queued()
            await asyncio.sleep(self._backoff_s)
            self._backoff_s = min(2 * self._backoff_s, LONGEST_BACKOFF_S)
            self._is_connecting = False
            if self._queued and not self._is_closed:
                self._is_connecting = True
                await self._connect()
            return
        self._is_connecting = False
        self._backoff_s = FIRST_BACKOFF_S
        if self._is_closed:
            connection.abort()
            return
        self._connection = connection
        queued, self._queued = self._queued, []
        for request, version, answered in queued:
            connection.send(request, version, self._client_id, answered)

    def _fail_queued(self) -> None:
        queued, self._queued = self._queued, []
        for _, _, answered in queued:
            answered(None)

    def _lost(self, connection: _PeerConnection) -> None:
        if self._connection is connection:
            self._connection = None

    def reset(self) -> None:
        """Close the connection: waiters get None, and the next request connects again."""
        if self._connection is not None:
            self._connection.abort()

    def close(self) -> None:
        """Accept no more requests; waiters get None."""
        self._is_closed = True
        self.reset()
        self._fail_queued()


class _PeerConnection(asyncio.BufferedProtocol):
    """One connection, from connect to close."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        links: Links,
        broker: BrokerId,
        timeout_s: float,
        lost: Callable[[_PeerConnection], None],
    ) -> None:
        self._loop = loop
        self._timeout_s = timeout_s
        self._links = links
        self._broker = broker
        self._on_lost = lost
        self._reader = FrameReader(ANSWER_BYTES)
        self._waiting: deque[_Waiting] = deque()
        self._next_id = 0
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's, but have the same methods.
        self.transport = cast("asyncio.Transport", transport)
        self._loop.call_later(self._timeout_s, self._look_for_silence)

    def _look_for_silence(self) -> None:
        if self.transport is None:
            return
        if self._waiting and self._waiting[0].due_s <= self._loop.time():
            self.abort()
            return
        due_s = self._waiting[0].due_s if self._waiting else self._loop.time() + self._timeout_s
        self._loop.call_at(due_s, self._look_for_silence)

    def send(self, request: Request, version: int, client_id: str, answered: Answered) -> None:
        """Write immediately: requests between brokers must not wait for the end of the tick."""
        assert self.transport is not None
        correlation_id = self._next_id
        self._next_id = (correlation_id + 1) & 0x7FFFFFFF
        parts: list[Payload] = encode_request(
            request, version, correlation_id=correlation_id, client_id=client_id
        )
        due_s = self._loop.time() + self._timeout_s
        waiting = _Waiting(APIS[request.API_KEY], version, correlation_id, answered, due_s)
        self._waiting.append(waiting)
        self._links.write(self._broker, self.transport, parts)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  # asyncio's signature
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._reader.received(nbytes):
                self._take(frame)
        except MalformedMessage:
            self.abort()

    def _take(self, frame: bytearray) -> None:
        if self._links.swallows(self._broker, self.transport):
            return
        if not self._waiting:
            self.abort()
            return
        waiting = self._waiting.popleft()
        header, response = decode_response(frame, waiting.api, waiting.version)
        if header.correlation_id != waiting.correlation_id:
            waiting.answered(None)
            self.abort()
            return
        waiting.answered(response)

    def abort(self) -> None:
        """Close the connection; all waiters get None."""
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.transport = None
        self._on_lost(self)
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            one.answered(None)
