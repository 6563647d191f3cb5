"""Real brokers under attack: the checks after every attack."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from holdfast.cluster import Cluster
from holdfast.protocol import Request, encode_request
from holdfast.protocol.messages.api_versions import ApiVersionsRequest

KEPT: Final = "kept"
"""The honest client's topic: no hostile client names it."""
MIB: Final = 1024 * 1024
DEADLINE_S: Final = 300.0
_ALARM: Final = re.compile(r"Traceback|^\S+ error ", re.MULTILINE)


class Town:
    """A cluster and its honest client."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._sent = 0
        cluster.create_topic(KEPT)
        self.honest_work()

    def honest_work(self) -> None:
        """Over separate connections: a record is acknowledged, and all can be read."""
        self._sent += 1
        self.cluster.produce(KEPT, [f"honest {self._sent}"])
        assert len(self.cluster.consume(KEPT)) == self._sent
        self.cluster.assert_no_acked_loss()

    def check(self) -> None:
        """Every broker runs, serves, and has logged no bug."""
        self.honest_work()
        assert not self.cluster.died()
        for broker in self.cluster.brokers:
            alarm = _ALARM.search(self.said(broker))
            assert alarm is None, self.said(broker)[alarm.start() :][:4000]

    def said(self, broker: int = 1) -> str:
        return self.cluster.files(broker).output.read_text(encoding="utf-8")

    def pid(self, broker: int = 1) -> int:
        return self.cluster.entry(broker).pid

    # Hostile clients.

    def connect(self, broker: int = 1) -> socket.socket:
        address = ("127.0.0.1", self.cluster.entry(broker).port)
        return socket.create_connection(address, DEADLINE_S)

    def descriptors(self, broker: int = 1) -> int:
        """The number of open descriptors."""
        return sum(1 for _ in Path(f"/proc/{self.pid(broker)}/fd").iterdir())

    def sockets(self, broker: int = 1) -> int:
        """The number of sockets among them."""
        found = 0
        for entry in Path(f"/proc/{self.pid(broker)}/fd").iterdir():
            with suppress(FileNotFoundError):
                found += entry.readlink().name.startswith("socket:")
        return found

    @contextmanager
    def memory_within(self, most_bytes: int, broker: int = 1) -> Iterator[None]:
        """A broker's memory never grows by more than this."""
        folder = Path(f"/proc/{self.pid(broker)}")
        (folder / "clear_refs").write_text("5")  # reset the peak
        before = _status(folder, "VmRSS")
        yield
        grown = _status(folder, "VmHWM") - before
        assert grown <= most_bytes, f"{grown / MIB:.1f} MiB more, {most_bytes / MIB:.1f} allowed"


def _status(folder: Path, name: str) -> int:
    [line] = [
        one for one in (folder / "status").read_text().splitlines() if one.startswith(f"{name}:")
    ]
    return int(line.split()[1]) * 1024


def wire(request: Request, version: int, number: int = 1) -> bytes:
    """The frame of a request."""
    return b"".join(encode_request(request, version, correlation_id=number, client_id="stranger"))


def is_answered(connection: socket.socket) -> bool:
    """Whether a small request over this connection gets its answer."""
    try:
        connection.sendall(wire(ApiVersionsRequest(), 0))
        return is_answer(connection)
    except ConnectionError:
        return False


def is_answer(connection: socket.socket) -> bool:
    """Whether a whole answer arrives."""
    size = connection.recv(4, socket.MSG_WAITALL)
    left = int.from_bytes(size, "big")
    return bool(size) and len(connection.recv(left, socket.MSG_WAITALL)) == left


def is_hung_up(connection: socket.socket) -> bool:
    """Wait until the broker closes the connection; ignore its answers."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    return True
