"""Serves the page over HTTP: GET /metrics, one request per connection.

A scrape is rare and its client is not trusted, so everything is bounded: connections, the size of a
request, the time for a request and for reading the answer. The page is sent while it is made, and
no faster than the client reads it, so a large one is never in memory as a whole.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Final, NamedTuple

from holdfast.broker.log_lines import LogLines

PATH: Final = "/metrics"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Of Prometheus' text format, which `generate_latest` writes."""
MOST_CONNECTIONS: Final = 8
LONGEST_REQUEST: Final = 8192
REQUEST_S: Final = 5.0
"""The most time for a client to send its request."""
ANSWER_S: Final = 30.0
"""The most time for a client to read the answer."""
SEND_BUFFER: Final = 65_536
"""What the system keeps for a client that does not read."""
BACKLOG: Final = 16
_END: Final = b"\r\n\r\n"


_HTTP_1_0: Final = b"HTTP/1.0"
_HTTP_1_1: Final = b"HTTP/1.1"
_HEAD: Final = b"HEAD"


class _Request(NamedTuple):
    """The first line of a request; the other lines are ignored."""

    method: bytes
    target: bytes
    version: bytes


class RefusedError(Exception):
    """A request that gets no page."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status)
        self.status = status


class MetricsServer:
    """Listens until it is closed."""

    def __init__(self, page: Callable[[], Iterator[bytes]], log: LogLines) -> None:
        self._page = page
        self._log = log
        self._server: asyncio.AbstractServer | None = None
        self._writers: dict[asyncio.StreamWriter, None] = {}

    async def open(self, host: str, port: int) -> int:
        """Listen; returns the port, which the system chose if it was 0."""
        self._server = await asyncio.start_server(
            self._serve, host, port, limit=LONGEST_REQUEST, backlog=BACKLOG
        )
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            self._server.close()
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers[writer] = None
        try:
            if len(self._writers) <= MOST_CONNECTIONS:
                end = writer.get_extra_info("socket")
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
                await self._serve_one(reader, writer)
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            pass  # The client has left, or is too slow.
        except Exception as error:  # noqa: BLE001  # the client sees that the page is incomplete
            self._log.bug("metrics not served", error)
        finally:
            del self._writers[writer]
            writer.transport.abort()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                request = await _read(reader)
        except RefusedError as refusal:
            status = refusal.status
            text = f"{status} {status.phrase}; GET {PATH} is served here\n".encode()
            writer.write(_head(status, f"Content-Length: {len(text)}") + text)
        else:
            async with asyncio.timeout(ANSWER_S):
                await self._send(writer, request)
        async with asyncio.timeout(REQUEST_S):
            writer.close()
            await writer.wait_closed()

    async def _send(self, writer: asyncio.StreamWriter, request: _Request) -> None:
        is_chunked = request.version == _HTTP_1_1
        writer.write(_head(HTTPStatus.OK, "Transfer-Encoding: chunked" if is_chunked else ""))
        if request.method == _HEAD:
            return
        for piece in self._page():
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
            await writer.drain()
            await asyncio.sleep(0)  # Serve others.
        if is_chunked:
            writer.write(b"0\r\n\r\n")


async def _read(reader: asyncio.StreamReader) -> _Request:
    """The request; RefusedError if it does not ask for the page."""
    try:
        head = await reader.readuntil(_END)
    except asyncio.LimitOverrunError:
        raise RefusedError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from None
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) != len(_Request._fields) or not words[-1].startswith(b"HTTP/"):
        raise RefusedError(HTTPStatus.BAD_REQUEST)
    request = _Request(*words)
    if request.version not in (_HTTP_1_0, _HTTP_1_1):
        raise RefusedError(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
    if request.method not in (b"GET", _HEAD):
        raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED)
    if request.target.partition(b"?")[0] != PATH.encode():
        raise RefusedError(HTTPStatus.NOT_FOUND)
    return request


def _head(status: HTTPStatus, field: str) -> bytes:
    kind = CONTENT_TYPE if status is HTTPStatus.OK else "text/plain; charset=utf-8"
    fields = [f"Content-Type: {kind}", "Connection: close", *([field] if field else [])]
    return "\r\n".join([f"HTTP/1.1 {status} {status.phrase}", *fields, "", ""]).encode()
