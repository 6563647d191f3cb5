"""Real brokers for tests: `holdfast server start` processes on loopback, one coordination store."""

from __future__ import annotations

import itertools
import socket
import subprocess
import sys
from pathlib import Path
from typing import TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from holdfast.cluster.processes.ports import Port
from holdfast.protocol import APIS, Request, Response, decode_response, encode_request
from tests.support.ending import ended
from tests.support.waiting import wait_until

QUIET = {"log_level": 0}
"""Ignores librdkafka's messages about brokers that a test has killed."""

Answer = TypeVar("Answer", bound=Response)


class Brokers:
    """Three brokers, by their ids 1 to 3."""

    def __init__(
        self,
        directory: Path,
        settings: dict[str, str] | None = None,
        *,
        descriptors: int | None = None,
    ) -> None:
        """`descriptors`: how many each process may have open, as `ulimit -n` sets it."""
        self._directory = directory
        self._descriptors = descriptors
        # Ours also while a broker is down, or a client that tries to reach it could get it.
        self._held = {number: Port() for number in (1, 2, 3)}
        self.ports = {number: port.number for number, port in self._held.items()}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._names = itertools.count()
        for number in self.ports:
            self._write_settings(number, settings or {})

    def _write_settings(self, number: int, more: dict[str, str]) -> None:
        settings = {
            "node.id": str(number),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[number]}",
            "log.dirs": str(self.log_dir(number)),
            "holdfast.store": str(self._directory / "store.sqlite"),
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": "3",
            "group.initial.rebalance.delay.ms": "50",
            "group.min.session.timeout.ms": "1000",
            **more,
        }
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self._directory / f"{number}.properties").write_text(text, encoding="utf-8")

    # Processes.

    def start(self, *numbers: int) -> None:
        """Start these, or all; returns when the cluster is whole."""
        for number in numbers or self.ports:
            with (self._directory / f"{number}.log").open("ab") as log:
                file = str(self._directory / f"{number}.properties")
                command = [sys.executable, "-m", "holdfast", "server", "start", file]
                if self._descriptors is not None:
                    limit = f'ulimit -n {self._descriptors} && exec "$0" "$@"'
                    command = ["sh", "-c", limit, *command]
                self._processes[number] = subprocess.Popen(command, stderr=log)
        wait_until(self._is_whole, "all brokers known to all", 120.0)

    def _is_whole(self) -> bool:
        alive = [number for number, one in self._processes.items() if one.poll() is None]
        return all(self._known_by(number) == len(alive) for number in alive)

    def _known_by(self, number: int) -> int:
        # A fresh client: librdkafka remembers an answer without a controller for a long time.
        address = f"127.0.0.1:{self.ports[number]}"
        try:
            known = AdminClient({"bootstrap.servers": address, **QUIET}).list_topics(timeout=2.0)
        except KafkaException:
            return 0
        return len(known.brokers) if known.controller_id > 0 else 0

    def kill(self, number: int) -> None:
        """As `kill -9` does it."""
        process = self._processes[number]
        process.kill()
        process.wait()

    def pid(self, number: int) -> int:
        """A running broker's process."""
        assert self._processes[number].poll() is None, self.log(number)
        return self._processes[number].pid

    def stop(self) -> None:
        """End all, cleanly where they still can."""
        for process in self._processes.values():
            process.terminate()
        for number, process in self._processes.items():
            ended(process, f"broker {number}")
        self._processes.clear()

    def close(self) -> None:
        """End all for good."""
        self.stop()
        for port in self._held.values():
            port.release()

    def log_dir(self, number: int) -> Path:
        """Where a broker keeps its partitions."""
        return self._directory / f"broker-{number}"

    def log(self, number: int) -> str:
        """A broker's log file as text."""
        return (self._directory / f"{number}.log").read_text(encoding="utf-8")

    # Clients.

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def new_name(self, opening: str) -> str:
        """A topic or group that no other test uses."""
        return f"{opening}-{next(self._names)}"

    def ask(self, number: int, request: Request, kind: type[Answer], version: int) -> Answer:
        """One request to one broker, and its answer."""
        parts = encode_request(request, version, correlation_id=7, client_id="test")
        with socket.create_connection(("127.0.0.1", self.ports[number]), 30.0) as connection:
            connection.sendall(b"".join(parts))
            length = int.from_bytes(_exactly(connection, 4), "big")
            frame = _exactly(connection, length)
        _, response = decode_response(frame, APIS[request.API_KEY], version)
        assert isinstance(response, kind)
        return response


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        assert more, "the broker has hung up"
        data += more
    return data
