"""One client's connection: frames in, answers out in the order of the requests.

Several requests may be under way at once. What becomes ready in one tick of the loop leaves with
one write. Back-pressure never drops anything: a connection with too much under way, or a reader
that does not read, is not read from until that has changed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, cast

from holdfast.broker.calls import Call
from holdfast.broker.frames import FrameReader
from holdfast.protocol import MalformedMessage, Payload, UnsupportedVersionError

if TYPE_CHECKING:
    from holdfast.broker.listener import Listener

MAX_CALLS: Final = 256
"""Requests of one connection under way before we stop reading from it."""


class Connection(asyncio.BufferedProtocol):
    """A client, or another broker."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._reader = FrameReader(listener.limits.request_bytes)
        self._calls: deque[Call] = deque()
        self._ready: list[Payload] = []
        self._is_queued = False
        self._holds: dict[str, None] = {}
        """Why we do not read now; empty while we do."""
        self.transport: asyncio.Transport | None = None
        self.host = ""
        self.broker: int | None = None
        """The broker at the other end, if it is one: it says so in its client id."""
        self.last_read_s = 0.0
        self.bytes_under_way = 0

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's, and are all that is asked of them.
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.host = str(peer[0]) if peer else ""
        if not self._listener.connected(self):
            self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  # asyncio's signature
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            frames = self._reader.received(nbytes)
        except MalformedMessage as error:
            self.refuse(str(error))
            return
        if self._listener.links.swallows(self.broker, self.transport):
            return
        self.last_read_s = self._listener.loop.time()
        for frame in frames:
            if self.transport is None:
                return
            self._take(frame)

    def _take(self, frame: bytearray) -> None:
        listener, known = self._listener, self.broker
        try:
            call = listener.decode(self, frame)
        except (MalformedMessage, UnsupportedVersionError) as error:
            self.refuse(str(error))
            return
        if self.broker != known and listener.links.swallows(self.broker, self.transport):
            return  # Only its first request says who it is.
        self._calls.append(call)
        self._listener.bytes_came(self, len(frame))
        if len(self._calls) >= MAX_CALLS:
            self.hold("calls")
        self._listener.handle(call)

    def pause_writing(self) -> None:
        self.hold("slow reader")

    def resume_writing(self) -> None:
        self.release("slow reader")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.transport = None
        self._calls.clear()
        self._ready.clear()
        self._listener.lost(self)

    # What the broker calls.

    def answered(self, call: Call) -> None:
        """A call has its answer; send what the order allows."""
        calls = self._calls
        if not calls or calls[0] is not call:
            return
        done = 0
        while calls and (parts := calls[0].parts) is not None:
            self._ready += parts
            done += calls.popleft().size
        if not self._is_queued:
            self._is_queued = True
            self._listener.queue_write(self)
        if "calls" in self._holds and len(calls) < MAX_CALLS // 2:
            self.release("calls")
        self._listener.bytes_went(self, done)

    def write(self) -> None:
        """One write for everything that became ready in this tick."""
        self._is_queued = False
        ready, self._ready = self._ready, []
        if self.transport is not None and ready:
            self._listener.links.write(self.broker, self.transport, ready)

    def hold(self, reason: str) -> None:
        """Do not read until this reason is gone."""
        if not self._holds and self.transport is not None and self.transport.is_reading():
            self.transport.pause_reading()
        self._holds[reason] = None

    def release(self, reason: str) -> None:
        """One reason is gone; the last one lets us read again."""
        self._holds.pop(reason, None)
        transport = self.transport
        if not self._holds and transport is not None and not transport.is_closing():
            transport.resume_reading()

    def refuse(self, reason: str) -> None:
        """What came cannot be answered: say why in the log, and hang up."""
        self._listener.log.warning("request refused", client=self.host, reason=reason)
        self.close()

    def close(self) -> None:
        """Hang up; requests under way are forgotten."""
        if self.transport is not None:
            self.transport.close()
