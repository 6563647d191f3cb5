"""`holdfast down`: stop a cluster that `holdfast up` runs."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

import click

from holdfast.cli import exit_codes
from holdfast.cli.asking import say
from holdfast.cli.cluster import pid_file
from holdfast.cli.cluster.up import refused
from holdfast.cli.errors import Failed
from holdfast.cli.options import data_dir_option, json_option
from holdfast.cli.tables import show_json
from holdfast.cluster import ClusterError
from holdfast.cluster.processes import manifest
from holdfast.cluster.processes.processes import ProcessId
from holdfast.cluster.waiting import wait_for

PATIENCE_S: Final = 90.0
"""Longer than `up` waits before it kills a broker that does not stop."""


@click.command(
    epilog=exit_codes.codes(
        {exit_codes.GOOD: "stopped", exit_codes.FAILED: "it does not run, or does not stop"}
    )
)
@data_dir_option
@json_option
def down(data_dir: Path, as_json: bool) -> None:
    """Stop all brokers in a controlled way, and wait until their processes are gone."""
    folder = data_dir.absolute()
    try:
        known = manifest.load(folder)
    except ClusterError as error:
        raise refused(error) from None
    owner = _owner(folder, known)
    brokers = [entry.process for entry in known.brokers if entry.process is not None]
    owner.signal(signal.SIGTERM)
    try:
        wait_for(lambda: _are_gone([owner, *brokers]), PATIENCE_S, lambda: _left([owner, *brokers]))
    except ClusterError as error:
        raise Failed(error.message) from None
    if as_json:
        show_json("holdfast-down/1", {"data_dir": str(folder), "pid": owner.pid})
    say(f"the cluster in {folder} is stopped")


def _owner(folder: Path, known: manifest.Manifest) -> ProcessId:
    """The `holdfast up` that runs. Failed if none does."""
    noted, owner = pid_file.read(folder), known.owner
    if owner is None or not owner.is_alive():
        stale = ""
        if noted is not None:
            pid_file.remove(folder)
            stale = f"; removed a stale pid file: process {noted} is gone"
        raise Failed(f"the cluster in {folder} is not running{stale}")
    if noted != owner.pid:
        raise Failed(
            f"the cluster in {folder} belongs to process {owner.pid}, which is no 'holdfast up'",
            hint="or it starts just now: wait; else end that program",
        )
    return owner


def _are_gone(processes: list[ProcessId]) -> bool | None:
    return True if not any(one.is_alive() for one in processes) else None


def _left(processes: list[ProcessId]) -> str:
    alive = ", ".join(str(one.pid) for one in processes if one.is_alive())
    return f"still running: process {alive}"
