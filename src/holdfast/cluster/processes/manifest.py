"""The cluster's own file, cluster.json: its brokers, its settings and the process that runs it.

With it a cluster can be found from its data directory alone.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from holdfast.cluster.errors import ClusterError
from holdfast.cluster.processes.ports import HOST
from holdfast.cluster.processes.processes import ProcessId

SCHEMA: Final = "holdfast-cluster/1"
FILE: Final = "cluster.json"
EMBEDDED: Final = "embedded"
ZOOKEEPER: Final = "zookeeper:"

RUNNING: Final = "running"
PAUSED: Final = "paused"
STOPPED: Final = "stopped"
KILLED: Final = "killed"
POWER_LOST: Final = "power-lost"
STATES: Final = (RUNNING, PAUSED, STOPPED, KILLED, POWER_LOST)


@dataclass(slots=True)
class BrokerEntry:
    """One broker, as the cluster's owner recorded it."""

    id: int
    port: int
    """Chosen once, then kept."""
    state: str = STOPPED
    """The last action on it; a broker that died by itself is still `running` here."""
    pid: int = 0
    began: str = ""
    host: str = HOST
    metrics_port: int = 0
    """Where Prometheus reads its metrics, chosen once like the port; 0 if it serves none."""

    @property
    def address(self) -> str:
        """Its address for clients."""
        return f"{self.host}:{self.port}"

    @property
    def process(self) -> ProcessId | None:
        """The process that was last started for it."""
        return ProcessId(self.pid, self.began) if self.pid else None


@dataclass(slots=True)
class Manifest:
    """What cluster.json holds."""

    store: str = EMBEDDED
    """`embedded`, or `zookeeper:HOST:PORT/folder`."""
    config: dict[str, str] = field(default_factory=dict)
    """Settings of every broker beyond the defaults."""
    trace: bool = False
    metrics: bool = False
    """Whether the brokers serve metrics."""
    log_dirs: int = 1
    """Log directories of each broker."""
    brokers: list[BrokerEntry] = field(default_factory=list)
    started_ms: int = 0
    owner_pid: int = 0
    """The process that started the cluster and ends with it."""
    owner_began: str = ""

    @property
    def owner(self) -> ProcessId | None:
        return ProcessId(self.owner_pid, self.owner_began) if self.owner_pid else None

    def save(self, folder: Path) -> None:
        """Replace the file atomically: a reader sees the old one or the new one."""
        temporary = folder / f"{FILE}.tmp"
        text = json.dumps({"schema": SCHEMA, **asdict(self)}, indent=2)
        temporary.write_text(f"{text}\n", encoding="utf-8")
        os.replace(temporary, folder / FILE)  # noqa: PTH105  # the one that replaces, by name


def load(folder: Path) -> Manifest:
    """ClusterError if there is no cluster, or its file cannot be read."""
    path = folder / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return _parsed(content)
    except FileNotFoundError:
        raise ClusterError(
            f"there is no cluster in {folder}",
            hint="start one with 'holdfast up', or name its --data-dir",
        ) from None
    except OSError as error:
        raise ClusterError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise ClusterError(
            f"{path} is not a cluster's file ({error})",
            hint="restore it, or move the directory away to start again",
        ) from None


def _parsed(content: Any) -> Manifest:
    if not isinstance(content, dict) or content.pop("schema", None) != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA}")
    brokers = [BrokerEntry(**entry) for entry in content.pop("brokers")]
    manifest = Manifest(**content, brokers=brokers)
    numbers = [value for entry in brokers for value in (entry.id, entry.port, entry.pid)]
    numbers += [entry.metrics_port for entry in brokers]
    numbers.append(manifest.log_dirs)
    if not all(type(value) is int and value >= 0 for value in numbers):
        raise ValueError("an id, port or pid is not a number")
    if not all(type(entry.host) is str for entry in brokers):
        raise TypeError("a host is not text")
    if any(entry.state not in STATES for entry in brokers):
        raise ValueError("a broker has an unknown state")
    if type(manifest.config) is not dict or type(manifest.store) is not str:
        raise TypeError("config or store is not what it should be")
    return manifest
