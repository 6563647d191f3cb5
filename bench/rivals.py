"""The two systems side by side: three brokers each, on this machine, with the same settings.

Holdfast is started as a server is, by a properties file, without the control socket and the fault
switches of a test cluster. Kafka runs three combined KRaft nodes from the jars that Maven fetches
once into a cache folder (HOLDFAST_KAFKA_LIBS names another), with its default heap of 1 GiB. Both
clusters stay up; SIGSTOP keeps the one that is not measured from using the processors.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.support import kafka_jars
from tests.support.zookeeper import ZooKeeperServer

NODES: Final = (1, 2, 3)
COMMON: Final = """default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
offsets.topic.num.partitions=12
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
transaction.state.log.num.partitions=12
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
"""
"""What both get."""

KAFKA: Final = kafka_jars.VERSION
CLUSTER_ID: Final = "HoldfastBenchmark00001"
DIRECTORY_IDS: Final = tuple(f"JEXY6aqzQY-32P5TStza{letter}A" for letter in "ABC")
JAVA_OPTIONS: Final = (
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    *("-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"),
)
"""Those of Kafka's own start script."""

RECYCLED_BYTES: Final = 3 << 30
"""More than a measure writes with three replicas."""


class Rival(ABC):
    """Three brokers below one folder."""

    name: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {node: free_port() for node in NODES}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap(self) -> str:
        """What a client needs."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    @property
    def pids(self) -> dict[int, int]:
        """Processes of the brokers, killed ones too, by node."""
        return {node: process.pid for node, process in self._processes.items()}

    @abstractmethod
    def prepare(self) -> None:
        """Write the settings and what else an empty cluster needs."""

    @abstractmethod
    def command(self, node: int) -> list[str]:
        """How a broker is started."""

    def environment(self) -> dict[str, str]:
        """Variables that a broker needs."""
        return {}

    def start(self) -> None:
        """Start all three; they are not ready yet when this returns."""
        for node in NODES:
            self.run(node)

    def run(self, node: int) -> None:
        """Start one broker."""
        # A server's modules are compiled once, when it is installed.
        environment = {**os.environ, **self.environment()}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with (self.folder / f"{node}.out").open("ab") as output:
            self._processes[node] = subprocess.Popen(  # noqa: S603  # our own command lines
                self.command(node),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
            )

    def kill(self, node: int) -> None:
        """SIGKILL to one broker."""
        self._processes[node].kill()
        self._processes[node].wait()

    def suspend(self) -> None:
        """Stop the processes without ending them: they use no processor time."""
        for process in self._processes.values():
            process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let suspended processes run again."""
        for process in self._processes.values():
            process.send_signal(signal.SIGCONT)

    def leave(self) -> None:
        """Cleanly, to be started again."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait()
        self._processes.clear()

    def stop(self) -> None:
        """Kill the brokers and remove their data."""
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait()
        self._processes.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


class Holdfast(Rival):
    """Three brokers and the embedded store."""

    name = "Holdfast"

    def prepare(self) -> None:
        for node, port in self.ports.items():
            self._properties(node).write_text(
                f"node.id={node}\nlisteners=PLAINTEXT://127.0.0.1:{port}\n"
                f"log.dirs={self.folder / f'data-{node}'}\n{self.store()}\n{COMMON}"
            )

    def store(self) -> str:
        """The setting that names the coordination store."""
        return f"holdfast.store={self.folder / 'store.sqlite'}"

    def _properties(self, node: int) -> Path:
        return self.folder / f"server-{node}.properties"

    def command(self, node: int) -> list[str]:
        return [sys.executable, "-m", "holdfast", "server", "start", str(self._properties(node))]


class HoldfastBefore(Holdfast):
    """The same from another checkout, in the same environment."""

    name = "Holdfast before"
    checkout = Path()

    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.checkout / "src")}


class HoldfastOnZooKeeper(Holdfast):
    """Three brokers and one ZooKeeper server, with Kafka's default session timeout."""

    name = "Holdfast, ZooKeeper"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "zookeeper").mkdir()
        self._zookeeper = ZooKeeperServer(folder / "zookeeper")

    def prepare(self) -> None:
        self._zookeeper.start()
        super().prepare()

    def store(self) -> str:
        return f"zookeeper.connect={self._zookeeper.connect_string}"

    def stop(self) -> None:
        super().stop()
        self._zookeeper.stop()


