"""Apache Kafka's jars, fetched by Maven once per machine, for oracles and for the benchmark.

Several test workers may want them at the same time on a fresh machine: one fetches, the others
wait, and what is half there never looks whole.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

VERSION: Final = "4.3.1"
LOGGING: Final = "2.24.3"
ARTIFACTS: Final = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    ("org.apache.kafka", "kafka-tools", VERSION),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", LOGGING),
    ("org.apache.logging.log4j", "log4j-core", LOGGING),
    ("org.apache.logging.log4j", "log4j-1.2-api", LOGGING),
)
QUIET: Final = """
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


class NoJarsError(Exception):
    """Why the jars are not available here."""


@contextmanager
def alone(wanted: Path) -> Iterator[None]:
    """Hold a lock beside what is to be made, against other processes that want it too."""
    wanted.parent.mkdir(parents=True, exist_ok=True)
    with (wanted.parent / f".{wanted.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def libraries() -> Path:
    """The folder with all of them (HOLDFAST_KAFKA_LIBS names another), and a quiet log4j2.yaml."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise NoJarsError(f"{tool} is not here, and Kafka cannot run without it")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = Path(os.environ.get("HOLDFAST_KAFKA_LIBS", cache / "holdfast" / f"kafka-{VERSION}"))
    with alone(folder):
        if not (folder / "complete").exists():
            _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, name, version in ARTIFACTS
    )
    (folder / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId>"
        "<artifactId>oracle</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{wanted}</dependencies></project>"
    )
    (folder / "log4j2.yaml").write_text(QUIET)
    command = ["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={folder}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NoJarsError(f"Kafka's jars could not be fetched: {done.stdout[-300:]}")
    (folder / "complete").touch()
