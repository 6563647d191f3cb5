"""Apache Kafka itself, as an oracle: its dump tool, and a node that writes logs.

The jars are fetched by Maven, once, into a cache folder (HOLDFAST_KAFKA_LIBS names another). The
tests that need them are slow, and are skipped aloud where Java or Maven is missing.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

VERSION = "4.3.1"
LOGGING = "2.24.3"
CLUSTER = "HoldfastTestCluster001"
_ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    ("org.apache.kafka", "kafka-tools", VERSION),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", LOGGING),
    ("org.apache.logging.log4j", "log4j-core", LOGGING),
    ("org.apache.logging.log4j", "log4j-1.2-api", LOGGING),
)
_QUIET = """
Configuration:
  status: error
  Appenders:
    Console:
      name: out
      target: SYSTEM_ERR
      PatternLayout: {pattern: "%d %p %m%n"}
  Loggers:
    Root:
      level: warn
      AppenderRef: {ref: out}
"""


def libraries() -> Path:
    """The folder with Kafka's jars, filled at the first call on a machine."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not here; Kafka's own tools cannot be asked")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = Path(os.environ.get("HOLDFAST_KAFKA_LIBS", cache / "holdfast" / f"kafka-{VERSION}"))
    if not (folder / "complete").exists():
        _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, name, version in _ARTIFACTS
    )
    (folder / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId>"
        "<artifactId>oracle</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{wanted}</dependencies></project>"
    )
    (folder / "log4j2.yaml").write_text(_QUIET)
    command = ["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={folder}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"Kafka's jars could not be fetched: {done.stdout[-300:]}")
    (folder / "complete").touch()


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
    """What DumpLogSegments says of some files."""
    names = ",".join(str(path) for path in files)
    command = java("org.apache.kafka.tools.DumpLogSegments", "--files", names, *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


class Node(NamedTuple):
    """A running Kafka."""

    bootstrap: str
    process: subprocess.Popen[bytes]

    def copy(self, source: Path, target: Path) -> None:
        """What a kill at this moment would leave; the process stands still meanwhile."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(".lock"))
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextmanager
def node(folder: Path) -> Iterator[Node]:
    """A single Kafka node with its logs in `folder`/data; ends by SIGTERM, which is clean."""
    ports = (free_port(), free_port())
    properties = folder / "server.properties"
    properties.write_text(
        f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{ports[1]}
listeners=PLAINTEXT://127.0.0.1:{ports[0]},CONTROLLER://127.0.0.1:{ports[1]}
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
    subprocess.run(form, check=True, capture_output=True, timeout=120)
    with (folder / "server.out").open("wb") as out:
        process = subprocess.Popen(
            java("kafka.Kafka", str(properties), memory="512m"), stdout=out, stderr=out
        )
        try:
            _await_port(process, ports[0])
            yield Node(f"127.0.0.1:{ports[0]}", process)
        finally:
            process.terminate()
            process.wait(timeout=60)


def _await_port(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "Kafka has ended"
        if listens(port):
            return
    raise AssertionError("Kafka does not listen")


def listens(port: int) -> bool:
    """Whether somebody answers on a loopback port."""
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