class Kafka(Rival):
    """Three nodes, each broker and controller."""

    name = "Kafka"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._libraries = libraries()
        self._control = {node: free_port() for node in NODES}

    def prepare(self) -> None:
        voters = ",".join(f"127.0.0.1:{port}" for port in self._control.values())
        for node, port in self.ports.items():
            listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{self._control[node]}"
            self._properties(node).write_text(
                f"process.roles=broker,controller\nnode.id={node}\n"
                f"controller.quorum.bootstrap.servers={voters}\n"
                f"listeners={listeners}\nadvertised.listeners={listeners}\n"
                "inter.broker.listener.name=PLAINTEXT\ncontroller.listener.names=CONTROLLER\n"
                "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
                f"log.dirs={self.folder / f'data-{node}'}\n"
                "share.coordinator.state.topic.replication.factor=3\n"
                f"share.coordinator.state.topic.min.isr=2\n{COMMON}"
            )
        initial = ",".join(
            f"{node}@127.0.0.1:{self._control[node]}:{identity}"
            for node, identity in zip(NODES, DIRECTORY_IDS, strict=True)
        )
        for node in NODES:
            form = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID]
            form += ["-c", str(self._properties(node)), "--initial-controllers", initial]
            done = subprocess.run(  # noqa: S603
                self._java(["-Xmx256m"], form), capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr[-2000:]

    def _properties(self, node: int) -> Path:
        return self.folder / f"server-{node}.properties"

    def command(self, node: int) -> list[str]:
        return self._java(JAVA_OPTIONS, ["kafka.Kafka", str(self._properties(node))])

    def _java(self, options: Sequence[str], arguments: list[str]) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self._libraries / 'log4j2.yaml'}"
        return ["java", *options, logging, "-cp", f"{self._libraries}/*", *arguments]


RIVALS: Final[tuple[type[Rival], ...]] = (Holdfast, Kafka)
"""Those that take every measure."""


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def libraries() -> Path:
    """The folder with Kafka's jars, which the tests share."""
    try:
        return kafka_jars.libraries()
    except kafka_jars.NoJarsError as error:
        sys.exit(f"{error}; --only Holdfast can")


# What processes use.

_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Cpu(NamedTuple):
    """Processor time of processes, in seconds."""

    total: float
    system: float
    """The part spent in the kernel."""

    def since(self, before: Cpu) -> Cpu:
        """What has been used after `before` was read."""
        return Cpu(self.total - before.total, self.system - before.system)


def cpu_of(pids: Iterable[int]) -> Cpu:
    """Processor time of processes so far; a process that is gone counts as 0."""
    user, system = 0, 0
    for pid in pids:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
            fields = text[text.rindex(")") + 2 :].split()
            user += int(fields[11])
            system += int(fields[12])
    return Cpu((user + system) / _TICKS, system / _TICKS)


def memory_mb(pid: int) -> float:
    """Resident memory."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def sync_disks() -> None:
    """Write out dirty pages, so that no measure pays for the writes of another."""
    os.sync()
    time.sleep(0.5)


def recycle_memory() -> None:
    """Write to free memory and give it back, so that no measure pays for pages that the host lacks.

    In a virtual machine that returns its free memory to the host, the first write to such a page
    costs many times the kernel time of a write to one that was used a moment ago.
    """
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    written = b"\1" * min(RECYCLED_BYTES, free // 2)
    del written
