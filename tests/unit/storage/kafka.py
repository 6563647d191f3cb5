"""Apache Kafka itself, as an oracle: its dump tool, and a node that writes logs.

The tests that need it are slow, and are skipped, with a message, if Java or Maven is missing.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from holdfast.cluster.processes.processes import identify
from tests.support import kafka_jars
from tests.support.ending import ended
from tests.support.ports import held_port
from tests.support.waiting import wait_until

CLUSTER = "HoldfastTestCluster001"
START_S = 180.0


def libraries() -> Path:
    """The folder with Kafka's jars; skips the test, with a message, if they are missing."""
    try:
        return kafka_jars.libraries()
    except kafka_jars.NoJarsError as error:
        pytest.skip(str(error))


def java(*arguments: str, memory: str = "256m") -> list[str]:
    """The command line for one of Kafka's main classes."""
    folder = libraries()
    return [
        "java",
        f"-Xmx{memory}",
        "-XX:+UseSerialGC",
        f"-Dlog4j2.configurationFile={folder / 'log4j2.yaml'}",
        "-cp",
        f"{folder}/*",
        *arguments,
    ]


def dump(files: list[Path], *options: str) -> str:
    """The output of DumpLogSegments for some files."""
    names = ",".join(str(path) for path in files)
    command = java("org.apache.kafka.tools.DumpLogSegments", "--files", names, *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


class Node(NamedTuple):
    """A running Kafka."""

    bootstrap: str
    process: subprocess.Popen[bytes]

    def copy(self, source: Path, target: Path) -> None:
        """A copy of what a kill now would leave; the process is stopped meanwhile."""
        known = identify(self.process.pid)
        assert known is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            wait_until(known.is_paused, "Kafka stands still")
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(".lock"))
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextmanager
def node(folder: Path) -> Iterator[Node]:
    """A single Kafka node with its logs in `folder`/data; ends by SIGTERM, which is clean."""
    with held_port() as port, held_port() as voter, (folder / "server.out").open("wb") as out:
        process = _started(folder, port, voter, out)
        try:
            wait_until(lambda: _listens(process, port), "Kafka listens", START_S)
            yield Node(f"127.0.0.1:{port}", process)
        finally:
            process.terminate()
            ended(process, f"Kafka in {folder}")


def _started(folder: Path, port: int, voter: int, out: IO[bytes]) -> subprocess.Popen[bytes]:
    properties = folder / "server.properties"
    properties.write_text(
        f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{voter}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{voter}
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder / "data"}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
log.cleaner.backoff.ms=100
log.initial.task.delay.ms=100
log.retention.check.interval.ms=500
"""
    )
    form = java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(properties))
    subprocess.run(form, check=True, capture_output=True, timeout=600)
    command = java("kafka.Kafka", str(properties), memory="512m")
    return subprocess.Popen(command, stdout=out, stderr=out)


def _listens(process: subprocess.Popen[bytes], port: int) -> bool:
    assert process.poll() is None, "Kafka has ended"
    return listens(port)


def listens(port: int) -> bool:
    """Whether a process listens on a loopback port."""
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
