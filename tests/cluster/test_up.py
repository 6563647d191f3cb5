"""`holdfast up`, `fault` and `status` as programs: what they print, and what they leave behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast.cluster import Cluster
from holdfast.cluster.processes import manifest
from holdfast.cluster.processes.ports import are_free
from holdfast.cluster.processes.processes import ProcessId
from holdfast.cluster.waiting import wait_for

pytestmark = pytest.mark.slow

HOLDFAST = [sys.executable, "-m", "holdfast"]
ANY_PORT = ("--port", "0")
"""Other tests run beside these."""
Process = subprocess.Popen[str]


class Up:
    """A running `holdfast up`."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        ports = () if "--port" in options else ANY_PORT
        command = [*HOLDFAST, "up", *ports, "--data-dir", str(folder), *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.bootstrap = self.process.stdout.readline().strip()

    def brokers(self) -> list[ProcessId]:
        entries = manifest.load(self.folder).brokers
        return [entry.process for entry in entries if entry.process is not None]

    def end(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        _, words = self.process.communicate(timeout=600)
        return self.process.returncode, words


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    running = Up(tmp_path / "data")
    yield running
    if running.process.poll() is None:
        running.end(signal.SIGKILL)


def holdfast(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HOLDFAST, *arguments], capture_output=True, text=True, check=False, timeout=600
    )


def status(up: Up) -> Any:
    return json.loads(holdfast("status", "--json", "--data-dir", str(up.folder)).stdout)


def all_are_gone(processes: list[ProcessId]) -> bool | None:
    return True if not any(process.is_alive() for process in processes) else None


def test_one_line_on_stdout_says_where_the_cluster_is(up: Up) -> None:
    addresses = up.bootstrap.split(",")
    assert len(addresses) == 3
    for address in addresses:
        host, _, port = address.rpartition(":")
        socket.create_connection((host, int(port)), 60).close()
    report = status(up)
    assert report["bootstrap"] == up.bootstrap
    assert report["is_running"]
    assert [broker["state"] for broker in report["brokers"]] == ["running"] * 3
    assert sum(broker["is_controller"] for broker in report["brokers"]) == 1


def test_each_broker_serves_its_metrics(up: Up) -> None:
    for broker in status(up)["brokers"]:
        with urllib.request.urlopen(broker["metrics"], timeout=60) as page:
            assert f'node_id="{broker["id"]}"' in page.read().decode()


def test_ctrl_c_stops_all_and_the_next_start_goes_on(up: Up) -> None:
    brokers = up.brokers()
    metrics = [broker["metrics"] for broker in status(up)["brokers"]]
    code, words = up.end(signal.SIGINT)
    assert code == 0, words
    assert not any(broker.is_alive() for broker in brokers)
    assert holdfast("status", "--data-dir", str(up.folder)).returncode == 1
    again = Up(up.folder)
    try:
        assert again.bootstrap == up.bootstrap
        assert [broker["metrics"] for broker in status(again)["brokers"]] == metrics
    finally:
        assert again.end(signal.SIGTERM)[0] == 0


@pytest.mark.parametrize("paused", [False, True])
def test_killing_it_leaves_no_orphan(up: Up, paused: bool) -> None:
    brokers = up.brokers()
    assert len(brokers) == 3
    if paused:
        assert holdfast("fault", "pause", "2", "--data-dir", str(up.folder)).returncode == 0
    up.end(signal.SIGKILL)
    wait_for(lambda: all_are_gone(brokers), 60, lambda: "a broker is still running")
    done = holdfast("fault", "kill", "1", "--data-dir", str(up.folder))
    assert done.returncode == 64
    assert "is not running" in done.stderr


def test_a_detached_cluster_runs_until_it_is_taken_down(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    started = holdfast("up", "--detach", *ANY_PORT, "--json", "--data-dir", str(folder))
    assert started.returncode == 0, started.stderr
    report = json.loads(started.stdout)
    processes = [one.process for one in manifest.load(folder).brokers]
    assert report["pid"] == int((folder / "holdfast.pid").read_text())
    assert len(report["bootstrap"].split(",")) == 3
    down = holdfast("down", "--data-dir", str(folder))
    assert down.returncode == 0, down.stderr
    assert all(one is not None and not one.is_alive() for one in processes)
    assert not (folder / "holdfast.pid").exists()
    assert "stopping" in (folder / "up.log").read_text()
    again = holdfast("down", "--data-dir", str(folder))
    assert (again.returncode, "is not running" in again.stderr) == (1, True)


def test_a_detached_cluster_that_cannot_start_says_why(tmp_path: Path) -> None:
    words = ("--detach", "--data-dir", str(tmp_path / "new"), "--config", "no.such=1")
    done = holdfast("up", *words)
    assert (done.returncode, done.stdout) == (64, "")
    assert "no.such" in done.stderr


def test_down_stops_a_cluster_in_a_terminal_too(up: Up) -> None:
    done = holdfast("down", "--data-dir", str(up.folder), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pid"] == up.process.pid
    up.process.communicate(timeout=60)
    assert up.process.returncode == 0


def test_a_stale_pid_file_is_said_and_removed(up: Up) -> None:
    brokers, pid = up.brokers(), up.process.pid
    up.end(signal.SIGKILL)
    wait_for(lambda: all_are_gone(brokers), 60, lambda: "a broker is still running")
    done = holdfast("down", "--data-dir", str(up.folder))
    assert done.returncode == 1
    assert f"removed a stale pid file: process {pid} is gone" in done.stderr
    assert "pid file" not in holdfast("down", "--data-dir", str(up.folder)).stderr


def test_down_leaves_a_cluster_of_another_program_alone(tmp_path: Path) -> None:
    with Cluster(tmp_path / "data", brokers=1) as cluster:
        done = holdfast("down", "--data-dir", str(tmp_path / "data"))
        assert done.returncode == 1
        assert f"belongs to process {os.getpid()}" in done.stderr
        assert cluster.is_running(1)


def test_ports_follow_the_first_one(tmp_path: Path) -> None:
    first = next(one for one in range(20_000, 30_000, 7) if are_free(one, 2))
    running = Up(tmp_path / "data", "--brokers", "2", "--port", str(first))
    try:
        assert running.bootstrap == f"127.0.0.1:{first},127.0.0.1:{first + 1}"
    finally:
        running.end(signal.SIGTERM)
    done = holdfast("up", "--data-dir", str(tmp_path / "data"), "--port", str(first + 1))
    assert done.returncode == 64
    assert "listen on their own ports" in done.stderr


def test_a_used_port_lets_a_new_cluster_listen_on_others(tmp_path: Path) -> None:
    with ExitStack() as held:
        with suppress(OSError):  # where it is in use already, it is as well
            held.enter_context(socket.create_server(("127.0.0.1", 9092)))
        words = ("up", "--detach", "--brokers", "1", "--data-dir", str(tmp_path / "data"))
        done = holdfast(*words)
        assert done.returncode == 0, done.stderr
        assert "port 9092 is in use" in done.stderr
        assert done.stdout.strip() != "127.0.0.1:9092"
    assert holdfast("down", "--data-dir", str(tmp_path / "data")).returncode == 0


def test_a_broker_killed_on_purpose_stays_dead_until_it_is_restarted(up: Up) -> None:
    folder = ("--data-dir", str(up.folder))
    assert holdfast("fault", "kill", "2", *folder).returncode == 0
    assert [broker["state"] for broker in status(up)["brokers"]] == ["running", "killed", "running"]
    done = holdfast("fault", "kill", "2", *folder)
    assert (done.returncode, "does not run" in done.stderr) == (64, True)
    assert holdfast("fault", "restart", "2", *folder).returncode == 0
    assert [broker["state"] for broker in status(up)["brokers"]] == ["running"] * 3


def test_faults_are_shown_and_ended(up: Up) -> None:
    folder = ("--data-dir", str(up.folder))
    for command in (
        ("delay", "1", "--ms", "50", "--to", "2"),
        ("drop", "2", "--probability", "0.5", "--to", "clients"),
        ("partition", "1,2"),
        ("disk-full", "3", "--partition", "t-0"),
        ("slow-flush", "3", "--partition", "t-1"),
    ):
        done = holdfast("fault", *command, *folder)
        assert done.returncode == 0, done.stderr
    faults = {broker["id"]: broker["faults"] for broker in status(up)["brokers"]}
    assert faults == {
        1: ["delay 0.05 to 2", "cut to 3"],
        2: ["drop 0.5 to clients", "cut to 3"],
        3: ["cut to 1", "cut to 2", "disk full t-0", "disk slow-flush t-1"],
    }
    assert holdfast("fault", "heal", *folder).returncode == 0
    assert [broker["faults"] for broker in status(up)["brokers"]] == [[], [], []]
    table = holdfast("status", *folder)
    assert (table.returncode, "the controller" in table.stdout) == (0, True)


def test_a_broker_that_dies_by_itself_is_reported(up: Up) -> None:
    os.kill(up.brokers()[0].pid, signal.SIGKILL)
    words = up.process.stderr
    assert words is not None
    wait_for(lambda: "exited unexpectedly" in words.readline() or None, 60, lambda: "not a word")
    assert status(up)["brokers"][0]["state"] == "died"


def test_bad_input_is_one_line_and_touches_nothing(tmp_path: Path, up: Up) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    new = str(tmp_path / "new")
    for arguments, complaint in (
        (("up", "--data-dir", str(up.folder)), "is running in"),
        (("up", "--data-dir", str(tmp_path / "full")), "holds no cluster"),
        (("up", "--data-dir", new, "--config", "log.dirs=/x"), "every broker gets its own"),
        (("up", "--data-dir", new, "--config", "no.such=1"), "no.such"),
        (("up", "--data-dir", new, "--config", "nothing"), "is not NAME=VALUE"),
        (("up", "--data-dir", new, "--ephemeral"), "leave --data-dir out"),
        (("status", "--data-dir", new), "there is no cluster"),
        (("fault", "kill", "1", "--data-dir", new), "there is no cluster"),
        (("fault", "kill", "2", "2", "--data-dir", str(up.folder)), "broker 2 is named twice"),
        (("fault", "kill", "7", "--data-dir", str(up.folder)), "there is no broker 7"),
        (("fault", "partition", "a", "--data-dir", str(up.folder)), "not a list of broker ids"),
        (("fault", "delay", "1", "--ms", "5", "--to", "x", "--data-dir", str(up.folder)), "to is"),
    ):
        done = holdfast(*arguments)
        assert done.returncode == 64, arguments
        assert complaint in done.stderr, arguments
        assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not Path(new).exists()
    assert [broker["state"] for broker in status(up)["brokers"]] == ["running"] * 3


def test_a_port_that_another_program_took_is_reported(up: Up) -> None:
    port = int(up.bootstrap.split(",")[1].rpartition(":")[2])
    up.end(signal.SIGTERM)
    with socket.create_server(("127.0.0.1", port)):
        done = holdfast("up", "--data-dir", str(up.folder))
    assert done.returncode == 64
    assert f"port {port} cannot be used" in done.stderr


def in_temporary(tmp_path: Path, *arguments: str) -> Process:
    return subprocess.Popen(
        [*HOLDFAST, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )


def end_by(process: Process, number: int) -> int:
    process.send_signal(number)
    process.communicate(timeout=600)
    return process.returncode


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_ephemeral_cluster_leaves_nothing(tmp_path: Path, number: int) -> None:
    process = in_temporary(tmp_path, "up", *ANY_PORT, "--ephemeral", "--brokers", "1")
    assert process.stdout is not None
    process.stdout.readline()
    assert [*tmp_path.glob("holdfast-*")] != []
    assert end_by(process, number) == 0
    assert [*tmp_path.glob("holdfast-*")] == []


def test_an_ephemeral_cluster_leaves_nothing_after_the_second_ctrl_c(tmp_path: Path) -> None:
    process = in_temporary(tmp_path, "up", *ANY_PORT, "--ephemeral", "--brokers", "1")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    [folder] = tmp_path.glob("holdfast-*")
    [broker] = manifest.load(folder).brokers
    assert broker.process is not None
    os.kill(broker.pid, signal.SIGSTOP)  # so that the polite end takes long enough
    process.send_signal(signal.SIGINT)
    while "stopping" not in process.stderr.readline():
        pass
    code = end_by(process, signal.SIGINT)
    assert code in (0, 130)  # it may have been through when the second one came
    assert [*tmp_path.glob("holdfast-*")] == []
    assert not broker.process.is_alive()


def test_an_ephemeral_cluster_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    process = in_temporary(tmp_path, "up", "--ephemeral", "--config", "no.such=1")
    process.communicate(timeout=600)
    assert process.returncode == 64
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_chaos_leaves_nothing(tmp_path: Path, number: int) -> None:
    pytest.importorskip("confluent_kafka")
    process = in_temporary(tmp_path, "chaos", "--minutes", "10")
    assert process.stderr is not None
    lines = [process.stderr.readline() for _ in range(3)]
    assert " s  " in lines[-1], lines
    process.send_signal(number)
    assert end_by(process, number) == 130
    assert [*tmp_path.glob("holdfast-*")] == []


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    running = Up(tmp_path / "data", "--brokers", "1")
    running.end(signal.SIGTERM)
    (tmp_path / "data" / "brokers" / "1" / "log" / "meta.properties").write_text("nonsense")
    done = holdfast("up", "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 64
    assert "broker 1 did not start" in done.stderr
    assert "meta.properties" in done.stderr
