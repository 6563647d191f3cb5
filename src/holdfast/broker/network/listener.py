"""A listening socket: its connections, and the limits for them."""

from __future__ import annotations

import asyncio
import resource
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from holdfast.broker.log_lines import LogLines
from holdfast.broker.network.connection import Connection
from holdfast.broker.network.links import Links
from holdfast.broker.network.requests import Requests
from holdfast.broker.settings import BrokerSettings, Layers

SPARE_DESCRIPTORS: Final = 96
"""Descriptors reserved besides the eighth for files: for flushes, which have their own handles,
for other brokers and for the coordination store."""
SAY_S: Final = 1.0
"""How often to log refused connections."""

_OWN_BYTES: Final = "bytes"
_ALL_BYTES: Final = "queued bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for clients, by Kafka's settings."""

    request_bytes: int = 104_857_600
    """socket.request.max.bytes."""
    connections: int = 2**31 - 1
    """max.connections."""
    connections_per_address: int = 2**31 - 1
    """max.connections.per.ip."""
    of_address: Mapping[str, int] = field(default_factory=dict)
    """max.connections.per.ip.overrides."""
    send_buffer_bytes: int = -1
    """socket.send.buffer.bytes, if it is set: the system's own tuning is better."""
    receive_buffer_bytes: int = -1
    """socket.receive.buffer.bytes, likewise."""
    queued_bytes: int = -1
    """queued.max.request.bytes: requests in progress, of all connections; -1 for no limit."""
    idle_s: float = 600.0
    """connections.max.idle.ms."""
    backlog: int = 50
    """socket.listen.backlog.size."""

    @staticmethod
    def of(settings: BrokerSettings, layers: Layers) -> Limits:
        """The limits that the settings ask for."""

        def if_set(name: str, value: int) -> int:
            return value if name in layers.static else -1

        return Limits(
            request_bytes=settings.socket_request_max_bytes,
            connections=settings.max_connections,
            connections_per_address=settings.max_connections_per_ip,
            of_address=settings.max_connections_per_ip_overrides,
            send_buffer_bytes=if_set("socket.send.buffer.bytes", settings.socket_send_buffer_bytes),
            receive_buffer_bytes=if_set(
                "socket.receive.buffer.bytes", settings.socket_receive_buffer_bytes
            ),
            queued_bytes=settings.queued_max_request_bytes,
            idle_s=settings.connections_max_idle_ms / 1000,
            backlog=settings.socket_listen_backlog_size,
        )


