"""How a whole cluster is: every broker's own word, put together."""

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
    """Of a cluster that we own."""
    return status_of(cluster.data_dir)


def status_of(folder: Path) -> dict[str, Any]:
    """Of the cluster in a data directory, running or not; asks the brokers themselves.

    What leads is what a leader with the highest epoch says; a replica whose broker does not answer
    is missing from `replicas`.
    """
    known = manifest.load(folder)
    owner = known.owner
    with ThreadPoolExecutor(max(1, len(known.brokers))) as pool:
        told = list(pool.map(lambda entry: _ask(folder, entry), known.brokers))
    brokers = [_broker(entry, status) for entry, status in zip(known.brokers, told, strict=True)]
    return {
        "data_dir": str(folder),
        "is_running": owner is not None and owner.is_alive(),
        "bootstrap": ",".join(entry.address for entry in known.brokers),
        "store": known.store,
        "started_ms": known.started_ms,
        "brokers": brokers,
        "partitions": _partitions(known, told),
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


def _broker(entry: BrokerEntry, told: dict[str, Any] | None) -> dict[str, Any]:
    process = entry.process
    if process is None or not process.is_alive():
        state = "died" if entry.state == manifest.RUNNING else entry.state
    elif process.is_paused():
        state = manifest.PAUSED
    else:
        state = "silent" if told is None else told["state"]
    row: dict[str, Any] = {
        "id": entry.id,
        "address": entry.address,
        "pid": entry.pid if told is not None or state in (manifest.PAUSED, "silent") else None,
        "state": state,
        "epoch": None,
        "is_controller": False,
        "faults": [],
    }
    if told is not None:
        row["epoch"] = told["epoch"]
        row["is_controller"] = told["is_controller"]
        row["faults"] = _faults(told)
    return row


def _faults(told: dict[str, Any]) -> list[str]:
    faults = []
    for end, link in told["links"].items():
        for name in ("cut", "delay_s", "drop"):
            if link[name]:
                amount = "" if link[name] is True else f" {link[name]:g}"
                faults.append(f"{name.removesuffix('_s')}{amount} to {end}")
    faults += [
        f"disk {fault['kind']} {fault['below'] or fault['directory']}"
        for fault in told["disk_faults"]
    ]
    if told["store"] != "connected":
        faults.append(f"store {told['store']}")
    return faults


def _partitions(known: Manifest, told: list[dict[str, Any] | None]) -> list[dict[str, Any]]:
    replicas: dict[str, dict[int, dict[str, Any]]] = {}
    for entry, status in zip(known.brokers, told, strict=True):
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
