"""Three nodes of Apache Kafka in the place of our brokers."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from holdfast.cluster.processes.ports import Port
from tests.support.brokers import QUIET
from tests.support.waiting import wait_until
from tests.unit.storage import kafka

START_S = 180.0


class KafkaBrokers:
    """Combined nodes; broker 1 to 3, all of them voters."""

    def __init__(self, folder: Path, settings: Mapping[str, str], count: int = 3) -> None:
        self.folder = folder
        # Ours also while a node is down, or a client that tries to reach it could get it.
        self._held = [(Port(), Port()) for _ in range(count)]
        self.ports = {node: port.number for node, (port, _) in enumerate(self._held, 1)}
        self._voters = {node: port.number for node, (_, port) in enumerate(self._held, 1)}
        self._settings = dict(settings)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def log_dir(self, broker: int) -> Path:
        """Where a broker keeps its partitions."""
        return self.folder / f"broker-{broker}"

    def start(self) -> None:
        """Returns when all serve."""
        for broker in self.ports:
            file = self._properties(broker)
            tool = ("kafka.tools.StorageTool", "format", "-t", kafka.CLUSTER, "-c", str(file))
            subprocess.run(kafka.java(*tool), check=True, capture_output=True, timeout=600)
        self.run(*self.ports)
        wait_until(self._is_whole, "all brokers are registered", START_S)

    def run(self, *brokers: int) -> None:
        """Start processes; returns when they listen."""
        for broker in brokers:
            with (self.folder / f"out-{broker}").open("ab") as out:
                self._processes[broker] = subprocess.Popen(
                    kafka.java("kafka.Kafka", str(self._file(broker)), memory="512m"),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                )
        for broker in brokers:
            port = self.ports[broker]
            wait_until(partial(kafka.listens, port), f"Kafka listens on {port}", START_S)

    def kill(self, broker: int) -> None:
        """SIGKILL."""
        process = self._processes.pop(broker)
        process.kill()
        process.wait()

    def signal(self, broker: int, number: int) -> None:
        """Stop a process with SIGSTOP, or let it go on."""
        self._processes[broker].send_signal(number)

    def _is_whole(self) -> bool:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, **QUIET})
        try:
            return len(admin.list_topics(timeout=5).brokers) == len(self.ports)
        except KafkaException:
            return False

    def close(self) -> None:
        """By SIGKILL: the last node of a quorum that is going waits long for the others."""
        for broker in list(self._processes):
            self.kill(broker)
        for port in (port for ports in self._held for port in ports):
            port.release()

    def _file(self, broker: int) -> Path:
        return self.folder / f"server-{broker}.properties"

    def _properties(self, broker: int) -> Path:
        voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in self._voters.items())
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(broker),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[broker]},"
            f"CONTROLLER://127.0.0.1:{self._voters[broker]}",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.log_dir(broker)),
            **self._settings,
        }
        file = self._file(broker)
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        file.write_text(text, encoding="utf-8")
        return file
