"""Chaos on three machines: a broker and a ZooKeeper server in each of three network namespaces.

Runs beside the switch, in its own process, because a process has one namespace:
`python -m tests.support.machines OPENING FOLDER SEED SECONDS` prints the check as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from holdfast.cli.cluster.chaos_output import as_data
from holdfast.cluster.chaos import Ground, Plan, play
from holdfast.cluster.chaos.fault_injection import NETWORK
from holdfast.cluster.processes.lifecycle import Home
from holdfast.pipeline.chaos_check import check
from tests.support.namespaces import MACHINES, SWITCH, Namespaces
from tests.support.zookeeper import ROOT, ZooKeeperServer

KINDS = (*NETWORK, *NETWORK, "kill", "power-loss", "pause", "stop")
"""The network more than anything else."""
BROKER_PORT, CLIENT_PORT, PEER_PORT, ELECTION_PORT = 9092, 2181, 2888, 3888


def chaos_on_machines(folder: Path, seed: int, seconds: float) -> tuple[dict[str, Any], str]:
    """The check as JSON, and the standard error."""
    with Namespaces() as machines:
        options = (machines.opening, str(folder), str(seed), str(seconds))
        done = subprocess.run(
            [*machines.command(SWITCH), sys.executable, "-m", "tests.support.machines", *options],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
    answer: dict[str, Any] = json.loads(done.stdout or "{}")
    return answer, done.stderr


def main(opening: str, folder: Path, seed: int, seconds: float) -> None:
    """Run chaos in the namespace of the switch."""
    machines = Namespaces(opening)
    with ExitStack() as cleanup:
        servers = [_server(machines, folder, machine) for machine in MACHINES]
        for server in servers:
            cleanup.callback(server.stop)
            server.launch()
        for server in servers:
            server.wait_serving()
        ground = Ground(
            homes={
                machine: Home(machines.address(machine), BROKER_PORT, machines.command(machine))
                for machine in MACHINES
            },
            store=f"zookeeper:{','.join(server.connect_string for server in servers)}",
            network=machines,
        )
        plan = Plan(folder=folder / "run", seed=seed, seconds=seconds, kinds=KINDS)
        happened = play(plan, lambda words: click.echo(words, err=True), ground)
    click.echo(json.dumps(as_data(check(happened))))


def _server(machines: Namespaces, folder: Path, machine: int) -> ZooKeeperServer:
    peers = "".join(
        f"server.{one}={machines.address(one)}:{PEER_PORT}:{ELECTION_PORT}\n" for one in MACHINES
    )
    home = folder / f"zookeeper-{machine}"
    (home / "data").mkdir(parents=True)
    (home / "data" / "myid").write_text(str(machine), encoding="utf-8")
    return ZooKeeperServer(
        home,
        host=machines.address(machine),
        port=CLIENT_PORT,
        more_settings=peers,
        command=machines.command(machine),
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