class Listener:
    """Accepts connections, whose requests go to `requests`. `name` is its name in `listeners`."""

    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop,
        requests: Requests,
        limits: Limits,
        links: Links,
        log: LogLines,
    ) -> None:
        self.name = name
        self.loop = loop
        self.requests = requests
        self.limits = limits
        self.links = links
        self.log = log
        self._server: asyncio.AbstractServer | None = None
        self._is_closed = False
        self.connections: dict[Connection, None] = {}
        self._per_address: dict[str, int] = {}
        self._to_write: list[Connection] = []
        self._held: dict[Connection, None] = {}
        self._bytes_under_way = 0
        self.unsent_bytes = 0
        """Unsent answers, where there are many."""
        self._refused: dict[str, int] = {}
        """Refused connections by limit, since the last log line."""

    async def open(self, host: str, port: int) -> int:
        """Listen; returns the port, which the system chose if it was 0."""
        self._server = await self.loop.create_server(
            lambda: Connection(self), host, port, backlog=self.limits.backlog
        )
        self.loop.call_later(self.limits.idle_s / 4, self._close_idle)
        sockets = getattr(self._server, "sockets", ())
        return int(sockets[0].getsockname()[1]) if sockets else port

    def close(self) -> None:
        """Close all connections, also those that are being accepted."""
        self._is_closed = True
        if self._server is not None:
            sockets = getattr(self._server, "sockets", ())
            for one in sockets:
                self.loop.remove_reader(one.fileno())
            if sockets:
                # A connection that was just accepted gets its transport in the next turn of the
                # loop. asyncio leaves it open, without any word, if its server is closed by then.
                self.loop.call_soon(self._server.close)
            else:
                self._server.close()
        for connection in tuple(self.connections):
            connection.close()

    # Connections.

    def connected(self, connection: Connection) -> bool:
        """Whether there is room for one more."""
        host = connection.host
        count = self._per_address.get(host, 0)
        self._per_address[host] = count + 1
        self.connections[connection] = None
        limits = self.limits
        descriptor = _set_buffers(connection, limits)
        reason = ""
        if count >= limits.of_address.get(host, limits.connections_per_address):
            reason = "max.connections.per.ip"
        elif len(self.connections) > limits.connections:
            reason = "max.connections"
        elif descriptor > _highest_descriptor():
            # A log fails if it finds no descriptor for its next file.
            reason = "the system's limit of open files"
        if reason:
            self._say_refused(host, reason)
        return not reason and not self._is_closed

    def _say_refused(self, host: str, reason: str) -> None:
        """Log the first immediately, and the number of all a little later."""
        count = self._refused[reason] = self._refused.get(reason, 0) + 1
        if count == 1:
            self.log.warning("connection refused: too many", client=host, limit=reason)
            self.loop.call_later(SAY_S, self._say_how_many, reason)

    def _say_how_many(self, reason: str) -> None:
        count = self._refused.pop(reason)
        if count > 1:
            self.log.warning("connections refused: too many", count=count, limit=reason)

    def lost(self, connection: Connection) -> None:
        """A connection is closed."""
        if self.connections.pop(connection, 0) is None:
            self._per_address[connection.host] -= 1
            if not self._per_address[connection.host]:
                del self._per_address[connection.host]
        self._held.pop(connection, None)
        self.bytes_went(connection, connection.bytes_under_way)

    def _close_idle(self) -> None:
        now = self.loop.time()
        for connection in tuple(self.connections):
            connection.abort_if_idle(now, self.limits.idle_s)
        self.loop.call_later(self.limits.idle_s / 4, self._close_idle)

    # Bytes of requests and answers.

    def queue_write(self, connection: Connection) -> None:
        """Write at the end of this tick."""
        if not self._to_write:
            self.loop.call_soon(self._write_all)
        self._to_write.append(connection)

    def _write_all(self) -> None:
        connections, self._to_write = self._to_write, []
        for connection in connections:
            connection.write()

    def bytes_came(self, connection: Connection, size: int) -> None:
        """Count the bytes in progress, and stop reading when they are too many."""
        connection.bytes_under_way += size
        self._bytes_under_way += size
        if connection.bytes_under_way > self.limits.request_bytes:
            connection.hold(_OWN_BYTES)
        if 0 <= self.limits.queued_bytes < self._bytes_under_way:
            connection.hold(_ALL_BYTES)
            self._held[connection] = None

    def bytes_went(self, connection: Connection, size: int) -> None:
        """Requests of this size are answered, or their connection is closed."""
        was_too_much = connection.bytes_under_way > self.limits.request_bytes
        connection.bytes_under_way -= size
        self._bytes_under_way -= size
        if was_too_much and connection.bytes_under_way <= self.limits.request_bytes:
            connection.release(_OWN_BYTES)
        if self._held and self._bytes_under_way <= self.limits.queued_bytes:
            held, self._held = self._held, {}
            for one in held:
                one.release(_ALL_BYTES)


def _highest_descriptor() -> int:
    """The highest descriptor for a connection: an eighth is left for files, which `RealDisk` keeps
    to, and some for other uses. The system assigns the lowest free one.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return sys.maxsize
    return most - most // 8 - SPARE_DESCRIPTORS


def _set_buffers(connection: Connection, limits: Limits) -> int:
    """Set the socket's buffers; returns its descriptor."""
    transport = connection.transport
    end = transport.get_extra_info("socket") if transport is not None else None
    if end is not None:
        if limits.send_buffer_bytes > 0:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.send_buffer_bytes)
        if limits.receive_buffer_bytes > 0:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limits.receive_buffer_bytes)
        return int(end.fileno())
    return -1
