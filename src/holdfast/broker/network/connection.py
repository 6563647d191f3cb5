"""One client's connection: frames in, answers out in the order of the requests.

Several requests may be in progress at the same time. Answers that become ready in one tick of the
loop leave with one write. Back-pressure drops nothing: the broker stops reading from a connection
with too many requests in progress, or with a client that does not read. Frames that arrived in the
same read as the one that exceeded the limit wait here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, cast

from holdfast.broker.network.calls import ANONYMOUS, Call, KafkaPrincipal
from holdfast.broker.network.frames import FrameReader
from holdfast.core import SequenceGapGuard
from holdfast.protocol import MalformedMessage, Payload, UnsupportedVersionError

if TYPE_CHECKING:
    from holdfast.broker.network.listener import Listener

MAX_CALLS: Final = 256
"""Requests of one connection in progress before we stop reading from it."""
UNSENT_BYTES: Final = 1024 * 1024
"""Unsent bytes of answers of one connection before we stop reading from it."""
MOST_UNSENT_BYTES: Final = 256 * 1024 * 1024
"""The same for all connections, before a fetch returns only one batch."""

_CALLS: Final = "calls"
_ANSWERS: Final = "answers"
_SLOW_READER: Final = "slow reader"
_ENDED: Final = "ended"


class Connection(asyncio.BufferedProtocol):
    """A connection from a client or another broker."""

    __slots__ = (
        "_calls",
        "_closes",
        "_holds",
        "_is_queued",
        "_reader",
        "_ready",
        "_ready_bytes",
        "_untaken",
        "_waiting_bytes",
        "broker",
        "bytes_under_way",
        "host",
        "last_active_s",
        "listener",
        "principal",
        "refused",
        "transport",
        "unsent_bytes",
    )

    _closes: bool
    """A request was answered by closing, and all earlier ones have their answers."""
    _holds: dict[str, None]
    """Reasons why we do not read now; empty while we do."""
    _untaken: list[bytearray]
    """Frames that arrived, to be handled when we continue."""
    _waiting_bytes: int
    """Answers that wait for an earlier one or for the end of the tick."""
    unsent_bytes: int
    """The same plus the bytes that the other side has not received, at the last check. Not checked
    while it is small."""
    broker: int | None
    """The broker at the other end, by its client id; None for a client."""
    last_active_s: float
    """When bytes were last received or sent."""
    principal: KafkaPrincipal
    """Who sends its requests."""
    refused: SequenceGapGuard
    """Batches that its producers must resend before any later one."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self._reader = FrameReader(listener.limits.request_bytes)
        self._calls: deque[Call] = deque()
        self._ready: list[Payload] = []
        self._ready_bytes = 0
        self._is_queued = False
        self._closes = False
        self._holds = {}
        self._untaken = []
        self._waiting_bytes = 0
        self.unsent_bytes = 0
        self.transport: asyncio.Transport | None = None
        self.host = ""
        self.broker = None
        self.last_active_s = listener.loop.time()
        self.principal = ANONYMOUS
        self.refused = SequenceGapGuard()
        self.bytes_under_way = 0

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's, but have the same methods.
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.host = str(peer[0]) if peer else ""
        if not self.listener.connected(self):
            self.abort()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  # asyncio's signature
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            frames = self._reader.received(nbytes)
        except MalformedMessage as error:
            self.refuse(str(error))
            return
        if self.listener.links.swallows(self.broker, self.transport):
            return
        self.last_active_s = self.listener.loop.time()
        for frame in frames:
            if self._holds:
                self._untaken.append(frame)
            else:
                self._take(frame)

    def _take(self, frame: bytearray) -> None:
        listener, known = self.listener, self.broker
        try:
            call = listener.requests.decode(self, frame)
        except (MalformedMessage, UnsupportedVersionError) as error:
            self.refuse(str(error))
            return
        except Exception as error:  # noqa: BLE001  # whatever it was, others are served
            listener.log.bug("request not read", error, self.sender)
            self.close()
            return
        if self.broker != known and listener.links.swallows(self.broker, self.transport):
            return  # The first request identifies the broker.
        self._calls.append(call)
        listener.bytes_came(self, len(frame))
        if len(self._calls) >= MAX_CALLS:
            self.hold(_CALLS)
        listener.requests.handle(call)

    def pause_writing(self) -> None:
        self.hold(_SLOW_READER)
        self._look_at_unsent()

    def resume_writing(self) -> None:
        self._look_at_unsent()
        self.release(_SLOW_READER)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._end()
        self.transport = None
        for call in self._calls:
            if call.dropped is not None and not call.is_answered:
                call.dropped()
        self._calls.clear()
        self._ready.clear()
        self._waiting_bytes = 0
        self._look_at_unsent()
        self.listener.lost(self)

    # Calls of the broker.

    def answered(self, call: Call) -> None:
        """A call has its answer; send all answers that the order allows."""
        calls = self._calls
        if not calls:
            return
        assert call.parts is not None
        size = call.answer_size = sum(map(len, call.parts))
        if call.count is not None:
            call.count.answered(call)
        self._waiting_bytes += size
        if self._waiting_bytes > UNSENT_BYTES:
            self.hold(_ANSWERS)
            self._look_at_unsent()
        if calls[0] is not call:
            return
        done = 0
        while calls and (parts := calls[0].parts) is not None:
            self._ready += parts
            first = calls.popleft()
            self._ready_bytes += first.answer_size
            done += first.size
            self._closes |= first.closes
        if not self._is_queued:
            self._is_queued = True
            self.listener.queue_write(self)
        if _CALLS in self._holds and len(calls) < MAX_CALLS // 2:
            self.release(_CALLS)
        self.listener.bytes_went(self, done)

    def write(self) -> None:
        """One write for all answers that became ready in this tick."""
        self._is_queued = False
        ready, self._ready = self._ready, []
        self._waiting_bytes -= self._ready_bytes
        self._ready_bytes = 0
        if self.transport is None:
            return
        if ready:
            self.last_active_s = self.listener.loop.time()
            self.listener.links.write(self.broker, self.transport, ready)
        if self._closes:
            self.close()
        elif self._holds:
            self._look_at_unsent()
            if self._waiting_bytes <= UNSENT_BYTES:
                self.release(_ANSWERS)

    def _look_at_unsent(self) -> bool:
        """Count the unsent bytes; returns whether they have changed since the last check."""
        transport = self.transport
        left = transport.get_write_buffer_size() if transport is not None else 0
        change = self._waiting_bytes + left - self.unsent_bytes
        self.unsent_bytes += change
        self.listener.unsent_bytes += change
        return change != 0

    def room_for(self, wanted: int) -> int:
        """How many bytes of records an answer may have: 0 for one batch, -1 for none."""
        if self.unsent_bytes > UNSENT_BYTES:
            return -1
        return 0 if self.listener.unsent_bytes > MOST_UNSENT_BYTES else wanted

    def hold(self, reason: str) -> None:
        """Stop reading until this reason is gone."""
        if not self._holds and self.transport is not None and self.transport.is_reading():
            self.transport.pause_reading()
        self._holds[reason] = None

    def release(self, reason: str) -> None:
        """One reason is gone; reading continues when none is left."""
        self._holds.pop(reason, None)
        if self._holds or self.transport is None:
            return
        if self._untaken:
            # Not now: the caller may be inside the handler of another request.
            self.listener.loop.call_soon(self._go_on)
        else:
            self.transport.resume_reading()

    def _go_on(self) -> None:
        frames, self._untaken = self._untaken, []
        for place, frame in enumerate(frames):
            if self._holds:
                self._untaken = frames[place:]
                return
            self._take(frame)
        if not self._holds and self.transport is not None:
            self.transport.resume_reading()

    def refuse(self, reason: str) -> None:
        """The input cannot be answered: log the reason, and disconnect."""
        self.listener.log.client_warning("request refused", self.sender, reason=reason)
        self.close()

    @property
    def sender(self) -> dict[str, object]:
        """The client, for log lines."""
        name, principal = self.listener.name, self.principal
        return {"client": self.host, "listener": name, "principal": principal}

    def stop_taking(self) -> None:
        """Accept no more requests; those in progress are answered."""
        self.hold(_ENDED)
        self._untaken.clear()

    def close(self) -> None:
        """Disconnect after sending the answers; requests in progress are dropped."""
        self._end()
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Disconnect immediately."""
        self._end()
        if self.transport is not None:
            self.transport.abort()

    def _end(self) -> None:
        """Ignore all further input."""
        self._holds[_ENDED] = None
        self._untaken.clear()

    def abort_if_idle(self, now_s: float, idle_s: float) -> None:
        """Disconnect if no byte was received or sent for this long."""
        if now_s - self.last_active_s <= idle_s:
            return
        if self._look_at_unsent():
            self.last_active_s = now_s
        else:
            self.abort()
