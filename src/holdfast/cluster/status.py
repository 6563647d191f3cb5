"""The status of a whole cluster, put together from every broker's own report."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from holdfast.cluster.processes import manifest
from holdfast.cluster.processes.broker_settings import files_of
from holdfast.cluster.processes.lifecycle import Lifecycle
from holdfast.cluster.processes.manifest import BrokerEntry, Manifest
from holdfast.cluster.testserver import line_client

PATIENCE_S: Final = 5.0


def cluster_status(cluster: Lifecycle) -> dict[str, Any]:
    """The status of a cluster that this process owns."""
    return status_of(cluster.data_dir)


def status_of(folder: Path) -> dict[str, Any]:
    """The status of the cluster in a data directory, running or not; asks the brokers themselves.

    The leader is the one that the replica with the highest leader epoch names; a replica whose
    broker does not answer is missing from `replicas`.
    """
    known = manifest.load(folder)
    owner = known.owner
    with ThreadPoolExecutor(max(1, len(known.brokers))) as pool:
        statuses = list(pool.map(lambda entry: _ask(folder, entry), known.brokers))
    brokers = [
        _broker(entry, status) for entry, status in zip(known.brokers, statuses, strict=True)
    ]
    return {
        "data_dir": str(folder),
        "is_running": owner is not None and owner.is_alive(),
        "bootstrap": ",".join(entry.address for entry in known.brokers),
        "store": known.store,
        "started_ms": known.started_ms,
        "brokers": brokers,
        "partitions": _partitions(known, statuses),
    }


def _ask(folder: Path, entry: BrokerEntry) -> dict[str, Any] | None:
    process = entry.process
    if process is None or not process.is_alive() or process.is_paused():
        return None
    try:
        path = files_of(folder, entry.id).control
        status: dict[str, Any] = line_client.ask(path, {"call": "status"}, PATIENCE_S)
    except line_client.NoAnswerError:
        return None
    return status


def _broker(entry: BrokerEntry, status: dict[str, Any] | None) -> dict[str, Any]:
    process = entry.process
    if process is None or not process.is_alive():
        state = "died" if entry.state == manifest.RUNNING else entry.state
    elif process.is_paused():
        state = manifest.PAUSED
    else:
        state = "silent" if status is None else status["state"]
    row: dict[str, Any] = {
        "id": entry.id,
        "address": entry.address,
        "pid": entry.pid if status is not None or state in (manifest.PAUSED, "silent") else None,
        "state": state,
        "metrics": _metrics(entry),
        "epoch": None,
        "is_controller": False,
        "faults": [],
    }
    if status is not None:
        row["epoch"] = status["epoch"]
        row["is_controller"] = status["is_controller"]
        row["faults"] = _faults(status)
    return row


def _metrics(entry: BrokerEntry) -> str | None:
    return f"http://{entry.host}:{entry.metrics_port}/metrics" if entry.metrics_port else None


def _faults(status: dict[str, Any]) -> list[str]:
    faults = []
    for end, link in status["links"].items():
        for name in ("cut", "delay_s", "drop"):
            if link[name]:
                amount = "" if link[name] is True else f" {link[name]:g}"
                faults.append(f"{name.removesuffix('_s')}{amount} to {end}")
    faults += [
        f"disk {fault['kind']} {fault['below'] or fault['directory']}"
        for fault in status["disk_faults"]
    ]
    if status["store"] != "connected":
        faults.append(f"store {status['store']}")
    return faults


def _partitions(known: Manifest, statuses: list[dict[str, Any] | None]) -> list[dict[str, Any]]:
    replicas: dict[str, dict[int, dict[str, Any]]] = {}
    for entry, status in zip(known.brokers, statuses, strict=True):
        for name, numbers in (status or {"partitions": {}})["partitions"].items():
            replicas.setdefault(name, {})[entry.id] = numbers
    rows = []
    for name, copies in sorted(replicas.items()):
        best = max(copies.values(), key=lambda it: (it["leader_epoch"], it["role"] == "leader"))
        rows.append(
            {
                "partition": name,
                "leader": best["leader"],
                "leader_epoch": best["leader_epoch"],
                "isr": best["isr"],
                "replicas": {str(broker): numbers for broker, numbers in sorted(copies.items())},
            }
        )
    return rows
