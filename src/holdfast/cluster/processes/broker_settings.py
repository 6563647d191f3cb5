"""The settings of a cluster's brokers, and the paths of their files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.broker.settings import load
from holdfast.cluster.errors import ClusterError
from holdfast.cluster.processes.manifest import ZOOKEEPER, BrokerEntry, Manifest

OWN_SETTINGS: Final = (
    *("node.id", "broker.id", "listeners", "advertised.listeners", "log.dirs", "log.dir"),
    *("zookeeper.connect", "holdfast.store", "holdfast.trace", "holdfast.control"),
    "holdfast.metrics.listener",
)
"""Settings that differ between brokers; a cluster sets them itself."""

OFFSETS_PARTITIONS: Final = 12
"""Kafka's 50 partitions are for large clusters; on one machine they only slow down the first group.
"""


class BrokerFiles(NamedTuple):
    """The paths of one broker."""

    folder: Path
    log_dirs: int = 1
    """The number of log directories."""

    @property
    def properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def logs(self) -> tuple[Path, ...]:
        """All its log directories; `log` is the first."""
        more = (self.folder / f"log-{number}" for number in range(2, self.log_dirs + 1))
        return (self.log, *more)

    @property
    def control(self) -> Path:
        return self.folder / "control"

    @property
    def output(self) -> Path:
        return self.folder / "output.txt"


def files_of(folder: Path, broker: int, log_dirs: int = 1) -> BrokerFiles:
    """The paths of one broker below a data directory."""
    return BrokerFiles(folder / "brokers" / str(broker), log_dirs)


def trace_of(folder: Path, broker: int) -> Path:
    """A broker's own trace."""
    return folder / "traces" / f"broker-{broker}.trace"


def defaults(brokers: int) -> dict[str, str]:
    """Safe defaults for this many brokers."""
    copies, least = str(min(3, brokers)), str(min(2, brokers))
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": least,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
        # As in the server.properties that Kafka ships: do not wait for more members.
        "group.initial.rebalance.delay.ms": "0",
    }


def properties(folder: Path, manifest: Manifest, entry: BrokerEntry) -> dict[str, str]:
    """The settings of one broker."""
    broker, files = entry.id, files_of(folder, entry.id, manifest.log_dirs)
    own = {
        "node.id": str(broker),
        "listeners": f"PLAINTEXT://{entry.address}",
        "log.dirs": ",".join(map(str, files.logs)),
        "holdfast.control": str(files.control),
    }
    if manifest.store.startswith(ZOOKEEPER):
        own["zookeeper.connect"] = manifest.store.removeprefix(ZOOKEEPER)
    else:
        own["holdfast.store"] = str(folder / "store.sqlite")
    if entry.metrics_port:
        own["holdfast.metrics.listener"] = f"{entry.host}:{entry.metrics_port}"
    if manifest.trace:
        own["holdfast.trace"] = str(trace_of(folder, broker))
    return {**defaults(len(manifest.brokers)), **manifest.config, **own}


def check_config(config: Mapping[str, str]) -> None:
    """Refuse settings that differ between brokers; values are checked when a broker starts."""
    for name in config:
        if name in OWN_SETTINGS:
            raise ClusterError(
                f"{name} cannot be set for a whole cluster: every broker gets its own",
                hint="leave it out",
            )


def rendered(settings: Mapping[str, str]) -> str:
    """The text of a server.properties. ClusterError if a broker could not start with it."""
    text = "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())
    loaded = load(text, (), title="server.properties")
    if loaded.errors:
        problems = "; ".join(problem.text for problem in loaded.errors)
        raise ClusterError(f"impossible settings: {problems}", hint="correct --config")
    return text


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
