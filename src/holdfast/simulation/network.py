"""The network between simulated processes, with delays, disconnected links and reset connections.

Bytes of a connection arrive in order or not at all, as with TCP. A disconnected link holds bytes
back until it is reconnected, and neither end notices. A machine without power answers nothing.
After it restarts, a peer that writes to an old connection gets a reset. A write may arrive in
pieces.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from holdfast.broker.log_lines import LogLines
from holdfast.simulation.virtual_time_loop import SimLoop, Timeline

Address = tuple[str, int]

HIGH_BYTES: Final = 512 * 1024
"""A writer pauses when more bytes than this are under way in one direction."""
LOW_BYTES: Final = 128 * 1024
FIRST_RETRY_S: Final = 1.0
"""The time after which an unanswered connection attempt is repeated; doubled each time."""
END: Final = b""
"""Marks the end of a stream."""


class Network:
    """The listening sockets, the connections, and the faults of the links between hosts."""

    def __init__(self, timeline: Timeline, rng: Random, log: LogLines) -> None:
        self.kernel = SimLoop(timeline, self, "", rng, log)
        """Its timers carry bytes. It is no process's loop, so bytes outlast their sender."""
        self._rng = rng
        self.latency_s = 0.0005
        """The longest delay on a link without faults."""
        self.torn = 0.0
        """The probability that a write arrives in pieces."""
        self._slow: dict[tuple[str, str], float] = {}
        self._disconnected: dict[tuple[str, str], None] = {}
        self._dark: dict[str, None] = {}
        self._servers: dict[Address, SimServer] = {}
        self._links: dict[Link, None] = {}
        self._next_port = 40_000

    # Faults.

    def disconnect(self, source: str, target: str) -> None:
        """Hold back all bytes from `source` to `target`."""
        self._disconnected[source, target] = None

    def slow(self, source: str, target: str, seconds: float) -> None:
        """Delay all bytes from `source` to `target` by up to so many seconds more."""
        self._slow[source, target] = seconds

    def clear_faults(self) -> None:
        """Reconnect all links, remove all delays, and send what was held back."""
        self._disconnected.clear()
        self._slow.clear()
        self._move_on()

    def break_connections(self, hosts: Iterable[str], share: float) -> None:
        """Reset a share of the connections between these hosts."""
        chosen = dict.fromkeys(hosts)
        for link in tuple(self._links):
            if all(end.host in chosen for end in link.ends) and self._rng.random() < share:
                link.reset()

    def process_died(self, loop: SimLoop, *, powered: bool) -> None:
        """The operating system closes the process's sockets; without power it closes none."""
        for address, server in tuple(self._servers.items()):
            if server.loop is loop:
                del self._servers[address]
        for link in tuple(self._links):
            for end in link.ends:
                if end.loop is loop:
                    end.is_gone = True
                    if not powered:
                        end.out.drop()
                    elif not end.is_closed:
                        end.hang_up()

    def power(self, host: str, *, is_on: bool) -> None:
        if is_on:
            self._dark.pop(host, None)
            self._move_on()
        else:
            self._dark[host] = None

    def is_open(self, source: str, target: str) -> bool:
        """Whether bytes that are sent now arrive."""
        ways = self._disconnected
        return (
            (source, target) not in ways and target not in self._dark and source not in self._dark
        )

    def _move_on(self) -> None:
        for link in tuple(self._links):
            for end in link.ends:
                end.out.move_on()

    def delay_s(self, source: str, target: str) -> float:
        """A random delay for one piece of bytes."""
        slower = self._slow.get((source, target), 0.0) if self._slow else 0.0
        return (0.1 + 0.9 * self._rng.random()) * (self.latency_s + slower)

    def pieces(self, data: bytes) -> list[bytes]:
        """The pieces in which a write arrives."""
        if self.torn and len(data) > 1 and self._rng.random() < self.torn:
            place = self._rng.randrange(1, len(data))
            return [data[:place], data[place:]]
        return [data]

    # Connections.

    def listen(
        self, loop: SimLoop, factory: Callable[[], asyncio.BaseProtocol], address: Address
    ) -> SimServer:
        if address in self._servers:
            raise OSError(98, f"{address[0]}:{address[1]} is in use")
        server = self._servers[address] = SimServer(self, loop, factory, address)
        return server

    def closed(self, address: Address) -> None:
        self._servers.pop(address, None)

    async def connect(
        self, loop: SimLoop, factory: Callable[[], Any], address: Address
    ) -> tuple[SimTransport, Any]:
        source, target = loop.host, address[0]
        retry_s = FIRST_RETRY_S
        while not (self.is_open(source, target) and self.is_open(target, source)):
            await asyncio.sleep(retry_s)  # Until the caller cancels.
            retry_s *= 2
        await asyncio.sleep(self.delay_s(source, target) + self.delay_s(target, source))
        server = self._servers.get(address)
        if server is None:
            raise ConnectionRefusedError(111, f"nobody listens at {address[0]}:{address[1]}")
        self._next_port += 1
        protocol = factory()
        link = Link(self, protocol, loop, (source, self._next_port), server)
        self._links[link] = None
        server.loop.call_soon(link.accept)
        near = link.ends[0]
        protocol.connection_made(near)
        return near, protocol

    def forget(self, link: Link) -> None:
        self._links.pop(link, None)


@dataclass(slots=True, eq=False)
class SimServer:
    """A listening socket."""

    network: Network
    loop: SimLoop
    factory: Callable[[], asyncio.BaseProtocol]
    address: Address

    def close(self) -> None:
        self.network.closed(self.address)


