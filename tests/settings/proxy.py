"""A proxy in front of one broker: sees every request of the others, and can block them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from holdfast.cluster.processes.ports import HOST
from holdfast.protocol import Request, request_start

Wanted = Callable[[str, Request], bool]
"""Selects requests, by the client's id."""


def _nothing(_client: str, _request: Request) -> bool:
    return False


class Proxy:
    """Listens, and forwards to one port."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self.seen: list[tuple[str, Request]] = []
        """Every request of a broker, with the broker's client id."""
        self.swallows: Wanted = _nothing
        """Requests that are not forwarded, and so never answered."""
        self.hangs_up: Wanted = _nothing
        """Requests that close their connection."""
        self._sockets: list[socket.socket] = []
        self._crowd: list[socket.socket] = []
        self._accepts = True
        threading.Thread(target=self._accept, daemon=True).start()

    def requests(self, client: str, kind: type[Request]) -> list[Request]:
        """The requests of one kind that a client has sent so far."""
        return [one for name, one in tuple(self.seen) if name == client and isinstance(one, kind)]

    def interfere(self, *, swallows: Wanted = _nothing, hangs_up: Wanted = _nothing) -> None:
        """Block or close requests, or without arguments stop that; closes all connections."""
        self.seen.clear()
        self.swallows, self.hangs_up = swallows, hangs_up
        if swallows is hangs_up is _nothing:
            self._hang_up()

    def black_hole(self) -> None:
        """From now on a connection attempt gets neither a connection nor an error."""
        self._accepts = False
        with socket.create_connection((HOST, self.port)):
            pass
        self._listener.listen(0)
        for _ in range(5):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex((HOST, self.port))
            self._crowd.append(one)
        self._hang_up()

    def serve(self) -> None:
        """End the black hole."""
        for one in self._crowd:
            one.close()
        self._crowd.clear()
        self._listener.listen(128)
        self._accepts = True
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._accepts = False
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._hang_up()

    def _hang_up(self) -> None:
        sockets, self._sockets = self._sockets, []
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    # Threads: one accepts, and each connection has one in either direction.

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if not self._accepts:
                    client.close()
                    return
                try:
                    broker = socket.create_connection((HOST, self._target))
                except ConnectionError:  # The broker is down: close the connection.
                    client.close()
                    continue
                self._sockets += [client, broker]
                threading.Thread(target=self._requests, args=(client, broker), daemon=True).start()
                threading.Thread(target=_pass_on, args=(broker, client), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket) -> None:
        with suppress(OSError):
            while size := client.recv(4, socket.MSG_WAITALL):
                frame = client.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
                api, version, _, client_id, position = request_start(bytearray(frame))
                request, _ = api.request.decode_from(frame, version, position)
                name = client_id or ""
                self.seen.append((name, request))
                if self.hangs_up(name, request):
                    break
                if not self.swallows(name, request):
                    broker.sendall(size + frame)
        for one in (client, broker):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _pass_on(broker: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while data := broker.recv(1 << 20):
            client.sendall(data)
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