class Link:
    """A connection and its two ends."""

    def __init__(
        self,
        network: Network,
        protocol: asyncio.BaseProtocol,
        loop: SimLoop,
        source: Address,
        server: SimServer,
    ) -> None:
        self.network = network
        self._server = server
        near = SimTransport(self, loop, server.address)
        far = SimTransport(self, server.loop, source)
        near.protocol = protocol
        near.other, far.other = far, near
        near.out = Stream(near, far)
        far.out = Stream(far, near)
        self.ends = (near, far)

    def accept(self) -> None:
        """The listening process accepts the connection, unless it is already lost."""
        far = self.ends[1]
        if not far.is_closed:
            far.protocol = self._server.factory()
            far.protocol.connection_made(far)

    def reset(self) -> None:
        """Break the connection: both ends get an error."""
        for end in self.ends:
            end.lose(ConnectionResetError(104, "the connection was reset"))

    def looked_at(self) -> None:
        """Forget the connection when both ends are closed or gone."""
        if all(end.is_closed or end.is_gone for end in self.ends):
            self.network.forget(self)


class Stream:
    """The bytes of a connection in one direction."""

    def __init__(self, source: SimTransport, target: SimTransport) -> None:
        self._source = source
        self._target = target
        self._queue: deque[tuple[float, bytes]] = deque()
        """Bytes under way, with their arrival times."""
        self._last_s = 0.0
        self._is_moving = False
        self.size = 0
        """Bytes that the reader has not taken yet."""

    @property
    def _network(self) -> Network:
        return self._source.link.network

    def send(self, data: bytes) -> None:
        """Send bytes, or END."""
        self.size += len(data)
        for piece in self._network.pieces(data) if data else (END,):
            self._queue.append((self._draw_s(), piece))
        self._move()

    def _draw_s(self) -> float:
        """The arrival time of what is sent now: never before that of earlier bytes."""
        delay_s = self._network.delay_s(self._source.host, self._target.host)
        self._last_s = max(self._last_s, self._network.kernel.time() + delay_s)
        return self._last_s

    def drop(self) -> None:
        """Discard everything under way."""
        self._queue.clear()

    def move_on(self) -> None:
        """The link is open again: send what was held back, with new delays."""
        if self._queue and not self._is_moving:
            self._queue = deque((self._draw_s(), data) for _, data in self._queue)
            self._move()

    def _move(self) -> None:
        if self._queue and not self._is_moving:
            self._is_moving = True
            self._network.kernel.call_at(self._queue[0][0], self._arrive)

    def _arrive(self) -> None:
        self._is_moving = False
        if not self._network.is_open(self._source.host, self._target.host):
            return
        if self._queue:
            _, data = self._queue.popleft()
            if self._target.is_gone:
                # The target's operating system has no such connection, and resets it.
                self._source.lose(ConnectionResetError(104, "no such connection"))
                return
            self._target.loop.call_soon(self._target.received, data)
        self._move()

    def taken(self, size: int) -> None:
        """The reader has taken so many bytes."""
        self.size -= size
        self._source.wrote()


class SimTransport(asyncio.Transport):
    """One end of a connection, as its process sees it."""

    other: SimTransport
    out: Stream

    def __init__(self, link: Link, loop: SimLoop, peer: Address) -> None:
        super().__init__()
        self.link = link
        self.loop = loop
        self.host = loop.host
        self.protocol: Any = None
        self.is_closed = False
        self.is_gone = False
        """Its process has died."""
        self._peer = peer
        self._is_reading = True
        self._unread: deque[bytes] = deque()
        self._is_paused = False

    # Called by the network.

    def received(self, data: bytes) -> None:
        """Take bytes or END; they wait while the process does not read."""
        self._unread.append(data)
        self._read_on()

    def _take(self, data: bytes) -> None:
        if data is END:
            self._close_out(None)
            return
        self.other.out.taken(len(data))
        protocol, place = self.protocol, 0
        while place < len(data) and not self.is_closed:
            buffer = protocol.get_buffer(-1)
            size = min(len(buffer), len(data) - place)
            buffer[:size] = data[place : place + size]
            protocol.buffer_updated(size)
            place += size

    def lose(self, error: Exception | None) -> None:
        """The connection is broken: its process gets the error, if the process still exists."""
        if not self.is_gone:
            self.loop.call_soon(self._close_out, error)
        self.out.drop()

    def _close_out(self, error: Exception | None) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.out.drop()
            self.link.looked_at()
            if self.protocol is not None:
                self.protocol.connection_lost(error)

    def hang_up(self) -> None:
        """Close after everything written so far has arrived."""
        self.out.send(END)
        self.is_closed = True

    def wrote(self) -> None:
        """The peer has read some bytes: resume writing if few are left."""
        if self._is_paused and self.out.size < LOW_BYTES and not self.is_closed:
            self._is_paused = False
            self.loop.call_soon(self.protocol.resume_writing)

    # asyncio's transport interface.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._peer if name == "peername" else default

    def is_closing(self) -> bool:
        return self.is_closed

    def is_reading(self) -> bool:
        return self._is_reading and not self.is_closed

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self.loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        while self._is_reading and self._unread and not self.is_closed:
            self._take(self._unread.popleft())

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self.is_closed or not data:
            return
        self.out.send(bytes(data))
        if self.out.size > HIGH_BYTES and not self._is_paused:
            self._is_paused = True
            self.protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self.out.size

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if not self.is_closed:
            self.hang_up()
            self._notify_closed()

    def abort(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.out.drop()
            self.out.send(END)
            self._notify_closed()

    def _notify_closed(self) -> None:
        self.loop.call_soon(self.protocol.connection_lost, None)
        self.loop.call_soon(self.link.looked_at)
